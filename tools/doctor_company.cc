// SPDX-License-Identifier: BSD-3-Clause
#include "tools/doctor_company.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include "os/clock.h"
#include "tools/words.h"

namespace coco::tools {
namespace {

// How long the others of this host may be late if their number is known, and if it is unknown.
constexpr std::uint64_t kLate_ns = 10 * kSecond_ns, kQuiet_ns = 2 * kSecond_ns;
// How long one text may take: the checks before it start programs, of which the slowest has 20 s.
constexpr std::uint64_t kText_ns = 60 * kSecond_ns;
constexpr std::uint64_t kMostBytes = 64u << 20;  // a longer text is no text of ours

std::unique_ptr<Company> alone() { return std::make_unique<Company>(true, std::vector<TextSocket>()); }

// The variables by which launchers tell ranks apart, in a process's environment.
std::string rank_variables(const std::string& process) {
    std::ifstream in("/proc/" + process + "/environ");
    std::vector<std::string> found;
    for (std::string entry; std::getline(in, entry, '\0');)
        for (const char* name : {"PMI_RANK=", "PMI_ID=", "PMIX_RANK=", "PMIX_NAMESPACE=",
                                 "OMPI_COMM_WORLD_RANK=", "PALS_RANKID=", "SLURM_PROCID="})
            if (entry.starts_with(name)) found.push_back(entry);
    std::ranges::sort(found);
    return joined(found);
}

// A process's parent, and when the process started, which no other process of the same number did.
struct Ancestry {
    std::string parent = "0", start;
};
Ancestry ancestry_of(const std::string& process) {
    constexpr std::size_t kParent = 1, kStart = 19;  // fields after the name in brackets
    const std::string line = first_line("/proc/" + process + "/stat");
    std::istringstream words(line.substr(std::min(line.rfind(')') + 1, line.size())));
    const std::vector<std::string> fields(std::istream_iterator<std::string>(words), {});
    return fields.size() > kStart ? Ancestry{fields[kParent], fields[kStart]} : Ancestry();
}

// The nearest ancestor that is no part of this rank: the launcher, or its daemon here. A shell that starts
// the program has the rank's variables; another user's daemon shows none. Returns: empty if it is in another
// pid namespace.
std::string launcher_process() {
    const std::string own = rank_variables("self");
    std::string process = std::to_string(getppid());
    while (process != "0" && process != "1" && rank_variables(process) == own)
        process = ancestry_of(process).parent;
    return process == "0" ? "" : process + "-" + ancestry_of(process).start;
}

// A name in the kernel's abstract space.
struct Address {
    explicit Address(const std::string& text) {
        at.sun_family = AF_UNIX;
        const std::size_t letters = text.copy(at.sun_path + 1, sizeof at.sun_path - 1);
        bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + letters);
    }
    const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&at); }
    sockaddr_un at{};
    socklen_t bytes;
};

// Moves all bytes, by calls that may move fewer or be interrupted. Returns: false if one moves none.
template <class Move>
bool move_all(std::size_t bytes, Move move) {
    for (std::size_t at = 0; at < bytes;) {
        errno = 0;
        const ssize_t moved = move(at, bytes - at);
        if (moved <= 0 && errno != EINTR) return false;
        at += static_cast<std::size_t>(std::max<ssize_t>(moved, 0));
    }
    return true;
}

TextSocket new_socket() { return TextSocket(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

// Whether the other end is a process that the same launcher has started, which nobody else can become. Where
// /proc does not tell, a process of this user will do.
bool is_of_job(const TextSocket& socket, const std::string& launcher) {
    ucred other{};
    socklen_t bytes = sizeof other;
    if (getsockopt(socket.fd(), SOL_SOCKET, SO_PEERCRED, &other, &bytes) != 0) return false;
    const std::string sought = launcher.substr(0, launcher.find('-'));
    std::string process = std::to_string(other.pid);
    while (process != "0" && process != sought) process = ancestry_of(process).parent;
    return process == sought || other.uid == getuid();
}

// The root waits for the others. expected: how many processes there are; 0: unknown.
std::vector<TextSocket> receive_others(int door, const std::string& launcher, std::uint64_t expected) {
    std::vector<TextSocket> others;
    std::uint64_t end_ns = os::now_ns() + (expected != 0 ? kLate_ns : kQuiet_ns);
    while (expected == 0 || others.size() + 1 < expected) {
        const std::uint64_t now_ns = os::now_ns();
        pollfd wait{door, POLLIN, 0};
        if (now_ns >= end_ns || poll(&wait, 1, static_cast<int>((end_ns - now_ns) / 1'000'000 + 1)) <= 0)
            break;
        TextSocket other(accept4(door, nullptr, nullptr, SOCK_CLOEXEC));
        if (!other.is_open() || !is_of_job(other, launcher)) continue;
        others.push_back(std::move(other));
        if (expected == 0) end_ns = os::now_ns() + kQuiet_ns;
    }
    return others;
}

// The first one is the root, as nobody else can bind the name, and the others come in at its door. A process
// that comes when the door is closed makes a door of its own and is alone there.
std::unique_ptr<Company> meet_host(const Launch& launch) {
    constexpr int kBacklog = 4096;
    const std::string launcher = launcher_process();
    if (launch.node_ranks == 1 || launcher.empty()) return alone();
    const Address address("coco-doctor-" + launcher);
    const std::uint64_t end_ns = os::now_ns() + kLate_ns;
    while (os::now_ns() < end_ns) {
        const TextSocket door = new_socket();
        if (!door.is_open()) break;
        if (bind(door.fd(), address.get(), address.bytes) == 0 && listen(door.fd(), kBacklog) == 0)
            return std::make_unique<Company>(true, receive_others(door.fd(), launcher, launch.node_ranks));
        std::vector<TextSocket> root;
        root.push_back(new_socket());
        if (connect(root[0].fd(), address.get(), address.bytes) == 0) {
            if (!is_of_job(root[0], launcher)) break;
            return std::make_unique<Company>(false, std::move(root));
        }
        usleep(1000);  // The name is bound, and nobody listens yet.
    }
    return alone();
}

// All ranks of the job are in this company, as its root has counted.
bool is_complete(Company& company, std::size_t ranks) {
    auto count = [&](const Company::Texts& texts) { return texts.size() >= ranks ? "all" : "some"; };
    return company.confer("here", count) == "all";
}

}  // namespace

TextSocket::~TextSocket() {
    if (fd_ >= 0) close(fd_);
}

bool TextSocket::send(const std::string& text) {
    const std::uint64_t bytes = text.size();
    const std::string all = std::string(reinterpret_cast<const char*>(&bytes), sizeof bytes) + text;
    return move_all(all.size(), [&](std::size_t at, std::size_t left) {
        return ::send(fd_, all.data() + at, left, MSG_NOSIGNAL);
    });
}

std::optional<std::string> TextSocket::receive(std::uint64_t timeout_ns) {
    const auto limit_us = static_cast<std::int64_t>(timeout_ns / 1000 + 1);  // 0 would mean no limit
    const timeval limit{.tv_sec = limit_us / 1'000'000, .tv_usec = limit_us % 1'000'000};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    auto read = [&](char* to, std::size_t bytes) {
        return move_all(
            bytes, [&](std::size_t at, std::size_t left) { return recv(fd_, to + at, left, MSG_WAITALL); });
    };
    std::uint64_t bytes = 0;
    if (!read(reinterpret_cast<char*>(&bytes), sizeof bytes) || bytes > kMostBytes) return std::nullopt;
    std::string text(bytes, '\0');
    return read(text.data(), bytes) ? std::optional(text) : std::nullopt;
}

Company::Company(bool is_root, std::vector<TextSocket> sockets, std::int32_t messenger)
    : is_root_(is_root), sockets_(std::move(sockets)), messenger_(messenger) {}

std::optional<std::string> Company::confer(const std::string& mine,
                                           const std::function<std::string(const Texts&)>& answer) {
    if (!is_root_) {
        // The root itself may wait so long for a rank that is silent, and has to answer then.
        constexpr std::uint64_t kAnswer_ns = 2 * kText_ns;
        std::optional<std::string> told = std::nullopt;
        if (sockets_[0].send(mine)) told = sockets_[0].receive(kAnswer_ns);
        return told && !told->empty() ? told : std::nullopt;
    }
    Texts texts = {mine};
    const std::uint64_t end_ns = os::now_ns() + kText_ns;
    std::vector<TextSocket> heard;  // A process that is silent is lost.
    for (TextSocket& socket : sockets_) {
        const std::optional<std::string> said = socket.receive(end_ns - std::min(end_ns, os::now_ns()));
        if (!said) continue;
        std::istringstream all(*said);
        for (std::string text; std::getline(all, text, '\0');) texts.push_back(text);
        heard.push_back(std::move(socket));
    }
    sockets_ = std::move(heard);
    const std::string told = answer(texts);
    for (TextSocket& socket : sockets_) socket.send(told);
    return told;
}

// If some ranks do not come, as those in other containers, all know it and ask the MPI library.
std::unique_ptr<Company> meet(const Launch& launch, const std::string& mpi_file, bool may_use_mpi,
                              std::string& trouble) {
    if (launch.rank < 0) return alone();
    std::unique_ptr<Company> host, job;
    if (launch.ranks == launch.node_ranks || launch.ranks == 0) host = meet_host(launch);
    if (host != nullptr && is_complete(*host, launch.ranks)) return host;
    if (host != nullptr && may_use_mpi && host->is_root())
        std::cerr
            << "coco doctor: not all ranks of this host have come, so MPI is asked for the others. If it "
               "fails, it may end the job: --no-mpi\n";
    if (may_use_mpi) job = meet_job(launch, mpi_file, trouble);
    if (job != nullptr) return job;
    return host != nullptr ? std::move(host) : meet_host(launch);
}

}  // namespace coco::tools
