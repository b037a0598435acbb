// SPDX-License-Identifier: BSD-3-Clause
//
// The processes of `coco doctor` that one launcher has started, and that report together. On one host they
// meet at a socket, without the MPI library. The ranks of several hosts talk through the MPI library, which a
// child process of each loads: if it hangs, each host still reports for itself. Called by doctor.cc. Thread
// safety: none. Fails: by return value; nothing is waited for without end.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "os/process.h"
#include "tools/texts_by_socket.h"

namespace coco::tools {

// What the launcher's variables say.
struct Launch {
    std::int64_t rank = os::launched_rank();               // -1: no launcher has started this process
    std::uint64_t ranks = os::launched_ranks();            // of the job; 0: unknown
    std::uint64_t node_ranks = os::launched_node_ranks();  // of the job on this host; 0: unknown
};

class Company {
  public:
    virtual ~Company() = default;
    virtual bool is_root() const = 0;
    // Called by all, with texts without zero bytes. Returns: at the root the texts that have come in time,
    // its own among them.
    virtual std::vector<std::string> gather(const std::string& mine) = 0;
    // Called by all: the root's text. Returns: nothing if the root is lost.
    virtual std::optional<std::string> broadcast(const std::string& text) = 0;
};

// Finds the others of this host, as many as have come within some seconds; a process may stay alone.
std::unique_ptr<Company> meet_host(const Launch& launch);
// Finds all ranks of the job by the MPI library in this file. Returns: null if that fails, for the reason in
// `trouble`.
std::unique_ptr<Company> meet_job(const Launch& launch, const std::string& mpi_file, std::string& trouble);
// Meets on the host where the whole job is there, and else by the MPI library, if that may be used and works.
std::unique_ptr<Company> meet(const Launch& launch, const std::string& mpi_file, bool may_use_mpi,
                              std::string& trouble);
// The child process's part of meet_job(), which talks to its parent by a descriptor. Returns: its exit
// status.
int carry_messages(const std::string& mpi_file, int descriptor);

}  // namespace coco::tools
