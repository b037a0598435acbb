// SPDX-License-Identifier: BSD-3-Clause
//
// The processes of `coco doctor` that one launcher has started, and that report together. On one host they
// meet at a socket, without the MPI library. The ranks of several hosts talk through the MPI library, which a
// child process of each loads: if it hangs, each host still reports for itself. Called by doctor.cc. Thread
// safety: none. Fails: by return value; nothing is waited for without end.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "os/process.h"

namespace coco::tools {

// What the launcher's variables say.
struct Launch {
    std::int64_t rank = os::launched_rank();               // -1: no launcher has started this process
    std::uint64_t ranks = os::launched_ranks();            // of the job; 0: unknown
    std::uint64_t node_ranks = os::launched_node_ranks();  // of the job on this host; 0: unknown
};

constexpr std::uint64_t kSecond_ns = 1'000'000'000u;

// Whole texts over a stream socket, whose other side may be lost or silent.
class TextSocket {
  public:
    explicit TextSocket(int fd = -1) : fd_(fd) {}
    ~TextSocket();
    TextSocket(TextSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    TextSocket& operator=(TextSocket&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    bool is_open() const { return fd_ >= 0; }
    int fd() const { return fd_; }
    bool send(const std::string& text);
    // Waits for each half of a text so long: its length, and its letters.
    std::optional<std::string> receive(std::uint64_t timeout_ns);

  private:
    int fd_;
};

class Company {
  public:
    using Texts = std::vector<std::string>;
    // sockets: the root's to the others, and another's to the root. A messenger's socket stands for all of
    // them. messenger: the child process at the other end; -1: there is none.
    Company(bool is_root, std::vector<TextSocket> sockets, std::int32_t messenger = -1);
    ~Company();
    Company(const Company&) = delete;
    Company& operator=(const Company&) = delete;
    bool is_root() const { return is_root_; }
    // Called by all, with texts that have no zero byte and are not empty. The root hears those that come in
    // time, its own among them, and all hear its answer; an empty answer is the last one. Returns: the
    // answer; to others than the root nothing if it is empty, or the root is lost.
    std::optional<std::string> confer(const std::string& mine,
                                      const std::function<std::string(const Texts&)>& answer);

  private:
    const bool is_root_;
    std::vector<TextSocket> sockets_;
    const std::int32_t messenger_;
};

// Meets on the host where the whole job is there. Else it meets by the MPI library in this file, if that may
// be used and works. trouble: why it does not work. A process may stay alone.
std::unique_ptr<Company> meet(const Launch& launch, const std::string& mpi_file, bool may_use_mpi,
                              std::string& trouble);
// Finds all ranks of the job by the MPI library. Returns: null if that fails, for the reason in `trouble`.
std::unique_ptr<Company> meet_job(const Launch& launch, const std::string& mpi_file, std::string& trouble);
// The messenger's part, which talks to its parent by a descriptor. Returns: its exit status.
int carry_messages(const std::string& mpi_file, int descriptor);

}  // namespace coco::tools
