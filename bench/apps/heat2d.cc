// SPDX-License-Identifier: BSD-3-Clause
//
// Heat in two dimensions, by MPI_Neighbor_alltoallv on a Cartesian communicator: rows are sent from where
// they lie and received where they belong, columns are packed. Regions differ in size where the points do not
// come out even. Prints the time of an iteration (of the slowest rank), the share of communication (packing
// and MPI, all ranks) and a checksum; ends with status 1 if a bit differs from a serial run.
//
//   mpiexec -n 4 coco run build/mpich/bench/apps/heat2d 509x701 1000
#include "heat.h"

namespace {

constexpr double kRate = 0.1;

class Exchange : public heat::Exchange {
  public:
    Exchange(const heat::World& world, heat::Box& box) : comm_(world.comm) {
        rows_ = box.points()[1];
        std::vector<int> sides = heat::ghost_sides(world, [&](const int* sent, int* received) {
            const int ones[] = {1, 1, 1, 1}, starts[] = {0, 1, 2, 3};
            MPI_Neighbor_alltoallv(sent, ones, starts, MPI_INT, received, ones, starts, MPI_INT, comm_);
        });
        for (int i = 0; i < 4; ++i) {
            send_counts_[i] = box.border(i).points();
            send_starts_[i] = static_cast<int>(start_of(box, i, false) - box.at(0, 0, 0));
            recv_counts_[i] = box.ghosts(sides[i]).points();
            recv_starts_[i] = static_cast<int>(start_of(box, sides[i], true) - box.begin());
        }
    }

    void pack(heat::Box& box) override {
        for (int side : {2, 3}) {
            // Ghosts that no neighbour overwrites come back as they are.
            box.ghosts(side).copy_to(column(box, side, true));
            box.border(side).copy_to(column(box, side, false));
        }
    }

    void call(heat::Box& box) override {
        MPI_Neighbor_alltoallv(box.at(0, 0, 0), send_counts_, send_starts_, MPI_DOUBLE, box.begin(),
                               recv_counts_, recv_starts_, MPI_DOUBLE, comm_);
    }

    void unpack(heat::Box& box) override {
        for (int side : {2, 3}) box.ghosts(side).copy_from(column(box, side, true));
    }

  private:
    // One of the four packed columns: left or right, to send or received.
    double* column(heat::Box& box, int side, bool received) const {
        return box.spare() + static_cast<std::ptrdiff_t>(rows_) * (side - 2 + 2 * received);
    }

    double* start_of(heat::Box& box, int side, bool received) const {
        if (side >= 2) return column(box, side, received);
        return (received ? box.ghosts(side) : box.border(side)).first;
    }

    MPI_Comm comm_;
    int rows_;
    int send_counts_[4], send_starts_[4], recv_counts_[4], recv_starts_[4];
};

void relax(const heat::Box& from, heat::Box& to) {
    const std::ptrdiff_t row = from.row();
    for (int y = 0; y < from.points()[1]; ++y) {
        const double* u = from.at(0, y, 0);
        double* next = to.at(0, y, 0);
        for (int z = 0; z < from.points()[2]; ++z)
            next[z] = u[z] + kRate * (u[z - row] + u[z + row] + u[z - 1] + u[z + 1] - 4 * u[z]);
    }
}

}  // namespace

int main(int argc, char** argv) {
    heat::Program program{};
    program.name = "heat2d";
    program.usage = "heat2d [ROWSxCOLUMNS [ITERATIONS [open|periodic|both]]]";
    program.dimensions = 2;
    program.default_points = {1, 509, 701};
    program.spare = [](const heat::Extent& points) { return static_cast<std::size_t>(points[1]) * 4; };
    program.exchange = [](const heat::World& world, heat::Box& box) -> std::unique_ptr<heat::Exchange> {
        return std::make_unique<Exchange>(world, box);
    };
    program.relax = relax;
    return heat::run(program, argc, argv);
}
