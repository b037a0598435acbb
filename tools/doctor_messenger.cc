// SPDX-License-Identifier: BSD-3-Clause
//
// The processes of several hosts talk through the MPI library. A child process of each loads it and carries
// the texts: a library that hangs or dies takes nothing else with it.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <sstream>

#include "mpi/library.h"
#include "tools/child.h"
#include "tools/doctor_company.h"
#include "tools/launch.h"
#include "tools/words.h"

namespace coco::tools {
namespace {

// The messenger's first text begins with one of these.
constexpr char kStarted = 's', kFailed = 'f';
constexpr const char* kEnd = "end";  // its last text

// Hears whether the MPI library has started as a job of so many ranks; 0: any number. Returns: why it has
// not; empty if it has.
std::string trouble_at_start(TextSocket& messenger, std::uint64_t ranks, bool& is_root) {
    constexpr std::uint64_t kStart_ns = 60 * kSecond_ns;
    const std::optional<std::string> told = messenger.receive(kStart_ns);
    if (!told || told->empty())
        return "MPI did not start within a minute, or ended the process that started it";
    if (told->front() == kFailed) return told->substr(1);
    std::uint64_t rank = 0, found = 0;
    std::istringstream(told->substr(1)) >> rank >> found;
    is_root = rank == 0;
    if (ranks == 0 || found == ranks) return {};
    return filled({counted(found, "rank"), ranks}, "MPI_Init finds {} where the launcher speaks of {}");
}

void become_messenger(const std::string& mpi_file, int descriptor) {
    fcntl(descriptor, F_SETFD, 0);
    // Ranks that cannot share memory are what the doctor is asked about. MPI libraries crash or end the job
    // if they try to share it: they are told not to.
    setenv("MPIR_CVAR_NOLOCAL", "1", 1);            // MPICH
    setenv("OMPI_MCA_btl", "^vader,sm,smcuda", 1);  // Open MPI
    setenv("UCX_TLS", "^posix,sysv,cma", 1);        // both, where they use UCX
    // The doctor needs nothing of libcoco, which may be ill.
    std::vector<std::string> others;
    for (const Preload& preload : preloads())
        if (preload.where == "LD_PRELOAD" && !is_libcoco(preload.name)) others.push_back(preload.name);
    setenv("LD_PRELOAD", joined(others, ":").c_str(), 1);
    const std::string self = this_command(), number = std::to_string(descriptor);
    execv(self.c_str(), as_arguments({self, "doctor", "--carry-messages", number, mpi_file}).data());
    _exit(127);
}

// The texts of all ranks, one after the other, at rank 0.
std::string gather_by_mpi(const std::string& mine, int rank, int ranks) {
    const mpi::Library& mpi = mpi::lib();
    const auto bytes = static_cast<int>(mine.size());
    std::vector<int> sizes(static_cast<std::size_t>(ranks)), at(sizes.size());
    mpi.Gather(&bytes, sizeof bytes, mpi.byte, sizes.data(), sizeof bytes, mpi.byte, 0, mpi.comm_world);
    std::exclusive_scan(sizes.begin(), sizes.end(), at.begin(), 0);
    std::string all(
        rank == 0 ? static_cast<std::size_t>(at.back()) + static_cast<std::size_t>(sizes.back()) : 0, '\0');
    mpi.Gatherv(mine.data(), bytes, mpi.byte, all.data(), sizes.data(), at.data(), mpi.byte, 0,
                mpi.comm_world);
    return all;
}

std::string broadcast_by_mpi(std::string text) {
    const mpi::Library& mpi = mpi::lib();
    auto bytes = static_cast<int>(text.size());
    mpi.Bcast(&bytes, sizeof bytes, mpi.byte, 0, mpi.comm_world);
    text.resize(static_cast<std::size_t>(bytes));
    mpi.Bcast(text.data(), bytes, mpi.byte, 0, mpi.comm_world);
    return text;
}

// Each round takes a text of each rank to the root and the root's answer to all, until the answer is empty. A
// rank whose parent is lost has nothing to say.
void carry_rounds(TextSocket& parent, int rank, int ranks) {
    constexpr std::uint64_t kForever_ns = UINT64_MAX / 2;
    for (std::string answer = "none yet"; !answer.empty();) {
        const std::string mine = rank == 0 ? "" : parent.receive(kForever_ns).value_or("") + '\0';
        const std::string all = gather_by_mpi(mine, rank, ranks);
        answer.clear();
        if (rank == 0 && parent.send(all)) answer = parent.receive(kForever_ns).value_or("");
        answer = broadcast_by_mpi(answer);
        if (rank != 0) parent.send(answer);
    }
}

}  // namespace

// A messenger whose parent is silent comes to its end by itself, and one that hangs does not.
Company::~Company() {
    if (messenger_ < 0) return;
    constexpr std::uint64_t kEnd_ns = 5 * kSecond_ns;
    bool ends = false;
    for (TextSocket& socket : sockets_) {
        shutdown(socket.fd(), SHUT_WR);
        for (std::optional<std::string> text; !ends && (text = socket.receive(kEnd_ns));)
            ends = *text == kEnd;
    }
    if (!ends) kill(messenger_, SIGKILL);
    waitpid(messenger_, nullptr, 0);
}

std::unique_ptr<Company> meet_job(const Launch& launch, const std::string& mpi_file, std::string& trouble) {
    int ends[2];
    if (mpi_file.empty()) {
        trouble = "no MPI library is known that fits the launcher";
        return nullptr;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        trouble = std::strerror(errno);
        return nullptr;
    }
    std::vector<TextSocket> messenger;
    messenger.emplace_back(ends[0]);
    const pid_t child = fork();
    if (child == 0) become_messenger(mpi_file, ends[1]);
    if (child < 0) trouble = std::strerror(errno);
    close(ends[1]);
    if (child < 0) return nullptr;
    bool is_root = false;
    trouble = trouble_at_start(messenger[0], launch.ranks, is_root);
    auto company = std::make_unique<Company>(is_root, std::move(messenger), child);
    if (trouble.empty()) return company;
    // A launcher may end the job when such a child is killed: it stays until the report is out.
    static std::vector<std::unique_ptr<Company>> failed;
    failed.push_back(std::move(company));
    return nullptr;
}

int carry_messages(const std::string& mpi_file, int descriptor) {
    TextSocket parent(descriptor);
    auto fail = [&](const std::string& why) { return parent.send(kFailed + why) ? 1 : 2; };
    if (dlopen(mpi_file.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) return fail(dlerror());
    if (mpi::served() == nullptr) return fail(mpi_file + " is of no family that libcoco knows");
    const mpi::Library& mpi = mpi::lib();
    int rank = 0, ranks = 0;
    mpi.Init(nullptr, nullptr);
    mpi.Comm_rank(mpi.comm_world, &rank);
    mpi.Comm_size(mpi.comm_world, &ranks);
    // Nobody goes on before all have come so far.
    gather_by_mpi("", rank, ranks);
    broadcast_by_mpi("");
    if (!parent.send(kStarted + filled({rank, ranks}, "{} {}"))) return 1;
    carry_rounds(parent, rank, ranks);
    mpi.Finalize();
    parent.send(kEnd);
    return 0;
}

}  // namespace coco::tools
