// SPDX-License-Identifier: BSD-3-Clause
//
// Counting calls, per collective, communicator size and block-size class, and telling about them at finalize.
// Off unless COCO_STATS is set: then dispatch records each call. Each rank counts for itself; dispatch
// gathers the ranks' tables as bytes (a Row is trivially copyable) and rank 0 reports. Thread safety:
// record() may be called from any thread (a lock per table; only when stats are on).
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace coco::stats {

// Why a call was left to the MPI library. Names and hints are in reason.cc's table; append only.
enum class Reason : std::uint8_t {
    none,         // not handed back
    policy,       // the policy says mpi
    disabled,     // COCO_DISABLE
    not_set_up,   // the communicator has not yet shown that it is used again
    single_rank,  // a communicator of one rank
    intercommunicator,
    several_nodes,       // the chosen algorithm needs one node
    no_shared_heap,      // some rank has no shared heap or could not map a peer's
    send_private,        // a send buffer outside the shared heap and too large to stage
    recv_private,        // likewise the receive buffer
    datatype,            // a derived datatype that is not contiguous, and too large to stage
    in_place,            // in place, and no shared memory for the copy
    bad_arguments,       // arguments that MPI refuses: it raises the error
    peer,                // another rank could not take part; the reason is counted there
    not_initialized,     // MPI is not initialised, or finalised already: it raises the error
    other_world,         // ranks of another MPI_COMM_WORLD: spawned or connected
    one_node,            // the chosen algorithm is for several nodes
    many_communicators,  // several nodes: MPI has communicators for so many only
    switched_off,        // COCO_DISABLE=1, or ranks with unequal settings
    device_memory,       // a buffer of some rank is in memory of a device
    kReasons
};
// "send_private", "send buffer outside the shared heap", "allocate it with malloc".
struct ReasonText {
    const char* name;
    const char* what;
    const char* hint;  // empty if there is none
};
const ReasonText& text_of(Reason reason);

inline constexpr int kTimeClasses = 40;  // powers of two of nanoseconds, for the median

// The size of a call that was handed back before anybody looked at it.
inline constexpr std::uint64_t kUnknownBytes = UINT64_MAX;
inline constexpr std::uint8_t kUnknownClass = 255;

// One line of the table: all calls with equal keys on one rank.
struct Row {
    // keys
    std::uint8_t collective;   // base::Collective
    std::uint8_t block_class;  // 0: zero bytes, k: [2^(k-1), 2^k) bytes; kUnknownClass (v and w forms use the
                               // largest block)
    Reason reason;             // none: run by us
    char algorithm[29];        // name, or "mpi"
    std::int32_t comm_ranks;
    std::int32_t rank;  // world rank that counted
    // counts
    std::uint64_t calls;
    std::uint64_t bytes;  // sent by this rank
    // Messages and bytes that this rank put on the wire between nodes for these calls, with those that it
    // passed on for others; a message over 1 GiB counts as several, as MPI gets several.
    std::uint64_t messages;
    std::uint64_t wire_bytes;
    std::uint64_t total_ns;
    std::uint64_t wait_ns;                   // the part of total_ns in waits for other ranks
    std::uint64_t staged;                    // calls in which this rank staged a buffer
    std::uint64_t time_class[kTimeClasses];  // calls by floor(log2(ns))
};

struct Call {
    std::uint8_t collective;
    std::uint64_t block_bytes;  // or kUnknownBytes
    Reason reason;
    const char* algorithm;
    std::int32_t comm_ranks;
    std::uint64_t bytes;
    std::uint64_t messages;
    std::uint64_t wire_bytes;
    std::uint64_t total_ns;
    std::uint64_t wait_ns;
    bool staged;
};

// What was learned for one kind of calls (choose/journal.h).
struct Learned {
    std::uint8_t collective;
    std::int32_t nodes, ranks_per_node;
    std::uint64_t block_first, block_last;  // bytes; 0 and UINT64_MAX: of any size
    struct Candidate {
        std::string name;
        std::int64_t time_ns;                  // 0: it was not looked at
        std::int64_t low_ns = 0, high_ns = 0;  // by its shorter and its longer lap
    };
    std::vector<Candidate> candidates;  // the rules' choice first
    std::size_t incumbent;
    std::uint64_t calls, looks, changes;
    std::int64_t spent_ns;
};

// Reads COCO_STATS: "1", "0" or unset, or a *.json name. Returns: false if the value is none of these.
bool configure();
bool enabled();
void record(const Call& call);
// This rank's rows; `rank` filled in.
std::vector<Row> rows(std::int32_t world_rank);
// The ranks whose rows there are.
enum class Counted : std::uint8_t { all_ranks, rank_0 };
// The texts that rank 0 prints or writes.
std::string table(std::span<const Row> all, std::int32_t world_ranks, Counted counted = Counted::all_ranks,
                  std::span<const Learned> learned = {});
std::string json(std::span<const Row> all, std::int32_t world_ranks, std::span<const Learned> learned = {});
// Table on stderr or JSON to the file, as COCO_STATS says. Returns: false if the file cannot be written: that
// is logged, and the table comes instead.
bool report(std::span<const Row> all, std::int32_t world_ranks, Counted counted = Counted::all_ranks,
            std::span<const Learned> learned = {});

}  // namespace coco::stats
