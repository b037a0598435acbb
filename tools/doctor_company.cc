// SPDX-License-Identifier: BSD-3-Clause
#include "tools/doctor_company.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/env.h"
#include "os/clock.h"
#include "os/process.h"
#include "tools/doctor_checks.h"
#include "tools/texts_by_socket.h"
#include "tools/words.h"

namespace coco::tools {
namespace {

// How long the others of this host may be late, where it is known how many they are; and where it is not.
constexpr std::uint64_t kLate_ns = 10 * kSecond_ns, kQuiet_ns = 2 * kSecond_ns;

class Alone : public Company {
  public:
    bool is_root() const override { return true; }
    std::vector<std::string> gather(const std::string& mine) override { return {mine}; }
    std::optional<std::string> broadcast(const std::string& text) override { return text; }
};

// The root has a socket for each of the others, the others one for the root.
class OfHost : public Company {
  public:
    OfHost(bool is_root, std::vector<TextSocket> sockets) : is_root_(is_root), sockets_(std::move(sockets)) {}
    bool is_root() const override { return is_root_; }
    std::vector<std::string> gather(const std::string& mine) override {
        if (!is_root_) {
            sockets_[0].send(mine);
            return {};
        }
        std::vector<std::string> texts = {mine};
        std::vector<TextSocket> left;
        const std::uint64_t end_ns = os::now_ns() + kText_ns;
        for (TextSocket& socket : sockets_)
            if (auto text = socket.receive(end_ns - std::min(end_ns, os::now_ns()))) {
                texts.push_back(std::move(*text));
                left.push_back(std::move(socket));
            }
        sockets_ = std::move(left);
        return texts;
    }
    std::optional<std::string> broadcast(const std::string& text) override {
        if (!is_root_) return sockets_[0].receive(kText_ns + kText_ns);
        for (TextSocket& socket : sockets_) socket.send(text);
        return text;
    }

  private:
    const bool is_root_;
    std::vector<TextSocket> sockets_;
};

// The variables by which launchers tell ranks apart, as a text.
std::string rank_variables(const std::vector<std::string>& environment) {
    constexpr std::array<std::string_view, 7> kNames = {
        "PMI_RANK=",    "PMI_ID=",      "PMIX_RANK=", "PMIX_NAMESPACE=", "OMPI_COMM_WORLD_RANK=",
        "PALS_RANKID=", "SLURM_PROCID="};
    std::string text;
    for (const std::string_view name : kNames)
        for (const std::string& entry : environment)
            if (entry.starts_with(name)) text += entry + ";";
    return text;
}

std::vector<std::string> environment_of(const std::string& process) {
    std::ifstream in("/proc/" + process + "/environ");
    std::vector<std::string> entries;
    for (std::string entry; std::getline(in, entry, '\0');) entries.push_back(entry);
    return entries;
}

// Of a process: its parent, and when it started, which no other process of the same number did.
struct Ancestry {
    std::string parent = "0", start;
};
Ancestry ancestry_of(const std::string& process) {
    const std::string line = first_line("/proc/" + process + "/stat");
    std::istringstream words(line.substr(std::min(line.rfind(')') + 1, line.size())));
    Ancestry found;
    std::string word, state;
    words >> state >> found.parent;
    constexpr int kBetween = 17;  // fields from the parent to the start
    for (int i = 0; i < kBetween; ++i) words >> word;
    words >> found.start;
    return found;
}

// The nearest ancestor that is no part of this rank: the launcher, or its daemon on this host. A shell that starts the rank's
// program has the rank's variables. What may not be looked at is another user's daemon. Returns: empty if it is out of sight, in
// another pid namespace.
std::string launcher_process() {
    const std::string own = rank_variables(environment_of("self"));
    std::string process = std::to_string(getppid());
    while (process != "0" && process != "1" && rank_variables(environment_of(process)) == own)
        process = ancestry_of(process).parent;
    return process == "0" ? "" : process + "-" + ancestry_of(process).start;
}

struct Address {
    explicit Address(const std::string& text) {
        at.sun_family = AF_UNIX;
        const std::string name = (std::string(1, '\0') + text).substr(0, sizeof at.sun_path);
        std::memcpy(at.sun_path, name.data(), name.size());
        bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    }
    sockaddr_un at{};
    socklen_t bytes;
};

// Whether the other end of a socket is a process that the same launcher has started, of whichever user: nobody else can become
// one. Where /proc does not tell, a process of this user will do.
bool is_of_job(int socket, const std::string& launcher) {
    ucred other{};
    socklen_t bytes = sizeof other;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &bytes) != 0) return false;
    const std::string sought = launcher.substr(0, launcher.find('-'));
    for (std::string process = std::to_string(other.pid); process != "0";
         process = ancestry_of(process).parent)
        if (process == sought) return true;
    return other.uid == getuid();
}

int new_socket() { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }

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
        if (!other.is_open() || !is_of_job(other.fd(), launcher)) continue;
        others.push_back(std::move(other));
        if (expected == 0) end_ns = os::now_ns() + kQuiet_ns;
    }
    return others;
}

}  // namespace

Launch launched() { return {os::launched_rank(), os::launched_ranks(), os::launched_node_ranks()}; }

std::unique_ptr<Company> alone() { return std::make_unique<Alone>(); }

// Whoever comes first is the root: nobody else can bind the name. The others come in at its door as long as it is open; who
// comes later finds no door, makes one and is alone there.
std::unique_ptr<Company> meet_host(const Launch& launch) {
    const std::string launcher = launcher_process();
    if (launch.node_ranks == 1 || launcher.empty()) return alone();
    constexpr int kBacklog = 4096;
    const Address address("coco-doctor-" + launcher);
    const auto* at = reinterpret_cast<const sockaddr*>(&address.at);
    const std::uint64_t end_ns = os::now_ns() + kLate_ns;
    while (os::now_ns() < end_ns) {
        const TextSocket door(new_socket());
        if (!door.is_open()) break;
        if (bind(door.fd(), at, address.bytes) == 0 && listen(door.fd(), kBacklog) == 0)
            return std::make_unique<OfHost>(true, receive_others(door.fd(), launcher, launch.node_ranks));
        TextSocket root(new_socket());
        if (connect(root.fd(), at, address.bytes) == 0) {
            if (!is_of_job(root.fd(), launcher)) break;
            std::vector<TextSocket> sockets;
            sockets.push_back(std::move(root));
            return std::make_unique<OfHost>(false, std::move(sockets));
        }
        usleep(1000);  // it is bound, and not listened at yet
    }
    return alone();
}

}  // namespace coco::tools
