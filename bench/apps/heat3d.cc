// SPDX-License-Identifier: BSD-3-Clause
//
// Heat in three dimensions, by MPI_Neighbor_alltoall on a Cartesian communicator: each rank has a cube, whose
// six faces are equal and packed one after the other. Prints the time of an iteration (of the slowest rank),
// the share of communication (packing and MPI, all ranks) and a checksum; ends with status 1 if a bit differs
// from a serial run.
//
//   mpiexec -n 8 coco run build/mpich/bench/apps/heat3d 32 1000        # 32 x 32 x 32 points for each rank
#include "heat.h"

namespace {

constexpr int kSides = 6;
constexpr double kRate = 0.1;

class Exchange : public heat::Exchange {
  public:
    Exchange(const heat::World& world, heat::Box& box)
        : comm_(world.comm),
          points_(box.border(0).points()),
          sides_(heat::ghost_sides(world,
                                   [&](const int* sent, int* received) {
                                       MPI_Neighbor_alltoall(sent, 1, MPI_INT, received, 1, MPI_INT, comm_);
                                   })),
          sent_(static_cast<std::size_t>(kSides) * points_),
          received_(sent_.size()) {
        // Ghosts that no neighbour overwrites come back as they are.
        for (int i = 0; i < kSides; ++i) box.ghosts(sides_[i]).copy_to(&received_[i * points_]);
    }

    void pack(heat::Box& box) override {
        for (int i = 0; i < kSides; ++i) box.border(i).copy_to(&sent_[i * points_]);
    }

    void call(heat::Box&) override {
        MPI_Neighbor_alltoall(sent_.data(), points_, MPI_DOUBLE, received_.data(), points_, MPI_DOUBLE,
                              comm_);
    }

    void unpack(heat::Box& box) override {
        for (int i = 0; i < kSides; ++i) box.ghosts(sides_[i]).copy_from(&received_[i * points_]);
    }

  private:
    MPI_Comm comm_;
    int points_;  // of a face
    std::vector<int> sides_;
    std::vector<double> sent_, received_;
};

void relax_row(const heat::Box& from, heat::Box& to, int x, int y) {
    const std::ptrdiff_t plane = from.plane(), row = from.row();
    const double* u = from.at(x, y, 0);
    double* next = to.at(x, y, 0);
    for (int z = 0; z < from.points()[2]; ++z)
        next[z] = u[z] + kRate * (u[z - plane] + u[z + plane] + u[z - row] + u[z + row] + u[z - 1] +
                                  u[z + 1] - 6 * u[z]);
}

void relax(const heat::Box& from, heat::Box& to) {
    for (int x = 0; x < from.points()[0]; ++x)
        for (int y = 0; y < from.points()[1]; ++y) relax_row(from, to, x, y);
}

}  // namespace

int main(int argc, char** argv) {
    heat::Program program{};
    program.name = "heat3d";
    program.usage = "heat3d [EDGE [ITERATIONS [open|periodic|both]]]";
    program.dimensions = 3;
    program.equal_parts = true;
    program.default_points = {32, 32, 32};
    program.spare = [](const heat::Extent&) { return std::size_t{0}; };
    program.exchange = [](const heat::World& world, heat::Box& box) -> std::unique_ptr<heat::Exchange> {
        return std::make_unique<Exchange>(world, box);
    };
    program.relax = relax;
    return heat::run(program, argc, argv);
}
