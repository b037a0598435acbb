// SPDX-License-Identifier: BSD-3-Clause
#include "os/descriptors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstddef>
#include <string>
#include <vector>

#include "os/process.h"
#include "os/shared_memory.h"

using coco::os::DescriptorDoor;
using coco::os::exchange_descriptors;

namespace {

constexpr std::uint64_t kLong_ns = 30'000'000'000u, kShort_ns = 50'000'000;

int new_memory(std::uint64_t value) {
    int fd = memfd_create("descriptors", MFD_CLOEXEC);
    REQUIRE(write(fd, &value, sizeof value) == sizeof value);
    return fd;
}

bool holds(int fd, std::uint64_t value) {
    std::uint64_t found = 0;
    return fd >= 0 && pread(fd, &found, sizeof found, 0) == sizeof found && found == value &&
           (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0;
}

std::uint64_t* shared_words(std::size_t count) {
    void* made = mmap(nullptr, count * 8, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return static_cast<std::uint64_t*>(made);
}

void meet(std::uint64_t* door, std::uint64_t all) {
    std::atomic_ref<std::uint64_t> count(*door);
    ++count;
    while (count.load() < all) usleep(1000);
}

// One of `count` processes. Returns: whether it has all others' memory, each at its place.
bool one_of(std::size_t own, std::size_t count, const std::vector<std::uint64_t>& cookies,
            std::uint64_t* opened) {
    DescriptorDoor door(cookies[own]);
    meet(opened, count);
    std::vector<std::uint64_t> mates;
    for (std::size_t i = 0; i < count; ++i)
        if (i != own) mates.push_back(cookies[i]);
    std::vector<int> received(mates.size());
    exchange_descriptors(door, new_memory(cookies[own]), mates, received, kLong_ns);
    bool good = door.is_open();
    for (std::size_t i = 0; i < mates.size(); ++i) good = good && holds(received[i], mates[i]);
    meet(opened + 1, count);  // a door stays until all have been through theirs
    return good;
}

sockaddr_un address_of(std::uint64_t cookie, socklen_t& bytes) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::string name = "coco-" + std::to_string(cookie);
    name.copy(address.sun_path + 1, name.size());
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    return address;
}

}  // namespace

TEST_CASE("processes pass each other their descriptors", "[os]") {
    std::size_t count = GENERATE(2, 8, 40);
    std::uint64_t* opened = shared_words(2);
    std::vector<std::uint64_t> cookies(count);
    for (std::uint64_t& cookie : cookies) cookie = coco::os::random_cookie();
    std::vector<pid_t> children;
    for (std::size_t i = 0; i < count; ++i) {
        children.push_back(fork());
        if (children.back() == 0) _exit(one_of(i, count, cookies, opened) ? 0 : 1);
    }
    for (pid_t child : children) {
        int status = -1;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(status == 0);
    }
    munmap(opened, 16);
}

TEST_CASE("what strangers send is dropped, and a mate that is gone is not waited for in vain", "[os]") {
    std::uint64_t own = coco::os::random_cookie(), gone = coco::os::random_cookie();
    DescriptorDoor door(own);
    REQUIRE(door.is_open());
    int stranger = socket(AF_UNIX, SOCK_DGRAM, 0);
    socklen_t bytes = 0;
    sockaddr_un address = address_of(own, bytes);
    for (const char* junk : {"", "x", "sixteen bytes of", "more than sixteen bytes of junk"})
        CHECK(sendto(stranger, junk, std::string(junk).size(), 0, reinterpret_cast<sockaddr*>(&address),
                     bytes) >= 0);
    close(stranger);
    std::vector<std::uint64_t> mates{gone, own};  // the door of this process is as good as another's
    std::vector<int> received(2);
    int memory = new_memory(7);
    exchange_descriptors(door, memory, mates, received, kShort_ns);
    CHECK(received[0] == -1);
    CHECK(holds(received[1], 7));
    close(received[1]);
    close(memory);
}

TEST_CASE("what another user sends is dropped", "[os]") {
    if (geteuid() != 0) return;  // cannot be two users
    const std::uint64_t own = coco::os::random_cookie(), mate = coco::os::random_cookie();
    DescriptorDoor door(own);
    REQUIRE(door.is_open());
    for (const bool other_user : {false, true}) {
        const pid_t sender = fork();
        if (sender == 0) {
            if (other_user && (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0))
                _exit(1);
            DescriptorDoor its(mate);
            std::vector<int> none(1);
            exchange_descriptors(its, new_memory(5), std::vector<std::uint64_t>{own}, none, kShort_ns);
            _exit(its.is_open() ? 0 : 1);
        }
        int status = -1;
        CHECK(waitpid(sender, &status, 0) == sender);
        CHECK(status == 0);
        std::vector<int> received(1);
        exchange_descriptors(door, -1, std::vector<std::uint64_t>{mate}, received, kShort_ns);
        CHECK(holds(received[0], 5) == !other_user);
        if (received[0] >= 0) close(received[0]);
    }
}

TEST_CASE("another user who floods the door keeps nobody for longer than it is waited", "[os]") {
    if (geteuid() != 0) return;  // cannot be two users
    const std::uint64_t own = coco::os::random_cookie(), silent = coco::os::random_cookie(),
                        mate = coco::os::random_cookie();
    DescriptorDoor door(own), silent_door(silent);
    REQUIRE((door.is_open() && silent_door.is_open()));
    pid_t flooders[4];
    for (pid_t& flooder : flooders) {
        flooder = fork();
        REQUIRE(flooder >= 0);
        if (flooder != 0) continue;
        if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0) _exit(1);
        const int stranger = socket(AF_UNIX, SOCK_DGRAM, 0);
        socklen_t bytes = 0;
        sockaddr_un address = address_of(own, bytes);
        while (sendto(stranger, "sixteen bytes of", 16, 0, reinterpret_cast<sockaddr*>(&address), bytes) ==
               16) {
        }
        _exit(2);  // the door is closed
    }
    // A mate that says nothing is waited for, and if that never ended this test would be ended from outside.
    const int memory = new_memory(6);
    for (int turn = 0; turn < 5; ++turn) {
        std::vector<int> received(1);
        exchange_descriptors(door, memory, std::vector<std::uint64_t>{silent}, received, kShort_ns);
        CHECK(received[0] == -1);
    }
    // A mate gets through, or is given up, but nothing else is taken for its memory.
    const pid_t sender = fork();
    REQUIRE(sender >= 0);
    if (sender == 0) {
        DescriptorDoor its(mate);
        std::vector<int> none(1);
        exchange_descriptors(its, new_memory(5), std::vector<std::uint64_t>{own}, none, 20 * kShort_ns);
        _exit(0);
    }
    std::vector<int> received(2);
    exchange_descriptors(door, memory, std::vector<std::uint64_t>{mate, silent}, received, 20 * kShort_ns);
    CHECK((received[0] == -1 || holds(received[0], 5)));
    CHECK(received[1] == -1);
    if (received[0] >= 0) close(received[0]);
    close(memory);
    int status = 0;
    for (const pid_t flooder : flooders) {
        CHECK(kill(flooder, SIGKILL) == 0);
        CHECK(waitpid(flooder, &status, 0) == flooder);
        CHECK(WIFSIGNALED(status));
    }
    CHECK(waitpid(sender, &status, 0) == sender);
}

TEST_CASE("memory that ranks share is for their user alone", "[os]") {
    using coco::os::Via;
    for (const Via via : {Via::memfd, Via::shm_open}) {
        const coco::os::MemoryObject object = coco::os::make_memory_object(4096, via);
        struct stat facts {};
        REQUIRE(fstat(object.fd, &facts) == 0);
        CHECK((facts.st_mode & 0777) == 0600);
        CHECK(facts.st_uid == geteuid());
        CHECK(facts.st_nlink == 0);
        close(object.fd);
    }
}

TEST_CASE("a name can be had once", "[os]") {
    std::uint64_t cookie = coco::os::random_cookie();
    DescriptorDoor first(cookie), second(cookie);
    CHECK(first.is_open());
    CHECK_FALSE(second.is_open());
}
