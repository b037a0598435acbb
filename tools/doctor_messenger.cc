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

#include <climits>
#include <cstdlib>
#include <numeric>
#include <sstream>

#include "mpi/library.h"
#include "tools/child.h"
#include "tools/doctor_company.h"
#include "tools/launch.h"
#include "tools/preload.h"
#include "tools/words.h"

namespace coco::tools {
namespace {

// How texts begin that the parent sends, and how the child's first one begins.
constexpr char kGather = 'g', kBroadcast = 'b', kStarted = 's', kFailed = 'f';

class OfJob : public Company {
  public:
    OfJob(pid_t child, TextSocket socket) : child_(child), socket_(std::move(socket)) {}
    // A child that is at its end goes by itself, and one that hangs does not.
    ~OfJob() override {
        constexpr std::uint64_t kEnd_ns = 5 * kSecond_ns;
        const bool ends = socket_.send("") && socket_.receive(kEnd_ns).has_value();
        if (!ends) kill(child_, SIGKILL);
        waitpid(child_, nullptr, 0);
    }
    OfJob(const OfJob&) = delete;
    OfJob& operator=(const OfJob&) = delete;

    // Returns: why the MPI library has not started as a job of so many ranks; empty if it has. 0 ranks: any
    // number.
    std::string trouble_at_start(std::uint64_t ranks) {
        constexpr std::uint64_t kStart_ns = 60 * kSecond_ns;
        const std::optional<std::string> told = socket_.receive(kStart_ns);
        if (!told || told->empty())
            return "MPI did not start within a minute, or ended the process that started it";
        if (told->front() == kFailed) return told->substr(1);
        std::uint64_t found = 0;
        std::istringstream(told->substr(1)) >> rank_ >> found;
        if (ranks == 0 || found == ranks) return {};
        return filled({counted(found, "rank"), ranks}, "MPI_Init finds {} where the launcher speaks of {}");
    }
    bool is_root() const override { return rank_ == 0; }
    std::vector<std::string> gather(const std::string& mine) override {
        std::istringstream all(ask(kGather + mine + '\0').value_or(""));
        std::vector<std::string> texts;
        for (std::string text; std::getline(all, text, '\0');) texts.push_back(text);
        return texts;
    }
    std::optional<std::string> broadcast(const std::string& text) override {
        return ask(kBroadcast + (is_root() ? text : ""));
    }

  private:
    std::optional<std::string> ask(const std::string& text) {
        return socket_.send(text) ? socket_.receive(kText_ns) : std::nullopt;
    }
    const pid_t child_;
    TextSocket socket_;
    int rank_ = 0;
};

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

}  // namespace

std::unique_ptr<Company> meet_job(const Launch& launch, const std::string& mpi_file, std::string& trouble) {
    int ends[2];
    if (mpi_file.empty()) trouble = "no MPI library is known that fits the launcher";
    if (mpi_file.empty() || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return nullptr;
    TextSocket own_end(ends[0]);
    const pid_t child = fork();
    if (child == 0) become_messenger(mpi_file, ends[1]);
    close(ends[1]);
    if (child < 0) return nullptr;
    auto company = std::make_unique<OfJob>(child, std::move(own_end));
    trouble = company->trouble_at_start(launch.ranks);
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
    constexpr std::uint64_t kForever_ns = UINT64_MAX / 2;
    for (std::optional<std::string> asked; (asked = parent.receive(kForever_ns)) && !asked->empty();) {
        const std::string text = asked->substr(1);
        parent.send(asked->front() == kGather ? gather_by_mpi(text, rank, ranks) : broadcast_by_mpi(text));
    }
    mpi.Finalize();
    parent.send("end");
    return 0;
}

}  // namespace coco::tools
