// SPDX-License-Identifier: BSD-3-Clause
#include "tools/doctor_statement.h"

#include <fcntl.h>
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
#include "tools/child.h"
#include "tools/words.h"

namespace coco::tools {

Offered::Offered(std::int64_t rank) : word_(std::make_unique<std::uint64_t>(os::random_cookie())) {
    os::let_others_read();
    offer_ = {rank,   first_line("/proc/sys/kernel/random/boot_id"), getpid(), -1,
              *word_, reinterpret_cast<std::uint64_t>(word_.get())};
    const os::MemoryObject object = os::make_memory_object(os::page_bytes());
    if (object.fd >= 0 && pwrite(object.fd, word_.get(), sizeof *word_, 0) == sizeof *word_)
        offer_.descriptor = object.fd;
    door_ = std::make_unique<os::DescriptorDoor>(offer_.cookie);
}

Offered::~Offered() {
    if (offer_.descriptor >= 0) close(static_cast<int>(offer_.descriptor));
}

std::set<std::int64_t> Offered::pass(const std::vector<Offer>& mates) {
    constexpr std::uint64_t kPatience_ns = 2'000'000'000u;
    std::vector<std::uint64_t> cookies;
    for (const Offer& mate : mates) cookies.push_back(mate.cookie);
    std::vector<int> received(mates.size(), -1);
    if (door_->is_open() && offer_.descriptor >= 0)
        os::exchange_descriptors(*door_, static_cast<int>(offer_.descriptor), cookies, received,
                                 kPatience_ns);
    std::set<std::int64_t> came;
    for (std::size_t i = 0; i < mates.size(); ++i)
        if (received[i] >= 0 && close(received[i]) == 0) came.insert(mates[i].rank);
    return came;
}

namespace {

// In another pid namespace another process may have the mate's number, and another object its descriptor's.
constexpr int kNotIt = ESRCH;

int open_error_of(const Offer& mate) {
    const std::string path = filled({mate.process, mate.descriptor}, "/proc/{}/fd/{}");
    const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return errno;
    std::uint64_t cookie = 0;
    const bool is_it = pread(fd, &cookie, sizeof cookie, 0) == sizeof cookie && cookie == mate.cookie;
    close(fd);
    return is_it ? 0 : kNotIt;
}

int read_error_of(const Offer& mate) {
    std::uint64_t word = 0;
    const auto process = static_cast<pid_t>(mate.process);
    if (!os::read_process(process, reinterpret_cast<const void*>(mate.address), &word, sizeof word))
        return errno;
    return word == mate.cookie ? 0 : kNotIt;
}

constexpr const char* kOneNamespace = "run all ranks of a host in one container, or in one pid namespace";

std::string remedy_of_open(int error) {
    if (error == ENOENT || error == kNotIt)
        return access("/proc/self/fd", X_OK) == 0 ? kOneNamespace : "mount /proc";
    if (error == EACCES || error == EPERM)
        return "run all ranks of a host as one user, in one container or user namespace";
    return "allow more open files (ulimit -n)";
}

std::string remedy_of_read(int error) {
    if (error == ENOSYS) return "use a kernel with process_vm_readv";
    if (error == kNotIt) return kOneNamespace;
    std::uint64_t scope = 0;
    if (base::parse_number(first_line("/proc/sys/kernel/yama/ptrace_scope"), scope) && scope > 1)
        return "as root: sysctl kernel.yama.ptrace_scope=0";
    if (has_call_filter())
        return "let the container's system call filter (seccomp) pass process_vm_readv (docker "
               "--cap-add=SYS_PTRACE)";
    return "run all ranks of a host as one user, in one user namespace, from a file that the user may read";
}

// Passing descriptors may help.
bool is_closed(const Failure& failure) {
    return !failure.is_of_reading && (failure.error == EACCES || failure.error == EPERM);
}

// is_there: the mate is known to be in this pid namespace. A process that is not the mate is not read.
std::vector<Failure> try_mate(const Offer& mate, bool is_there) {
    std::vector<Failure> failed;
    if (const int error = open_error_of(mate); error != 0)
        failed.push_back({mate.rank, false, error, remedy_of_open(error)});
    if (is_there || failed.empty() || is_closed(failed[0]))
        if (const int error = read_error_of(mate); error != 0)
            failed.push_back({mate.rank, true, error, remedy_of_read(error)});
    return failed;
}

}  // namespace

std::optional<Tried> try_mates(Company& company, Offered& offered, const std::vector<Offer>& all) {
    const Offer& own = offered.offer();
    std::vector<Offer> mates = all;
    std::erase_if(mates, [&](const Offer& o) { return o.host != own.host || o.rank == own.rank; });
    Tried tried{own.rank, {}};
    for (const Offer& mate : mates)
        std::ranges::move(try_mate(mate, false), std::back_inserter(tried.failed));
    constexpr const char *kClosed = "closed", *kOpen = "open";
    auto any = [&](const Company::Texts& all) {
        return std::ranges::find(all, kClosed) != all.end() ? kClosed : kOpen;
    };
    const bool is_any_closed = std::ranges::any_of(tried.failed, is_closed);
    const std::optional<std::string> told = company.confer(is_any_closed ? kClosed : kOpen, any);
    if (!told) return std::nullopt;
    const std::set<std::int64_t> came = *told == kClosed ? offered.pass(mates) : std::set<std::int64_t>();
    for (Failure& failure : tried.failed) failure.passed = is_closed(failure) && came.contains(failure.mate);
    return tried;
}

namespace {

// who and whom: processes, in words.
Answers answer_of(const Failure& failure, const std::string& who, const std::string& whom) {
    const std::string why =
        failure.error == kNotIt ? "no such process in this pid namespace" : std::strerror(failure.error);
    if (failure.is_of_reading)
        return note({who, whom, why, failure.remedy},
                    "{} cannot read the private memory of {} by process_vm_readv ({}): large private buffers "
                    "go in pieces, which is slower -> {}");
    const std::string what = filled({who, whom, why}, "{} cannot open the descriptors of {} in /proc ({})");
    if (failure.passed)
        return note({what, failure.remedy},
                    "{}: they are passed by sockets instead, which takes time at the start -> {}");
    if (failure.mate < 0 && is_closed(failure))
        return note({what},
                    "{} -> under mpiexec, coco doctor tries whether they can be passed by sockets instead");
    return problem({what, failure.remedy}, "{}: such ranks share no memory -> {}");
}

Answers all_is_well() {
    return ok("each opens the other's descriptors in /proc and reads the other's memory");
}

std::string ranks_in_words(const std::set<std::int64_t>& ranks) {
    return numbered("rank", {ranks.begin(), ranks.end()});
}

}  // namespace

Answers answers_of_child() {
    const Offered offered(-1);
    const std::optional<Tried> tried = read_tried(text_of_child([&] {
        return text_of(Tried{-1, try_mate(offered.offer(), true)});
    }));
    if (!tried) return {};
    Answers answers;
    for (const Failure& failure : tried->failed)
        answers += answer_of(failure, "a process", "another process of this user");
    return answers.empty() ? all_is_well() : answers;
}

Answers answers_of_ranks(const std::vector<Tried>& tried) {
    using Ranks = std::set<std::int64_t>;
    std::map<std::tuple<bool, int, std::string, bool>, std::pair<Ranks, Ranks>> alike;
    for (const Tried& one : tried)
        for (const Failure& f : one.failed) {
            auto& [who, whom] = alike[{f.is_of_reading, f.error, f.remedy, f.passed}];
            who.insert(one.rank);
            whom.insert(f.mate);
        }
    Answers answers;
    for (const auto& [kind, ranks] : alike) {
        const auto& [is_of_reading, error, remedy, passed] = kind;
        const auto& [who, whom] = ranks;
        answers += answer_of({0, is_of_reading, error, remedy, passed}, ranks_in_words(who),
                             who == whom ? "each other" : ranks_in_words(whom));
    }
    return answers.empty() ? all_is_well() : answers;
}

}  // namespace coco::tools
