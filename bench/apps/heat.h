// SPDX-License-Identifier: BSD-3-Clause
//
// The common part of heat2d and heat3d: the grid of ranks, each rank's box of points, the loop and its times,
// and the proof that the result is right, to the bit, against a serial run on rank 0. The programs say how
// neighbours exchange what lies at their borders, and how a point changes. They know nothing of libcoco.
#pragma once
#include <mpi.h>

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace heat {

using Extent = std::array<int, 3>;  // planes, rows, columns; in 2-D one plane

// The points of one side of a box: outer times inner, with strides in doubles.
struct Face {
    double* first;
    int outer, inner;
    std::ptrdiff_t outer_stride, inner_stride;

    int points() const { return outer * inner; }
    void copy_to(double* packed) const;
    void copy_from(const double* packed) const;
};

// A box of points, columns next to each other, with a ghost point past either end of each dimension; behind
// them room for `spare` doubles. On the heap; all 0 at first.
class Box {
  public:
    Box(int dimensions, Extent points, std::size_t spare);

    const Extent& points() const { return points_; }
    std::ptrdiff_t plane() const { return plane_; }  // to the same point of the next plane, row
    std::ptrdiff_t row() const { return row_; }
    double* at(int x, int y, int z) { return &values_[index(x, y, z)]; }  // -1 and points() are ghosts
    const double* at(int x, int y, int z) const { return &values_[index(x, y, z)]; }
    double* begin() { return values_.data(); }
    double* spare() { return &values_[values_.size() - spare_]; }

    // Sides are numbered as MPI numbers Cartesian neighbours: first dimension down, up, second ...
    Face border(int side) { return face(side, 0); }
    Face ghosts(int side) { return face(side, 1); }

  private:
    std::size_t index(int x, int y, int z) const {
        return (x + ghost_planes_) * plane_ + (y + 1) * row_ + z + 1;
    }
    Face face(int side, int beyond);

    Extent points_;
    int dimensions_, ghost_planes_;
    std::ptrdiff_t plane_, row_;
    std::size_t spare_;
    std::vector<double> values_;
};

// The Cartesian communicator, and which part of all points is this rank's.
struct World {
    MPI_Comm comm;
    int dimensions, rank, ranks;
    bool periodic;
    Extent all, grid;  // points, ranks
};

// For each block that this rank receives, the side whose ghosts are in it. Where a dimension is periodic and
// has one or two ranks, both blocks come from the same neighbour, and which is first differs among MPI
// libraries, in MPICH 4.0 even among its functions: so `exchange` exchanges one int for each block by the
// function in question.
std::vector<int> ghost_sides(const World& world,
                             const std::function<void(const int* sent, int* received)>& exchange);

// How neighbours exchange borders. Both boxes of a program, which take turns, are laid out alike.
class Exchange {
  public:
    virtual ~Exchange() = default;
    virtual void pack(Box& box) = 0;
    virtual void call(Box& box) = 0;
    virtual void unpack(Box& box) = 0;
};

struct Program {
    const char* name;
    const char* usage;
    int dimensions;
    bool equal_parts;  // the size given is a rank's edge, not that of all points
    Extent default_points;
    std::size_t (*spare)(const Extent& points);
    std::unique_ptr<Exchange> (*exchange)(const World& world, Box& box);
    void (*relax)(const Box& from, Box& to);
};

// All of main. Returns: the exit status, 0 if the result is right.
int run(const Program& program, int argc, char** argv);

}  // namespace heat
