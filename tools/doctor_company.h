// SPDX-License-Identifier: BSD-3-Clause
//
// The processes of `coco doctor` that one launcher has started and that report together. They find each other without the MPI
// library where they are all on one host: by a socket whose name is made of the process that has started them. Where there are
// more hosts they talk through the MPI library, which a child process of each loads (doctor_messenger.cc): if it hangs, the
// report of each host is still made. Called by doctor.cc. Thread safety: none. Fails: by return value; nothing is waited for
// without end.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace coco::tools {

// What the launcher's variables say.
struct Launch {
    std::int64_t rank = -1;        // -1: no launcher started this process
    std::uint64_t ranks = 0;       // of the job; 0: unknown
    std::uint64_t node_ranks = 0;  // of the job on this host; 0: unknown
};
Launch launched();

class Company {
  public:
    virtual ~Company() = default;
    virtual bool is_root() const = 0;
    // Called by all. Returns: at the root the texts of those that said something in time, the root's own among them.
    virtual std::vector<std::string> gather(const std::string& mine) = 0;
    // Called by all: the root's text. Returns: nothing if the root is lost.
    virtual std::optional<std::string> broadcast(const std::string& text) = 0;
};

// The company of a process that is alone.
std::unique_ptr<Company> alone();
// Finds the others of this host, as many as have come within some seconds.
std::unique_ptr<Company> meet_host(const Launch& launch);
// Finds all ranks of the job by the MPI library in this file. Returns: null if that fails, for the reason in `trouble`.
std::unique_ptr<Company> meet_job(const Launch& launch, const std::string& mpi_file, std::string& trouble);
// The child process's part of that, which talks to its parent by a descriptor. Returns: its exit status.
int carry_messages(const std::string& mpi_file, int descriptor);

}  // namespace coco::tools
