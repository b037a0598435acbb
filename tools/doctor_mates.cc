// SPDX-License-Identifier: BSD-3-Clause
#include "tools/doctor_mates.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <tuple>

#include "base/env.h"
#include "os/cpu.h"
#include "os/descriptors.h"
#include "os/process.h"
#include "os/process_memory.h"
#include "os/shared_memory.h"
#include "tools/doctor_checks.h"
#include "tools/words.h"

namespace coco::tools {
namespace {

constexpr std::uint64_t kPatience_ns = 2'000'000'000u;

// A process of another pid namespace may have this number, and another object this descriptor.
constexpr int kNotIt = ESRCH;

int open_error_of(const Offer& mate) {
    const std::string path =
        "/proc/" + std::to_string(mate.process) + "/fd/" + std::to_string(mate.descriptor);
    const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return errno;
    std::uint64_t cookie = 0;
    const bool is_it = pread(fd, &cookie, sizeof cookie, 0) == sizeof cookie && cookie == mate.cookie;
    close(fd);
    return is_it ? 0 : kNotIt;
}

int read_error_of(const Offer& mate) {
    std::uint64_t word = 0;
    if (!os::read_process(static_cast<pid_t>(mate.process), reinterpret_cast<const void*>(mate.address),
                          &word, sizeof word))
        return errno;
    return word == mate.cookie ? 0 : kNotIt;
}

std::string remedy_of_open(int error) {
    if (error == ENOENT || error == kNotIt)
        return access("/proc/self/fd", X_OK) == 0
                   ? "run all ranks of a host in one container, or in one pid namespace"
                   : "mount /proc";
    if (error == EACCES || error == EPERM)
        return "run all ranks of a host as one user, in one container or user namespace";
    return "allow more open files (ulimit -n)";
}

std::string remedy_of_read(int error) {
    if (error == ENOSYS) return "use a kernel with process_vm_readv";
    if (error == kNotIt) return "run all ranks of a host in one container, or in one pid namespace";
    std::uint64_t scope = 0;
    if (base::parse_number(first_line("/proc/sys/kernel/yama/ptrace_scope"), scope) && scope > 1)
        return "as root: sysctl kernel.yama.ptrace_scope=0";
    if (has_call_filter())
        return "let the container's system call filter (seccomp) pass process_vm_readv (docker "
               "--cap-add=SYS_PTRACE)";
    return "run all ranks of a host as one user, in one user namespace, from a file that the user may read";
}

}  // namespace

Offered::Offered(std::int64_t rank) : word_(std::make_unique<std::uint64_t>(os::random_cookie())) {
    os::let_others_read();
    offer_.rank = rank;
    offer_.host = first_line("/proc/sys/kernel/random/boot_id");
    offer_.process = getpid();
    offer_.cookie = *word_;
    offer_.address = reinterpret_cast<std::uint64_t>(word_.get());
    const os::MemoryObject object = os::make_memory_object(os::page_bytes());
    if (object.fd >= 0 && pwrite(object.fd, word_.get(), sizeof *word_, 0) == sizeof *word_)
        offer_.descriptor = object.fd;
    door_ = std::make_unique<os::DescriptorDoor>(offer_.cookie);
}

Offered::~Offered() {
    if (offer_.descriptor >= 0) close(static_cast<int>(offer_.descriptor));
}

std::vector<bool> Offered::pass(const std::vector<Offer>& mates) {
    std::vector<std::uint64_t> cookies;
    for (const Offer& mate : mates) cookies.push_back(mate.cookie);
    std::vector<int> received(mates.size(), -1);
    if (door_->is_open() && offer_.descriptor >= 0)
        os::exchange_descriptors(*door_, static_cast<int>(offer_.descriptor), cookies, received,
                                 kPatience_ns);
    std::vector<bool> came;
    for (const int fd : received) {
        came.push_back(fd >= 0);
        if (fd >= 0) close(fd);
    }
    return came;
}

Reach try_mate(const Offer& mate) {
    Reach reach;
    reach.mate = mate.rank;
    reach.open_error = open_error_of(mate);
    if (reach.open_error != 0) reach.open_remedy = remedy_of_open(reach.open_error);
    // Of a process that is not the mate there is nothing to read.
    if (reach.open_error == 0 || is_closed(reach)) reach.read_error = read_error_of(mate);
    if (reach.read_error != 0) reach.read_remedy = remedy_of_read(reach.read_error);
    return reach;
}

bool is_closed(const Reach& reach) { return reach.open_error == EACCES || reach.open_error == EPERM; }

namespace {

constexpr const char* kCheck = "processes";

std::string text_of(int error) {
    return error == kNotIt ? "no such process in this pid namespace" : std::strerror(error);
}

// who and whom: ranks, in words.
std::string closed_in_words(const std::string& who, const std::string& whom, int error) {
    return who + " cannot open the descriptors of " + whom + " in /proc (" + text_of(error) + ")";
}

void say_unopened(const std::string& who, const std::string& whom, int error, const std::string& remedy,
                  bool passed, Findings& findings) {
    const std::string what = closed_in_words(who, whom, error);
    if (passed)
        findings.note(kCheck, what + ": they are passed by sockets instead, which takes time at the start",
                      remedy);
    else
        findings.problem(kCheck, what + ": such ranks share no memory", remedy);
}

void say_unread(const std::string& who, const std::string& whom, int error, const std::string& remedy,
                Findings& findings) {
    findings.note(kCheck,
                  who + " cannot read the private memory of " + whom + " by process_vm_readv (" +
                      text_of(error) + "): large private buffers go in pieces, which is slower",
                  remedy);
}

void say_all_well(Findings& findings) {
    findings.ok(kCheck, "each opens the other's descriptors in /proc and reads the other's memory");
}

// In a child: offers memory, tells of it and waits until the other has tried. In the other: tries.
void be_tried(int tell, int wait) {
    const Offered offered(0);
    const Offer& offer = offered.offer();
    const std::int64_t words[] = {offer.process, offer.descriptor, static_cast<std::int64_t>(offer.cookie),
                                  static_cast<std::int64_t>(offer.address)};
    char end = 0;
    if (write(tell, words, sizeof words) == sizeof words) (void)!read(wait, &end, 1);
    _exit(0);
}

void try_other(int hear, int tell) {
    std::int64_t words[4];
    if (read(hear, words, sizeof words) != sizeof words) _exit(1);
    Offer offer{.rank = 0,
                .host = {},
                .process = words[0],
                .descriptor = words[1],
                .cookie = static_cast<std::uint64_t>(words[2]),
                .address = static_cast<std::uint64_t>(words[3])};
    const int errors[] = {open_error_of(offer), read_error_of(offer)};
    _exit(write(tell, errors, sizeof errors) == sizeof errors ? 0 : 1);
}

}  // namespace

void check_between_children(Findings& findings) {
    enum { kRead, kWrite };
    int offers[2], results[2], end[2];
    if (pipe(offers) != 0 || pipe(results) != 0 || pipe(end) != 0) return;
    const pid_t tried = fork();
    if (tried == 0) {
        close(end[kWrite]);
        be_tried(offers[kWrite], end[kRead]);
    }
    const pid_t trying = fork();
    if (trying == 0) try_other(offers[kRead], results[kWrite]);
    close(results[kWrite]);
    int errors[2] = {};
    const bool told = read(results[kRead], errors, sizeof errors) == sizeof errors;
    for (const int fd : {offers[0], offers[1], results[0], end[0], end[1]}) close(fd);
    for (const pid_t child : {tried, trying})
        if (child > 0) waitpid(child, nullptr, 0);
    if (!told) return;
    const std::string who = "a process", whom = "another process of this user";
    if (errors[0] == EACCES || errors[0] == EPERM)
        findings.note(kCheck, closed_in_words(who, whom, errors[0]),
                      "under mpiexec, coco doctor tries whether they can be passed by sockets instead");
    else if (errors[0] != 0)
        say_unopened(who, whom, errors[0], remedy_of_open(errors[0]), false, findings);
    if (errors[1] != 0) say_unread(who, whom, errors[1], remedy_of_read(errors[1]), findings);
    if (errors[0] == 0 && errors[1] == 0) say_all_well(findings);
}

namespace {

// Who failed to reach whom, of those that failed alike.
struct Pairs {
    std::set<std::int64_t> who, whom;
};

std::string ranks_in_words(const std::set<std::int64_t>& ranks) {
    return std::string(ranks.size() == 1 ? "rank " : "ranks ") + numbers({ranks.begin(), ranks.end()});
}
std::string whom_in_words(const Pairs& pairs) {
    return pairs.who == pairs.whom ? "each other" : ranks_in_words(pairs.whom);
}

}  // namespace

void check_between_ranks(const std::vector<Tried>& tried, Findings& findings) {
    std::map<std::tuple<int, std::string, bool>, Pairs> unopened;
    std::map<std::pair<int, std::string>, Pairs> unread;
    auto add = [](Pairs& pairs, std::int64_t who, std::int64_t whom) {
        pairs.who.insert(who);
        pairs.whom.insert(whom);
    };
    for (const Tried& rank : tried)
        for (const Reach& reach : rank.failed) {
            if (reach.open_error != 0)
                add(unopened[{reach.open_error, reach.open_remedy, reach.passed}], rank.rank, reach.mate);
            if (reach.read_error != 0)
                add(unread[{reach.read_error, reach.read_remedy}], rank.rank, reach.mate);
        }
    for (const auto& [key, pairs] : unopened)
        say_unopened(ranks_in_words(pairs.who), whom_in_words(pairs), std::get<0>(key), std::get<1>(key),
                     std::get<2>(key), findings);
    for (const auto& [key, pairs] : unread)
        say_unread(ranks_in_words(pairs.who), whom_in_words(pairs), key.first, key.second, findings);
    if (unopened.empty() && unread.empty()) say_all_well(findings);
}

}  // namespace coco::tools
