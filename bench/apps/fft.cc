// SPDX-License-Identifier: BSD-3-Clause
//
// The three-dimensional FFT of the papers as a program: complex transforms by FFTW, forward and back, of a
// box that the ranks hold as slabs (divided along one axis) or as pencils (along two). Between the axes all
// ranks exchange blocks: by MPI_Alltoall, by MPI_Alltoallv, both packed and unpacked, or by MPI_Alltoallw
// with subarrays, from and to where the data lie.
//
// usage: mpiexec -n N [coco run] fft [OPTION]...
//   --class S|W|A|B    the boxes of the NAS benchmark FT: 64x64x64, 128x128x32, 256x256x128, 512x256x256; S if not given
//   --box AxBxC        another one
//   --split slab|pencil, --by alltoall|alltoallv|alltoallw    one of each; all if not given
//   --arrays heap|static    malloc's or static arrays, as Fortran's are; heap if not given
//   --steps N          transforms, forward and back, 10 if not given; --check: say only whether the results are right
//
// Prints for each way the time of the slowest rank for a transform forward and back: the first one's, the
// median of all, and of that the exchanges; then whether the last one gave back what it was given.
#include <fftw3.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using Complex = std::complex<double>;
using Shape = std::array<int, 3>;

enum class By { alltoall, alltoallv, alltoallw };
constexpr std::string_view kBys[] = {"alltoall", "alltoallv", "alltoallw"};
constexpr std::string_view kSplits[] = {"slab", "pencil"};

[[noreturn]] void stop(const std::string& why) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) std::fprintf(stderr, "fft: %s\n", why.c_str());
    MPI_Finalize();
    std::exit(2);
}

std::size_t points(const Shape& shape) {
    return static_cast<std::size_t>(shape[0]) * static_cast<std::size_t>(shape[1]) *
           static_cast<std::size_t>(shape[2]);
}

// The part of an axis that a rank has.
struct Part {
    int begin, count;
};
Part part_of(int axis_points, int rank, int ranks) {
    const int begin = static_cast<int>(static_cast<long>(axis_points) * rank / ranks);
    return {begin, static_cast<int>(static_cast<long>(axis_points) * (rank + 1) / ranks) - begin};
}

// The part of a box that a rank of a group has to do with: all of it but for one axis.
struct Piece {
    Shape shape;  // of all that the rank holds
    int axis;
    Part part;
    Shape sizes() const {
        Shape sizes = shape;
        sizes[static_cast<std::size_t>(axis)] = part.count;
        return sizes;
    }
    Shape starts() const {
        Shape starts{0, 0, 0};
        starts[static_cast<std::size_t>(axis)] = part.begin;
        return starts;
    }
    // Calls act(first point of the run in the box, its length) for each run of a piece.
    template <class Act>
    void for_each_run(Act act) const {
        const Shape n = sizes(), at = starts();
        for (int i = 0; i < n[0]; ++i)
            for (int j = 0; j < n[1]; ++j)
                act((static_cast<std::size_t>(at[0] + i) * static_cast<std::size_t>(shape[1]) +
                     static_cast<std::size_t>(at[1] + j)) *
                            static_cast<std::size_t>(shape[2]) +
                        static_cast<std::size_t>(at[2]),
                    static_cast<std::size_t>(n[2]));
    }
};

// The arrays of a rank: its data, and two more for what is sent and received, or where the data come to.
struct Arrays {
    Complex *data, *send, *recv;
};

constexpr std::size_t kStaticPoints = std::size_t{8} << 20;  // class A on one rank
double g_static[3][2 * kStaticPoints];

class Memory {
  public:
    Memory(bool is_static, std::size_t bytes_each) {
        if (is_static && bytes_each > sizeof g_static[0])
            stop("static arrays have 8 Mi points of a rank at most");
        for (std::size_t i = 0; i < 3; ++i) {
            void* memory = is_static ? g_static[i] : std::malloc(bytes_each);
            if (memory == nullptr) stop("no memory");
            (is_static ? borrowed_ : owned_)[i] = static_cast<Complex*>(memory);
        }
    }
    ~Memory() {
        for (Complex* memory : owned_) std::free(memory);
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    Arrays arrays() const {
        auto at = [&](std::size_t i) { return owned_[i] != nullptr ? owned_[i] : borrowed_[i]; };
        return {at(0), at(1), at(2)};
    }

  private:
    Complex *owned_[3] = {}, *borrowed_[3] = {};
};

// The exchange in a group that divides axis `from` before it and axis `to` behind it; or the way back.
class Exchange {
  public:
    // before: what the rank holds then. from_points, to_points: of the whole axes.
    Exchange(MPI_Comm group, By by, const Shape& before, int from, int from_points, int to, int to_points)
        : group_(group), by_(by) {
        MPI_Comm_rank(group, &rank_);
        MPI_Comm_size(group, &ranks_);
        after_ = before;
        after_[static_cast<std::size_t>(from)] = from_points;
        after_[static_cast<std::size_t>(to)] = part_of(to_points, rank_, ranks_).count;
        for (int r = 0; r < ranks_; ++r) {
            pieces_[0].push_back({before, to, part_of(to_points, r, ranks_)});
            pieces_[1].push_back({after_, from, part_of(from_points, r, ranks_)});
        }
        for (int side = 0; side < 2; ++side) describe(pieces_[side], sides_[side]);
        if (by == By::alltoall && (from_points % ranks_ != 0 || to_points % ranks_ != 0))
            stop("MPI_Alltoall needs axes that the ranks divide");
    }
    ~Exchange() {
        for (Side& side : sides_)
            for (MPI_Datatype& type : side.types) MPI_Type_free(&type);
    }
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    const Shape& after() const { return after_; }
    void there(Arrays& arrays) { run(arrays, 0); }
    void back(Arrays& arrays) { run(arrays, 1); }

  private:
    struct Side {
        std::vector<int> counts, starts, ones, zeros;
        std::vector<MPI_Datatype> types;
    };

    void describe(const std::vector<Piece>& pieces, Side& side) const {
        int start = 0;
        for (const Piece& piece : pieces) {
            const Shape sizes = piece.sizes(), starts = piece.starts();
            side.counts.push_back(static_cast<int>(points(sizes)));
            side.starts.push_back(start);
            start += side.counts.back();
            side.ones.push_back(points(sizes) != 0 ? 1 : 0);
            side.zeros.push_back(0);
            if (by_ != By::alltoallw) continue;
            MPI_Datatype type = MPI_DATATYPE_NULL;
            if (points(sizes) == 0)
                MPI_Type_contiguous(0, MPI_C_DOUBLE_COMPLEX, &type);
            else
                MPI_Type_create_subarray(3, piece.shape.data(), sizes.data(), starts.data(), MPI_ORDER_C,
                                         MPI_C_DOUBLE_COMPLEX, &type);
            MPI_Type_commit(&type);
            side.types.push_back(type);
        }
    }
    void run(Arrays& arrays, std::size_t from) {
        if (ranks_ == 1) return;
        const Side &sends = sides_[from], &receives = sides_[1 - from];
        if (by_ == By::alltoallw) {
            MPI_Alltoallw(arrays.data, sends.ones.data(), sends.zeros.data(), sends.types.data(), arrays.send,
                          receives.ones.data(), receives.zeros.data(), receives.types.data(), group_);
            std::swap(arrays.data, arrays.send);
            return;
        }
        Complex* at = arrays.send;
        for (const Piece& piece : pieces_[from])
            piece.for_each_run([&](std::size_t first, std::size_t count) {
                at = std::copy_n(arrays.data + first, count, at);
            });
        if (by_ == By::alltoall)
            MPI_Alltoall(arrays.send, sends.counts[0], MPI_C_DOUBLE_COMPLEX, arrays.recv, receives.counts[0],
                         MPI_C_DOUBLE_COMPLEX, group_);
        else
            MPI_Alltoallv(arrays.send, sends.counts.data(), sends.starts.data(), MPI_C_DOUBLE_COMPLEX,
                          arrays.recv, receives.counts.data(), receives.starts.data(), MPI_C_DOUBLE_COMPLEX,
                          group_);
        const Complex* source = arrays.recv;
        for (const Piece& piece : pieces_[1 - from])
            piece.for_each_run([&](std::size_t first, std::size_t count) {
                std::copy_n(source, count, arrays.data + first);
                source += count;
            });
    }

    MPI_Comm group_;
    By by_;
    int rank_ = 0, ranks_ = 0;
    Shape after_{};
    std::vector<Piece> pieces_[2];  // by rank: before and behind
    Side sides_[2];
};

// One-dimensional transforms of all lines along an axis of a box.
class Lines {
  public:
    Lines(const Shape& shape, int axis, int sign, Complex* any) {
        const int n = shape[static_cast<std::size_t>(axis)];
        int stride = 1;
        for (int i = axis + 1; i < 3; ++i) stride *= shape[static_cast<std::size_t>(i)];
        // Lines side by side make a batch; along the last axis all are one.
        batches_ = axis == 1 ? shape[0] : 1;
        batch_points_ = static_cast<std::size_t>(n) * static_cast<std::size_t>(stride);
        const int lines = axis == 2 ? shape[0] * shape[1] : stride, apart = axis == 2 ? n : 1;
        auto* at = reinterpret_cast<fftw_complex*>(any);
        if (points(shape) != 0)
            plan_ = fftw_plan_many_dft(1, &n, lines, at, nullptr, stride, apart, at, nullptr, stride, apart,
                                       sign, FFTW_ESTIMATE | FFTW_UNALIGNED);
    }
    ~Lines() {
        if (plan_ != nullptr) fftw_destroy_plan(plan_);
    }
    Lines(const Lines&) = delete;
    Lines& operator=(const Lines&) = delete;
    void run(Complex* data) const {
        for (int i = 0; i < batches_ && plan_ != nullptr; ++i) {
            auto* at = reinterpret_cast<fftw_complex*>(data + static_cast<std::size_t>(i) * batch_points_);
            fftw_execute_dft(plan_, at, at);
        }
    }

  private:
    fftw_plan plan_ = nullptr;
    int batches_ = 1;
    std::size_t batch_points_ = 0;
};

struct Times {
    double all_s, exchange_s;
};

// A box in pencils; slabs are pencils of a grid with one column.
class Transform {
  public:
    Transform(const Shape& box, By by, bool is_slab, bool is_static) : box_(box) {
        int ranks = 0, grid[2] = {0, is_slab ? 1 : 0};
        MPI_Comm_size(MPI_COMM_WORLD, &ranks);
        MPI_Dims_create(ranks, 2, grid);
        const int circular[2] = {0, 0}, rows[2] = {0, 1}, columns[2] = {1, 0};
        MPI_Comm all;
        MPI_Cart_create(MPI_COMM_WORLD, 2, grid, circular, 0, &all);
        MPI_Cart_sub(all, rows, &row_);
        MPI_Cart_sub(all, columns, &column_);
        int here[2], rank = 0;
        MPI_Comm_rank(all, &rank);
        MPI_Cart_coords(all, rank, 2, here);
        MPI_Comm_free(&all);
        const Part first = part_of(box[0], here[0], grid[0]), second = part_of(box[1], here[1], grid[1]);
        begin_ = {first.begin, second.begin, 0};
        start_ = {first.count, second.count, box[2]};
        in_rows_ = std::make_unique<Exchange>(row_, by, start_, 1, box[1], 2, box[2]);
        in_columns_ = std::make_unique<Exchange>(column_, by, in_rows_->after(), 0, box[0], 1, box[1]);
        const Shape shapes[] = {in_columns_->after(), in_rows_->after(), start_};
        std::size_t most = 1;
        for (const Shape& shape : shapes) most = std::max(most, points(shape));
        memory_ = std::make_unique<Memory>(is_static, most * sizeof(Complex));
        arrays_ = memory_->arrays();
        for (int axis = 0; axis < 3; ++axis)
            for (int sign : {FFTW_FORWARD, FFTW_BACKWARD})
                lines_.push_back(std::make_unique<Lines>(shapes[axis], axis, sign, arrays_.data));
    }
    ~Transform() {
        in_rows_.reset();
        in_columns_.reset();
        MPI_Comm_free(&row_);
        MPI_Comm_free(&column_);
    }
    Transform(const Transform&) = delete;
    Transform& operator=(const Transform&) = delete;

    void fill() {
        for_each_point([](Complex& point, double wanted) { point = {wanted, -wanted}; });
    }
    // The largest difference from what fill() gave, on all ranks.
    double error() {
        double most = 0, of_all = 0;
        for_each_point([&](const Complex& point, double wanted) {
            most = std::max(most, std::abs(point - Complex{wanted, -wanted}));
        });
        MPI_Allreduce(&most, &of_all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        return of_all;
    }
    Times run() {
        exchange_s_ = 0;
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        lines(2, FFTW_FORWARD);
        timed([&] { in_rows_->there(arrays_); });
        lines(1, FFTW_FORWARD);
        timed([&] { in_columns_->there(arrays_); });
        lines(0, FFTW_FORWARD);
        lines(0, FFTW_BACKWARD);
        timed([&] { in_columns_->back(arrays_); });
        lines(1, FFTW_BACKWARD);
        timed([&] { in_rows_->back(arrays_); });
        lines(2, FFTW_BACKWARD);
        const double scale = 1 / static_cast<double>(points(box_));
        for (std::size_t i = 0; i < points(start_); ++i) arrays_.data[i] *= scale;
        const double mine[2] = {MPI_Wtime() - begin, exchange_s_};
        double slowest[2] = {};
        MPI_Allreduce(mine, slowest, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        return {slowest[0], slowest[1]};
    }

  private:
    void lines(int axis, int sign) {
        lines_[static_cast<std::size_t>(2 * axis + (sign == FFTW_BACKWARD ? 1 : 0))]->run(arrays_.data);
    }
    template <class Act>
    void timed(Act act) {
        const double begin = MPI_Wtime();
        act();
        exchange_s_ += MPI_Wtime() - begin;
    }
    // Calls act(point, a number that tells it from its neighbours).
    template <class Act>
    void for_each_point(Act act) {
        std::size_t at = 0;
        for (int i = 0; i < start_[0]; ++i)
            for (int j = 0; j < start_[1]; ++j)
                for (int k = 0; k < start_[2]; ++k) {
                    const auto number =
                        static_cast<unsigned>(((begin_[0] + i) * box_[1] + begin_[1] + j) * box_[2] + k);
                    act(arrays_.data[at++], static_cast<double>(number * 2654435761u) / 4294967296.0);
                }
    }

    Shape box_, begin_{}, start_{};
    MPI_Comm row_ = MPI_COMM_NULL, column_ = MPI_COMM_NULL;
    std::unique_ptr<Exchange> in_rows_, in_columns_;
    std::unique_ptr<Memory> memory_;
    Arrays arrays_{};
    std::vector<std::unique_ptr<Lines>> lines_;
    double exchange_s_ = 0;
};

struct Options {
    Shape box{64, 64, 64};
    std::string name = "S", split, by;
    bool is_static = false, only_checks = false;
    int steps = 10;
};

Shape box_of_class(const std::string& name) {
    if (name == "S") return {64, 64, 64};
    if (name == "W") return {128, 128, 32};
    if (name == "A") return {256, 256, 128};
    if (name == "B") return {512, 256, 256};
    stop("a class is S, W, A or B");
}

Options parse(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (word == "--check") {
            options.only_checks = true;
            continue;
        }
        if (i + 1 == argc) stop("a value is missing behind " + word);
        const std::string value = argv[++i];
        int used = 0;
        if (word == "--class") {
            options.box = box_of_class(options.name = value);
        } else if (word == "--box") {
            options.name = value;
            Shape& box = options.box;
            if (std::sscanf(value.c_str(), "%dx%dx%d%n", &box[0], &box[1], &box[2], &used) != 3 ||
                used != static_cast<int>(value.size()) || std::ranges::min(box) < 1 ||
                std::ranges::max(box) > 4096)
                stop("a box is AxBxC, each 1 to 4096");
        } else if (word == "--split" && std::ranges::find(kSplits, value) != std::end(kSplits)) {
            options.split = value;
        } else if (word == "--by" && std::ranges::find(kBys, value) != std::end(kBys)) {
            options.by = value;
        } else if (word == "--arrays" && (value == "heap" || value == "static")) {
            options.is_static = value == "static";
        } else if (word == "--steps" && std::atoi(value.c_str()) > 0) {
            options.steps = std::atoi(value.c_str());
        } else {
            stop("unknown: " + word + " " + value);
        }
    }
    return options;
}

// Returns: whether the results are right.
bool run(const Options& options, By by, std::string_view split) {
    Transform transform(options.box, by, split == "slab", options.is_static);
    transform.fill();
    std::vector<Times> all;
    for (int step = 0; step < options.steps; ++step) all.push_back(transform.run());
    const bool right = transform.error() < 1e-10;
    const Times first = all.front();
    std::ranges::sort(all, {}, &Times::all_s);
    const Times median = all[all.size() / 2];
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank != 0) return right;
    std::printf("%-10s %-7s %-10s %-7s", options.name.c_str(), std::string(split).c_str(),
                std::string(kBys[static_cast<std::size_t>(by)]).c_str(),
                options.is_static ? "static" : "heap");
    if (!options.only_checks)
        std::printf(" first %9.3f ms  median %9.3f ms  exchange %9.3f ms", first.all_s * 1e3,
                    median.all_s * 1e3, median.exchange_s * 1e3);
    std::printf(" %s\n", right ? "right" : "WRONG");
    return right;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const Options options = parse(argc, argv);
    bool right = true;
    for (const std::string_view split : kSplits)
        for (const By by : {By::alltoall, By::alltoallv, By::alltoallw})
            if ((options.split.empty() || options.split == split) &&
                (options.by.empty() || options.by == kBys[static_cast<std::size_t>(by)]))
                right = run(options, by, split) && right;
    MPI_Finalize();
    return right ? 0 : 1;
}
