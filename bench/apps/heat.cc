// SPDX-License-Identifier: BSD-3-Clause
#include "heat.h"

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

namespace heat {
namespace {

constexpr double kBorderHeat[] = {1, 0, 0, 0.5, 0, 0};  // of sides without a neighbour

struct Options {
    Extent size;
    int iterations = 100;
    bool open = true, periodic = true;  // which runs
};

[[noreturn]] void give_up(const std::string& why) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) std::fprintf(stderr, "%s\n", why.c_str());
    MPI_Finalize();
    std::exit(2);
}

int read_int(const char*& at, const Program& p) {
    char* end;
    long value = std::strtol(at, &end, 10);
    if (end == at || value < 1 || value > 1 << 20) give_up(std::string("usage: ") + p.usage);
    at = end;
    return static_cast<int>(value);
}

// ROWSxCOLUMNS, or the EDGE of a cube.
Extent read_size(const char* at, const Program& p) {
    Extent size = {1, 1, 1};
    size[1] = read_int(at, p);
    if (p.equal_parts)
        size = {size[1], size[1], size[1]};
    else if (*at++ == 'x')
        size[2] = read_int(at, p);
    else
        give_up(std::string("usage: ") + p.usage);
    if (*at != 0) give_up(std::string("usage: ") + p.usage);
    return size;
}

Options read_options(const Program& p, int argc, char** argv) {
    Options o;
    o.size = argc > 1 ? read_size(argv[1], p) : p.default_points;
    if (argc > 2) {
        const char* at = argv[2];
        o.iterations = read_int(at, p);
        if (*at != 0) give_up(std::string("usage: ") + p.usage);
    }
    std::string kind = argc > 3 ? argv[3] : "both";
    o.open = kind != "periodic";
    o.periodic = kind != "open";
    if (argc > 4 || (kind != "both" && o.open && o.periodic)) give_up(std::string("usage: ") + p.usage);
    return o;
}

World world_of(const Program& p, const Options& o, bool periodic) {
    World w{};
    w.dimensions = p.dimensions;
    w.periodic = periodic;
    MPI_Comm_size(MPI_COMM_WORLD, &w.ranks);
    int dims[3] = {}, periods[3] = {periodic, periodic, periodic};
    MPI_Dims_create(w.ranks, p.dimensions, dims);
    MPI_Cart_create(MPI_COMM_WORLD, p.dimensions, dims, periods, 0, &w.comm);
    MPI_Comm_rank(w.comm, &w.rank);
    w.grid = p.dimensions == 3 ? Extent{dims[0], dims[1], dims[2]} : Extent{1, dims[0], dims[1]};
    for (int axis = 0; axis < 3; ++axis) {
        w.all[axis] = p.equal_parts ? o.size[axis] * w.grid[axis] : o.size[axis];
        if (w.all[axis] < w.grid[axis])
            give_up(std::string(p.name) + ": fewer points than ranks in a dimension");
    }
    return w;
}

struct Part {
    Extent first, points;
};

// The first ranks of a dimension have one point more where it does not come out even.
Part part_of(const World& w, int rank) {
    int coords[3] = {};
    MPI_Cart_coords(w.comm, rank, w.dimensions, coords);
    Part part{};
    for (int axis = 0; axis < 3; ++axis) {
        int i = axis - (3 - w.dimensions), at = i < 0 ? 0 : coords[i];
        int share = w.all[axis] / w.grid[axis], rest = w.all[axis] % w.grid[axis];
        part.points[axis] = share + (at < rest);
        part.first[axis] = at * share + std::min(at, rest);
    }
    return part;
}

std::uint64_t mix(std::uint64_t x) {  // splitmix64
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

// Calls f with each row of a part of a box, and the number of its first point among all points.
template <class Each>
void for_rows(const World& w, Part part, Each f) {
    for (int x = 0; x < part.points[0]; ++x)
        for (int y = 0; y < part.points[1]; ++y) {
            auto row = static_cast<std::uint64_t>(part.first[0] + x) * w.all[1] + (part.first[1] + y);
            f(x, y, row * w.all[2] + part.first[2]);
        }
}

// Random heat inside, the same in whatever parts, and that of the border in all ghosts.
void start(const World& w, const Part& part, Box& box) {
    for (int side = 0; side < 2 * w.dimensions; ++side) {
        Face ghosts = box.ghosts(side);
        ghosts.copy_from(std::vector<double>(ghosts.points(), kBorderHeat[side]).data());
    }
    for_rows(w, part, [&](int x, int y, std::uint64_t number) {
        for (int z = 0; z < part.points[2]; ++z)
            *box.at(x, y, z) = static_cast<double>(mix(number + z) >> 11) * 0x1p-53;
    });
}

struct Times {
    double all = 0, communication = 0, mpi = 0;  // seconds
};

Times iterate(const Program& p, Exchange& exchange, int iterations, Box& box, Box& next) {
    Times t;
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int i = 0; i < iterations; ++i) {
        double before = MPI_Wtime();
        exchange.pack(box);
        double enter = MPI_Wtime();
        exchange.call(box);
        double leave = MPI_Wtime();
        exchange.unpack(box);
        t.communication += MPI_Wtime() - before;
        t.mpi += leave - enter;
        p.relax(box, next);
        std::swap(box, next);
    }
    t.all = MPI_Wtime() - begin;
    return t;
}

// The same without MPI: one box of all points, whose ghosts are its own other side.
Box solve_alone(const Program& p, const World& w, int iterations) {
    Box box(w.dimensions, w.all, 0), next = box;
    Part whole{{}, w.all};
    start(w, whole, box);
    start(w, whole, next);
    for (int i = 0; i < iterations; ++i) {
        for (int side = 0; w.periodic && side < 2 * w.dimensions; ++side) {
            std::vector<double> packed(box.border(side).points());
            box.border(side ^ 1).copy_to(packed.data());
            box.ghosts(side).copy_from(packed.data());
        }
        p.relax(box, next);
        std::swap(box, next);
    }
    return box;
}

std::vector<double> values_of(const World& w, const Part& part, const Box& box, const Extent& at) {
    std::vector<double> values;
    for_rows(w, part, [&](int x, int y, std::uint64_t) {
        const double* row = box.at(at[0] + x, at[1] + y, at[2]);
        values.insert(values.end(), row, row + part.points[2]);
    });
    return values;
}

// Rank 0 compares all parts with a serial run. Returns, there: how many points differ in any bit.
long points_that_differ(const Program& p, const World& w, int iterations, const Box& box) {
    std::vector<double> mine = values_of(w, part_of(w, w.rank), box, {});
    if (w.rank != 0) {
        MPI_Send(mine.data(), static_cast<int>(mine.size()), MPI_DOUBLE, 0, 0, w.comm);
        return 0;
    }
    Box whole = solve_alone(p, w, iterations);
    long differ = 0;
    for (int r = 0; r < w.ranks; ++r) {
        Part part = part_of(w, r);
        std::vector<double> right = values_of(w, part, whole, part.first), theirs(right.size());
        if (r == 0)
            theirs = mine;
        else
            MPI_Recv(theirs.data(), static_cast<int>(theirs.size()), MPI_DOUBLE, r, 0, w.comm,
                     MPI_STATUS_IGNORE);
        for (std::size_t i = 0; i < right.size(); ++i)
            differ += std::memcmp(&right[i], &theirs[i], sizeof(double)) != 0;
    }
    return differ;
}

// The checksum of all points' bits and places, whatever the parts. Returns: it, on rank 0.
std::uint64_t checksum(const World& w, const Box& box) {
    std::uint64_t mine = 0, all = 0;
    Part part = part_of(w, w.rank);
    for_rows(w, part, [&](int x, int y, std::uint64_t number) {
        for (int z = 0; z < part.points[2]; ++z) {
            std::uint64_t bits;
            std::memcpy(&bits, box.at(x, y, z), sizeof bits);
            mine += mix(bits ^ mix(number + z));
        }
    });
    MPI_Reduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, 0, w.comm);
    return all;
}

std::string product(const World& w, const Extent& extent) {
    std::string text;
    for (int axis = 3 - w.dimensions; axis < 3; ++axis)
        text += (text.empty() ? "" : " x ") + std::to_string(extent[axis]);
    return text;
}

void report(const Program& p, const World& w, int iterations, const Times& mine) {
    double sums[3] = {mine.all, mine.communication, mine.mpi}, of_all[3], slowest;
    MPI_Reduce(sums, of_all, 3, MPI_DOUBLE, MPI_SUM, 0, w.comm);
    MPI_Reduce(&mine.all, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, w.comm);
    if (w.rank != 0) return;
    std::printf("%s, %s, %s points on %s ranks, %d iterations\n", p.name, w.periodic ? "periodic" : "open",
                product(w, w.all).c_str(), product(w, w.grid).c_str(), iterations);
    std::printf("  an iteration %.2f us, communication %.1f %%, in MPI %.1f %%\n", slowest / iterations * 1e6,
                of_all[1] / of_all[0] * 100, of_all[2] / of_all[0] * 100);
}

// Returns, on rank 0: whether the result is right.
bool solve(const Program& p, const Options& o, bool periodic) {
    World w = world_of(p, o, periodic);
    Part part = part_of(w, w.rank);
    Box box(w.dimensions, part.points, p.spare(part.points)), next = box;
    start(w, part, box);
    start(w, part, next);
    std::unique_ptr<Exchange> exchange = p.exchange(w, box);
    report(p, w, o.iterations, iterate(p, *exchange, o.iterations, box, next));
    std::uint64_t sum = checksum(w, box);
    long differ = points_that_differ(p, w, o.iterations, box);
    if (w.rank == 0)
        std::printf("  checksum %016" PRIx64 ", %ld points differ from the serial run\n", sum, differ);
    std::fflush(stdout);
    MPI_Comm_free(&w.comm);
    return differ == 0;
}

}  // namespace

void Face::copy_to(double* packed) const {
    for (int i = 0; i < outer; ++i)
        for (int j = 0; j < inner; ++j) *packed++ = first[i * outer_stride + j * inner_stride];
}

void Face::copy_from(const double* packed) const {
    for (int i = 0; i < outer; ++i)
        for (int j = 0; j < inner; ++j) first[i * outer_stride + j * inner_stride] = *packed++;
}

Box::Box(int dimensions, Extent points, std::size_t spare)
    : points_(points),
      dimensions_(dimensions),
      ghost_planes_(dimensions == 3),
      plane_(static_cast<std::ptrdiff_t>(points[1] + 2) * (points[2] + 2)),
      row_(points[2] + 2),
      spare_(spare),
      values_((points[0] + 2 * ghost_planes_) * plane_ + spare) {}

Face Box::face(int side, int beyond) {
    int axis = side / 2 + 3 - dimensions_, other = axis == 0 ? 1 : 0, last = axis == 2 ? 1 : 2;
    Extent at = {};
    at[axis] = side % 2 == 0 ? -beyond : points_[axis] - 1 + beyond;
    std::ptrdiff_t strides[3] = {plane_, row_, 1};
    return {this->at(at[0], at[1], at[2]), points_[other], points_[last], strides[other], strides[last]};
}

std::vector<int> ghost_sides(const World& w, const std::function<void(const int*, int*)>& exchange) {
    std::vector<int> sent(2 * w.dimensions), sides(2 * w.dimensions);
    for (int side = 0; side < 2 * w.dimensions; ++side) {
        sent[side] = side;
        sides[side] = side ^ 1;  // stays where there is no neighbour
    }
    exchange(sent.data(), sides.data());
    for (int& side : sides) side ^= 1;  // what leaves a box at its upper side enters at the next one's lower
    return sides;
}

int run(const Program& program, int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Options o = read_options(program, argc, argv);
    int right = 1;
    for (bool periodic : {false, true})
        if (periodic ? o.periodic : o.open) right &= solve(program, o, periodic);
    MPI_Bcast(&right, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return right ? 0 : 1;
}

}  // namespace heat
