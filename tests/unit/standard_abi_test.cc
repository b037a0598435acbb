// SPDX-License-Identifier: BSD-3-Clause
//
// The standard ABI in the table of families against the values that the MPI Forum publishes: MPI 5.0 (June
// 2025), appendix A, and the Forum's own mpi.h, whose numbers are copied here by hand.
// (tests/mpi/family_test.cc compares with a library's own mpi.h where there is one.)
#include <catch2/catch.hpp>
#include <cstring>

#include "mpi/family.h"

namespace {

using namespace coco::mpi;

const Family& standard() {
    for (const Family& family : families())
        if (std::strcmp(family.name, "MPI standard ABI") == 0) return family;
    std::abort();
}

std::uintptr_t address(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

}  // namespace

TEST_CASE("handles of the standard ABI are as published") {
    const PredefinedHandles& h = standard().handles;
    CHECK(standard().handle_bytes == 8);
    CHECK(h.min.constant == 0x022);
    CHECK(h.max.constant == 0x023);
    CHECK(h.comm_null.constant == 0x100);
    CHECK(h.comm_world.constant == 0x101);
    CHECK(h.comm_self.constant == 0x102);
    CHECK(h.errors_are_fatal.constant == 0x141);
    CHECK(h.errors_return.constant == 0x143);
    CHECK(h.datatype_null.constant == 0x200);
    CHECK(h.byte.constant == 0x247);
    CHECK(h.int64.constant == 0x258);
}

TEST_CASE("constants of the standard ABI are as published") {
    const Constants& c = standard().constants;
    CHECK(address(c.bottom) == 0);
    CHECK(address(c.in_place) == 1);
    CHECK(address(c.status_ignore) == 0);
    CHECK(address(c.statuses_ignore) == 0);
    CHECK(c.any_source == -1);
    CHECK(c.any_tag == -2);
    CHECK(c.undefined == -32766);
    CHECK(c.keyval_invalid == 0);
    CHECK(c.cart == 211);
    CHECK(c.graph == 212);
    CHECK(c.dist_graph == 213);
    CHECK(c.order_c == 12);
    CHECK(c.order_fortran == 15);
    CHECK(c.err_buffer == 1);
    CHECK(c.err_count == 2);
    CHECK(c.err_arg == 13);
    CHECK(c.err_truncate == 15);
    CHECK(c.err_other == 16);
    CHECK(c.err_no_mem == 39);
}

TEST_CASE("combiners and the status of the standard ABI are as published") {
    auto number = [](Combiner combiner) { return standard().constants.combiner[static_cast<int>(combiner)]; };
    const Combiner in_order[] = {Combiner::named,     Combiner::dup,           Combiner::contiguous,
                                 Combiner::vector,    Combiner::hvector,       Combiner::indexed,
                                 Combiner::hindexed,  Combiner::indexed_block, Combiner::hindexed_block,
                                 Combiner::structure, Combiner::subarray};
    int published = 101;
    for (Combiner combiner : in_order) CHECK(number(combiner) == published++);
    CHECK(number(Combiner::f90_real) == 113);  // 112: darray
    CHECK(number(Combiner::f90_complex) == 114);
    CHECK(number(Combiner::f90_integer) == 115);
    CHECK(number(Combiner::resized) == 116);
    const StatusLayout& status = standard().status;  // MPI_SOURCE, MPI_TAG, MPI_ERROR, 5 more ints
    CHECK(status.bytes == 32);
    CHECK(status.tag_at == 4);
}

TEST_CASE("libraries of the standard ABI have the ways of their makers") {
    CHECK_FALSE(manners_of(standard(), "Open MPI v6.0.0, package: ...").refuses_aliases);
    CHECK(manners_of(standard(), "MPICH Version: 5.0.0").refuses_aliases);
}
