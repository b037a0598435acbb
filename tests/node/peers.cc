// SPDX-License-Identifier: BSD-3-Clause
// Two processes map each other's segments, read and write them; what is not a peer is refused. Runs itself as
// its peer: peers ID OFFSET, which answers on stdout with its own id and offset.
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "heap/heap.h"
#include "heap/segment.h"
#include "os/shared_memory.h"
#include "tests/interpose/malloc/expect.h"

extern char** environ;

namespace {

using namespace coco;

struct Greeting {
    heap::SegmentId id;
    std::uint64_t offset;  // of a block in the sender's segment
};

char* new_block(const char* text) {
    char* block = static_cast<char*>(heap::allocate_shared(64, 5u << 20));
    EXPECT(heap::is_shared(block, 5u << 20));
    std::strcpy(block, text);
    return block;
}

// The second process: answers in the first one's memory, then waits until the first has answered in its own.
int be_peer(const Greeting& first) {
    char* theirs = reinterpret_cast<char*>(heap::map_peer(first.id)) + first.offset;
    EXPECT(std::strcmp(theirs, "from the first") == 0);
    std::strcpy(theirs, "answered");
    char* mine = new_block("from the second");
    Greeting reply{heap::own_id(), heap::offset_of(mine)};
    EXPECT(write(STDOUT_FILENO, &reply, sizeof reply) == sizeof reply);
    char end;
    EXPECT(read(STDIN_FILENO, &end, 1) == 1);
    EXPECT(std::strcmp(mine, "seen") == 0);
    return failures();
}

// By what Meson runs programs of another processor, if this is one.
std::vector<std::string> emulator_words() {
    const char* wrapper = std::getenv("MESON_EXE_WRAPPER");
    std::istringstream in(wrapper != nullptr ? wrapper : "");
    return {std::istream_iterator<std::string>(in), {}};
}

pid_t spawn_peer(char* self, const Greeting& greeting, int in, int out) {
    char text[2 * sizeof greeting + 1];
    for (std::size_t i = 0; i < sizeof greeting; ++i)
        std::snprintf(text + 2 * i, 3, "%02x", reinterpret_cast<const unsigned char*>(&greeting)[i]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    std::vector<std::string> words = emulator_words();
    words.insert(words.end(), {self, text});
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_t child = -1;
    EXPECT(posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
    return child;
}

Greeting parse(const char* text) {
    Greeting greeting{};
    for (std::size_t i = 0; i < sizeof greeting; ++i)
        reinterpret_cast<unsigned char*>(&greeting)[i] =
            static_cast<unsigned char>(std::stoi(std::string(text + 2 * i, 2), nullptr, 16));
    return greeting;
}

// How many bytes of [base, base + bytes) a core dump of this process holds.
std::uint64_t dumped_bytes(const void* base, std::uint64_t bytes) {
    const auto first = reinterpret_cast<std::uint64_t>(base);
    std::ifstream in("/proc/self/smaps");
    std::uint64_t begin = 0, end = 0, from = 0, to = 0, sum = 0;
    for (std::string line; std::getline(in, line);) {
        if (std::sscanf(line.c_str(), "%lx-%lx ", &from, &to) == 2) begin = from, end = to;
        if (!line.starts_with("VmFlags:") || line.find(" dd") != std::string::npos) continue;
        const std::uint64_t low = std::max(begin, first), high = std::min(end, first + bytes);
        if (low < high) sum += high - low;
    }
    return sum;
}

// The kernel writes out all that is mapped, and fills the holes to do so.
void check_core_dump(const char* block, const std::byte* peer_base, std::uint64_t peer_bytes) {
    const heap::Segment& own = heap::own();
    EXPECT(dumped_bytes(block, 5u << 20) == 5u << 20);
    EXPECT(dumped_bytes(own.base, own.bytes) < own.bytes / 2);
    EXPECT(dumped_bytes(peer_base, peer_bytes) == 0);
}

void check_refusals(const heap::SegmentId& good) {
    heap::SegmentId bad = good;
    bad.cookie ^= 1;
    EXPECT(heap::map_peer(bad) == nullptr);
    bad.bytes += 4096;
    EXPECT(heap::map_peer(bad) == nullptr);
    bad = good;
    bad.cookie ^= 2;
    bad.fd = 9999;
    EXPECT(heap::map_peer(bad) == nullptr);
    bad = good;
    bad.host ^= 1;
    EXPECT(heap::map_peer(bad) == nullptr);
    EXPECT(heap::map_peer({}) == nullptr);
}

// A forked child is no rank: it sees neither a segment of its own nor its parent's peers.
void check_child(const std::byte* peer_base) {
    pid_t child = fork();
    if (child == 0) {
        unsigned char resident;
        EXPECT(heap::own().bytes == 0 && heap::own_id().cookie == 0);
        if (os::advice_is_heeded()) EXPECT(mincore(const_cast<std::byte*>(peer_base), 4096, &resident) == -1);
        _exit(failures());
    }
    int status = -1;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
}

void check_pair(char* self) {
    char* mine = new_block("from the first");
    int to_peer[2], from_peer[2];
    EXPECT(pipe2(to_peer, O_CLOEXEC) == 0 && pipe2(from_peer, O_CLOEXEC) == 0);
    pid_t child = spawn_peer(self, {heap::own_id(), heap::offset_of(mine)}, to_peer[0], from_peer[1]);
    close(from_peer[1]);
    Greeting second{};
    EXPECT(read(from_peer[0], &second, sizeof second) == sizeof second);
    EXPECT(std::strcmp(mine, "answered") == 0);
    check_refusals(second.id);
    std::byte* base = heap::map_peer(second.id);
    EXPECT(base != nullptr && base == heap::map_peer(second.id));
    if (base == nullptr) return;
    char* theirs = reinterpret_cast<char*>(base) + second.offset;
    EXPECT(std::strcmp(theirs, "from the second") == 0);
    EXPECT(!heap::is_shared(theirs));
    if (os::advice_is_heeded()) check_core_dump(mine, base, second.id.bytes);
    check_child(base);
    std::strcpy(theirs, "seen");
    EXPECT(write(to_peer[1], "x", 1) == 1);
    int status = -1;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    EXPECT(std::strcmp(theirs, "seen") == 0);  // a peer's pages outlive the peer
}

}  // namespace

int main(int count, char** arguments) {
    if (count > 1) return be_peer(parse(arguments[1]));
    EXPECT(heap::own().bytes != 0 && heap::map_peer(heap::own_id()) == heap::own().base);
    check_pair(arguments[0]);
    return failures();
}
