// SPDX-License-Identifier: BSD-3-Clause
//
// Random calls of all eleven collectives for as long as is asked, against the MPI library's own functions,
// with all that programs do beside them: communicators, topologies and datatypes come and go, memory of every
// kind is allocated, grown and freed, C's names and Fortran's take turns, and threads call at the same time,
// each on communicators of its own. What the ranks have of the machine must be flat: the last third of the
// time has no more than the third before it, of memory half of the time, else the most.
//
// usage: soak SECONDS [SEED]
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "mpi/footprint.h"
#include "mpi/fortran_calls.h"
#include "mpi/neighbor_player.h"
#include "mpi/random_player.h"

namespace {

using namespace test;
using Clock = std::chrono::steady_clock;

constexpr int kPlays = 30;  // of each player in a round
constexpr int kThreads = 2;
constexpr int kMostFailures = 5;
// What may come and go by itself: pools of the MPI libraries, pages that are kept for the next turn of a
// loop.
constexpr long kSlackKib = 16 << 10;
// In a short run the largest calls may come late, and with them what ranks keep for calls of that size.
constexpr double kLongRunSeconds = 600;
constexpr long kShortRunSlackKib = 160 << 10;
constexpr int kSlackDescriptors = 4, kSlackMappings = 60;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// Blocks of the heap that live from round to round, each full of its own number, while others come, grow and
// go.
class HeapBlocks {
  public:
    explicit HeapBlocks(std::uint64_t seed) : random_(seed), blocks_(kBlocks) {}
    HeapBlocks(const HeapBlocks&) = delete;
    HeapBlocks& operator=(const HeapBlocks&) = delete;
    ~HeapBlocks() {
        for (Block& block : blocks_) std::free(block.data);
    }

    void turn_over() {
        for (int i = 0; i < kBlocks / 4; ++i) {
            Block& block = blocks_[static_cast<std::size_t>(random_.below(kBlocks))];
            CHECK(block.is_intact());
            const auto bytes = static_cast<std::size_t>(1 + random_bytes(random_, 1));
            if (random_.once_in(2)) {
                std::free(block.data);
                block = {static_cast<unsigned char*>(std::malloc(bytes)), 0, 0};
            } else {
                block.data = static_cast<unsigned char*>(std::realloc(block.data, bytes));
                const Block kept{block.data, std::min(bytes, block.bytes), block.value};
                CHECK(block.data != nullptr && kept.is_intact());
            }
            if (block.data == nullptr) std::abort();
            block.bytes = bytes;
            block.value = static_cast<unsigned char>(random_.next());
            std::memset(block.data, block.value, bytes);
        }
    }

  private:
    static constexpr int kBlocks = 64;
    struct Block {
        unsigned char* data = nullptr;
        std::size_t bytes = 0;
        unsigned char value = 0;
        bool is_intact() const {
            return std::all_of(data, data + bytes, [this](unsigned char byte) { return byte == value; });
        }
    };
    Random random_;
    std::vector<Block> blocks_;
};

// A family of datatypes with holes that is made for a round.
class PassingFamily {
  public:
    explicit PassingFamily(Random& common) {
        const int run = 1 + common.below(5), gap = 1 + common.below(4), units = 2 * run;
        family = {"passing", sizeof(int), units, {{"int", MPI_INT, 1}}};
        family.types.push_back({"passing vector", vector(2, run, run + gap, MPI_INT), units});
        family.types.push_back({"passing contiguous", contiguous(units, MPI_INT), units});
        family.types.push_back({"passing indexed", indexed({run, run}, {run + gap, 0}, MPI_INT), units});
        family.types.push_back({"passing resized", resized(MPI_INT, -4 * gap, 4 * (gap + 2)), 1});
    }
    PassingFamily(const PassingFamily&) = delete;
    PassingFamily& operator=(const PassingFamily&) = delete;
    ~PassingFamily() {
        for (Type& type : family.types)
            if (type.handle != MPI_INT) MPI_Type_free(&type.handle);
    }
    Family family;
};

// A communicator of all ranks for one player of a round.
class Base {
  public:
    Base() { MPI_Comm_dup(MPI_COMM_WORLD, &handle); }
    Base(const Base&) = delete;
    Base& operator=(const Base&) = delete;
    ~Base() { MPI_Comm_free(&handle); }
    MPI_Comm handle = MPI_COMM_NULL;
};

// What the rank with most has.
struct Most {
    enum { kKib, kDescriptors, kMappings, kSegments, kFigures };
    int figures[kFigures] = {};

    void raise(const Most& other) {
        for (int i = 0; i < kFigures; ++i) figures[i] = std::max(figures[i], other.figures[i]);
    }
    static Most now() {
        const Footprint own;
        const Most mine{{static_cast<int>(own.kib), own.descriptors, own.mappings, own.segments}};
        Most most;
        MPI_Allreduce(mine.figures, most.figures, kFigures, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        return most;
    }
    std::string text() const {
        char line[160];
        std::snprintf(line, sizeof line, "%d KiB, %d descriptors, %d mappings, %d segments", figures[kKib],
                      figures[kDescriptors], figures[kMappings], figures[kSegments]);
        return line;
    }
};

// A third of the time.
class Third {
  public:
    void add(const Most& now) {
        most_.raise(now);
        kib_.push_back(now.figures[Most::kKib]);
    }
    const Most& most() const { return most_; }
    bool has_rounds() const { return !kib_.empty(); }
    // What is there half of the time: a round with large calls raises the most, and only what stays raises
    // this.
    int usual_kib() {
        if (!has_rounds()) return 0;
        const auto middle = kib_.begin() + static_cast<std::ptrdiff_t>(kib_.size() / 2);
        std::nth_element(kib_.begin(), middle, kib_.end());
        return *middle;
    }

  private:
    Most most_;
    std::vector<int> kib_;
};

class Soak {
  public:
    Soak(double seconds, std::uint64_t seed, bool threads)
        : seconds_(seconds),
          seed_(seed),
          has_threads_(threads),
          blocks_(mix(seed) + static_cast<unsigned>(world_rank())) {}

    void run() {
        for (double second = 0; failures < kMostFailures && second < seconds_; second = common_second()) {
            round();
            ++rounds_;
            const Most most = Most::now();
            thirds_[std::min(static_cast<int>(3 * second / seconds_), 2)].add(most);
            if (second >= told_ + 60) tell(told_ = second, most);
        }
        tell(common_second(), Most::now());
        check_flat();
        check_all_called();
    }

  private:
    // The time since the start on rank 0, so that all end in the same round; that at which any has failed
    // often is the end.
    double common_second() {
        double second = seconds_since(start_);
        MPI_Bcast(&second, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        int own = failures, most = 0;
        MPI_Allreduce(&own, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        return most < kMostFailures ? second : seconds_;
    }

    std::uint64_t next_seed() { return mix(seed_ + ++seeds_); }

    void round() {
        Random common(next_seed());
        const PassingFamily passing(common);
        play_alone(common, passing);
        blocks_.turn_over();
        if (has_threads_ && rounds_ % 4 == 3) play_in_threads(passing);
    }

    void play_alone(Random& common, const PassingFamily& passing) {
        const Base base;
        RandomPlayer any(next_seed(), base.handle);
        NeighborPlayer neighbors(next_seed(), base.handle);
        any.families.push_back(passing.family);
        neighbors.families.push_back(passing.family);
        for (int play = 0; play < 2 * kPlays; ++play) {
            const bool good = common.once_in(2) ? any.play() : neighbors.play();
            if (!good) complain();
        }
    }

    void play_in_threads(const PassingFamily& passing) {
        const Base bases[kThreads];
        std::vector<std::unique_ptr<RandomPlayer>> players;
        for (const Base& base : bases) {
            players.push_back(std::make_unique<RandomPlayer>(next_seed(), base.handle, false));
            players.back()->families.push_back(passing.family);
        }
        std::vector<std::thread> threads;
        for (auto& player : players)
            threads.emplace_back([&] {
                for (int play = 0; play < kPlays; ++play)
                    if (!player->play()) complain();
            });
        for (std::thread& thread : threads) thread.join();
    }

    void complain() const {
        std::fprintf(stderr, "  in round %d of seed %llu\n", rounds_, static_cast<unsigned long long>(seed_));
    }

    static std::uint64_t calls() {
        std::uint64_t all = 0;
        for (const auto& kinds : verified)
            for (const auto& kind : kinds) all += kind;
        return all;
    }

    void tell(double second, const Most& most) const {
        if (world_rank() != 0) return;
        std::printf("soak: %.1f min, %d rounds, %llu calls, %d failures; a rank has at most %s\n",
                    second / 60, rounds_, static_cast<unsigned long long>(calls()), failures.load(),
                    most.text().c_str());
        std::fflush(stdout);
    }

    // The first third is for what is made once.
    void check_flat() {
        const Most &before = thirds_[1].most(), &now = thirds_[2].most();
        const long slack_kib = seconds_ < kLongRunSeconds ? kShortRunSlackKib : kSlackKib;
        for (const Third& third : thirds_) CHECK(third.has_rounds());
        CHECK(thirds_[2].usual_kib() <= thirds_[1].usual_kib() + slack_kib);
        CHECK(now.figures[Most::kDescriptors] <= before.figures[Most::kDescriptors] + kSlackDescriptors);
        CHECK(now.figures[Most::kMappings] <= before.figures[Most::kMappings] + kSlackMappings);
        CHECK(now.figures[Most::kSegments] <= before.figures[Most::kSegments]);
        if (world_rank() != 0) return;
        std::printf("the most in each third of the time, and the usual memory:\n");
        for (Third& third : thirds_)
            std::printf("  %s; %d KiB\n", third.most().text().c_str(), third.usual_kib());
    }

    static void check_all_called() {
        for (const bool neighbor : {false, true})
            for (int kind = 0; kind < kKinds; ++kind) {
                const std::uint64_t count = verified[neighbor][kind];
                if (neighbor && static_cast<Kind>(kind) == Kind::bcast) continue;
                CHECK(count > 0);
                if (world_rank() == 0)
                    std::printf("  %s%s: %llu calls\n", neighbor ? "neighbor_" : "",
                                name_of(static_cast<Kind>(kind)), static_cast<unsigned long long>(count));
            }
    }

    const double seconds_;
    const std::uint64_t seed_;
    const bool has_threads_;
    const Clock::time_point start_ = Clock::now();
    std::uint64_t seeds_ = 0;
    int rounds_ = 0;
    double told_ = 0;
    Third thirds_[3];
    HeapBlocks blocks_;
};

}  // namespace

int main(int argc, char** argv) {
    char pool[Region::kPoolBytes];
    Region::stack_pool = pool;
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    const double seconds = argc > 1 ? std::atof(argv[1]) : 0;
    const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
    CHECK_SAYING(seconds > 0, "usage: soak SECONDS [SEED]");
#ifdef MPI_FORTRAN_LIBRARY
    CHECK(FortranLibrary::open(MPI_FORTRAN_LIBRARY));
#endif
    world_rank();  // asked for by one thread first
    if (seconds > 0) Soak(seconds, seed, provided == MPI_THREAD_MULTIPLE).run();
    const int verdict = finish("soak");
    MPI_Finalize();
    return verdict;
}
