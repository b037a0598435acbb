// SPDX-License-Identifier: BSD-3-Clause
//
// The processes of several hosts talk through the MPI library. It is loaded by a child process of each, which carries the
// texts: a library that hangs or dies takes nothing else with it.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "mpi/library.h"
#include "tools/child.h"
#include "tools/doctor_company.h"
#include "tools/doctor_preload.h"
#include "tools/texts_by_socket.h"

namespace coco::tools {
namespace {

constexpr std::uint64_t kStart_ns = 60 * kSecond_ns, kEnd_ns = 5 * kSecond_ns;
// How texts begin: those that the parent sends, and the child's first one.
constexpr char kGather = 'g', kBroadcast = 'b', kStarted = 's', kFailed = 'f';

// The child's part.

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

// "3:abc" for each text, one after the other.
std::string framed(const std::string& text) { return std::to_string(text.size()) + ":" + text; }

std::vector<std::string> unframed(const std::string& all) {
    std::vector<std::string> texts;
    for (std::size_t at = 0; at < all.size();) {
        const std::size_t colon = all.find(':', at);
        if (colon == std::string::npos) break;
        const std::size_t bytes = std::strtoull(all.c_str() + at, nullptr, 10);
        texts.push_back(all.substr(colon + 1, bytes));
        at = colon + 1 + bytes;
    }
    return texts;
}

// The parent's part.

class OfJob : public Company {
  public:
    OfJob(pid_t child, TextSocket socket) : child_(child), socket_(std::move(socket)) {}
    // A child that is at its end goes by itself, one that hangs does not.
    ~OfJob() override {
        const bool ends = socket_.send("") && socket_.receive(kEnd_ns).has_value();
        if (!ends) kill(child_, SIGKILL);
        waitpid(child_, nullptr, 0);
    }
    OfJob(const OfJob&) = delete;
    OfJob& operator=(const OfJob&) = delete;

    // Returns: whether the MPI library has started, as a job of so many ranks as the launcher says.
    bool starts(std::uint64_t ranks, std::string& trouble) {
        const std::optional<std::string> told = socket_.receive(kStart_ns);
        if (!told || told->empty()) {
            trouble = "MPI did not start within a minute, or ended the process that started it";
            return false;
        }
        if (told->front() == kFailed) {
            trouble = told->substr(1);
            return false;
        }
        const std::size_t space = told->find(' ');
        rank_ = std::atoi(told->c_str() + 1);
        const std::uint64_t found = std::strtoull(told->c_str() + space, nullptr, 10);
        if (ranks == 0 || found == ranks) return true;
        trouble = "MPI_Init finds " + std::to_string(found) + (found == 1 ? " rank" : " ranks") +
                  " where the launcher speaks of " + std::to_string(ranks);
        return false;
    }
    bool is_root() const override { return rank_ == 0; }
    std::vector<std::string> gather(const std::string& mine) override {
        return unframed(ask(kGather + framed(mine)).value_or(""));
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

// Without libcoco, of which the doctor needs nothing and which may be what is ill.
std::string preloads_without_libcoco() {
    std::string list;
    for (const Preload& preload : preloads())
        if (preload.where == "LD_PRELOAD" && preload.name.find("libcoco.so") == std::string::npos)
            list += (list.empty() ? "" : ":") + preload.name;
    return list;
}

// Ranks of a host that cannot share memory are what the doctor is asked about: MPI libraries crash or end the job where they
// try to share it with them.
void forgo_shared_memory() {
    setenv("MPIR_CVAR_NOLOCAL", "1", 1);            // MPICH
    setenv("OMPI_MCA_btl", "^vader,sm,smcuda", 1);  // Open MPI
    setenv("UCX_TLS", "^posix,sysv,cma", 1);        // both, where they go by UCX
}

void become_messenger(const std::string& mpi_file, int descriptor) {
    fcntl(descriptor, F_SETFD, 0);
    forgo_shared_memory();
    setenv("LD_PRELOAD", preloads_without_libcoco().c_str(), 1);
    std::error_code ignored;
    const std::string self = std::filesystem::read_symlink("/proc/self/exe", ignored);
    execv(self.c_str(),
          as_arguments({self, "doctor", "--carry-messages", std::to_string(descriptor), mpi_file}).data());
    _exit(127);
}

}  // namespace

std::unique_ptr<Company> meet_job(const Launch& launch, const std::string& mpi_file, std::string& trouble) {
    int ends[2];
    if (mpi_file.empty()) trouble = "no MPI library is known that fits the launcher";
    if (mpi_file.empty() || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return nullptr;
    const pid_t child = fork();
    if (child == 0) become_messenger(mpi_file, ends[1]);
    close(ends[1]);
    auto company = std::make_unique<OfJob>(child, TextSocket(ends[0]));
    if (child >= 0 && company->starts(launch.ranks, trouble)) return company;
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
    if (!parent.send(kStarted + std::to_string(rank) + " " + std::to_string(ranks))) return 1;
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
