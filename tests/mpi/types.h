// SPDX-License-Identifier: BSD-3-Clause
//
// Datatypes for tests, in families: all types of a family are made of the same unit, so that ranks may take
// different ones for the same data.
#pragma once
#include <mpi.h>

#include <cstddef>
#include <vector>

namespace test {

struct Type {
    const char* name;
    MPI_Datatype handle;
    int units;             // how many of the family's unit one element holds
    bool receives = true;  // false: elements overlap, so it may only be sent
};

struct Family {
    const char* name;
    int unit_bytes;
    int multiple;  // a block's units are a multiple of this: every type of the family can describe it
    std::vector<Type> types;
    int largest_bytes = 1 << 30;  // of a block
};

inline MPI_Datatype commit(MPI_Datatype type) {
    MPI_Type_commit(&type);
    return type;
}

inline MPI_Datatype resized(MPI_Datatype base, MPI_Aint lower_bound, MPI_Aint extent) {
    MPI_Datatype type;
    MPI_Type_create_resized(base, lower_bound, extent, &type);
    return commit(type);
}

inline MPI_Datatype contiguous(int count, MPI_Datatype base) {
    MPI_Datatype type;
    MPI_Type_contiguous(count, base, &type);
    return commit(type);
}

inline MPI_Datatype vector(int count, int length, int stride, MPI_Datatype base) {
    MPI_Datatype type;
    MPI_Type_vector(count, length, stride, base, &type);
    return commit(type);
}

inline MPI_Datatype indexed(std::vector<int> lengths, std::vector<int> displacements, MPI_Datatype base) {
    MPI_Datatype type;
    MPI_Type_indexed(static_cast<int>(lengths.size()), lengths.data(), displacements.data(), base, &type);
    return commit(type);
}

inline MPI_Datatype structure(std::vector<int> lengths, std::vector<MPI_Aint> displacements,
                              std::vector<MPI_Datatype> bases) {
    MPI_Datatype type;
    MPI_Type_create_struct(static_cast<int>(lengths.size()), lengths.data(), displacements.data(),
                           bases.data(), &type);
    return commit(type);
}

// Over MPI_INT, made by the functions that take large counts, which are looked into by others.
inline std::vector<Type> int_types_by_large_counts() {
#if MPI_VERSION >= 4
    auto made = [](auto make) {
        MPI_Datatype type;
        make(&type);
        return commit(type);
    };
    static const MPI_Count lengths[] = {1, 2}, places[] = {4, 1}, near[] = {0, 1}, bytes[] = {0, 4},
                           apart[] = {8, 20};
    static const MPI_Datatype ints[] = {MPI_INT, MPI_INT};
    return {
        {"contiguous_c(3)", made([](auto t) { MPI_Type_contiguous_c(3, MPI_INT, t); }), 3},
        {"vector_c(2,1,2)", made([](auto t) { MPI_Type_vector_c(2, 1, 2, MPI_INT, t); }), 2},
        {"vector_c(2,3,3)", made([](auto t) { MPI_Type_vector_c(2, 3, 3, MPI_INT, t); }), 6},
        {"hvector_c(3,1,4)", made([](auto t) { MPI_Type_create_hvector_c(3, 1, 4, MPI_INT, t); }), 3},
        {"hvector_c(2,1,12)", made([](auto t) { MPI_Type_create_hvector_c(2, 1, 12, MPI_INT, t); }), 2},
        {"indexed_c, backwards", made([](auto t) { MPI_Type_indexed_c(2, lengths, places, MPI_INT, t); }), 3},
        {"indexed_c, one run", made([](auto t) { MPI_Type_indexed_c(2, lengths, near, MPI_INT, t); }), 3},
        {"hindexed_c, one run",
         made([](auto t) { MPI_Type_create_hindexed_c(2, lengths, bytes, MPI_INT, t); }), 3},
        {"hindexed_c", made([](auto t) { MPI_Type_create_hindexed_c(2, lengths, apart, MPI_INT, t); }), 3},
        {"indexed_block_c", made([](auto t) { MPI_Type_create_indexed_block_c(2, 3, places, MPI_INT, t); }),
         6},
        {"hindexed_block_c, one run",
         made([](auto t) { MPI_Type_create_hindexed_block_c(2, 1, bytes, MPI_INT, t); }), 2},
        {"struct_c", made([](auto t) { MPI_Type_create_struct_c(2, lengths, bytes, ints, t); }), 3},
        {"struct_c with holes", made([](auto t) { MPI_Type_create_struct_c(2, lengths, apart, ints, t); }),
         3},
        {"subarray_c", made([](auto t) {
             const MPI_Count sizes[] = {5, 4, 9}, parts[] = {1, 2, 3}, starts[] = {1, 2, 4};
             MPI_Type_create_subarray_c(3, sizes, parts, starts, MPI_ORDER_C, MPI_INT, t);
         }),
         6},
        {"subarray_c, Fortran's order", made([](auto t) {
             const MPI_Count sizes[] = {5, 4, 9}, parts[] = {3, 1, 2}, starts[] = {1, 2, 4};
             MPI_Type_create_subarray_c(3, sizes, parts, starts, MPI_ORDER_FORTRAN, MPI_INT, t);
         }),
         6},
        {"resized_c, lower bound -8", made([](auto t) { MPI_Type_create_resized_c(MPI_INT, -8, 16, t); }),
         1}};
#else
    return {};
#endif
}

// Types over MPI_INT: contiguous, with gaps, with lower bounds on either side of 0, nested, scattered.
inline Family int_family() {
    MPI_Datatype gap = resized(MPI_INT, 0, 12);
    Family family{"int",
                  sizeof(int),
                  6,
                  {{"int", MPI_INT, 1},
                   {"contiguous(3)", contiguous(3, MPI_INT), 3},
                   {"resized, extent 12", gap, 1},
                   {"resized, lower bound -8", resized(MPI_INT, -8, 16), 1},
                   {"resized, lower bound 4, extent 4", resized(MPI_INT, 4, 4), 1},
                   {"contiguous(2), lower bound -4, extent 8", resized(contiguous(2, MPI_INT), -4, 8), 2},
                   {"contiguous(3) of extent 12", contiguous(3, gap), 3},
                   {"nested contiguous(2) of contiguous(3)", contiguous(2, contiguous(3, MPI_INT)), 6},
                   {"vector(2,1,2)", vector(2, 1, 2, MPI_INT), 2},
                   {"vector(1,6,9)", vector(1, 6, 9, MPI_INT), 6},
                   {"vector of vectors", vector(3, 1, 2, vector(2, 1, 3, MPI_INT)), 6},
                   {"indexed, backwards", indexed({1, 2}, {4, 1}, MPI_INT), 3},
                   {"indexed, negative", indexed({2, 1}, {-5, 3}, MPI_INT), 3},
                   {"struct of ints", structure({1, 2}, {0, 4}, {MPI_INT, MPI_INT}), 3},
                   {"two ints of extent 4", resized(contiguous(2, MPI_INT), 0, 4), 2, false},
                   {"resized, extent 0", resized(MPI_INT, 0, 0), 1, false}}};
    for (const Type& type : int_types_by_large_counts()) family.types.push_back(type);
    return family;
}

// Pairs with a hole at their end, in both orders. MPICH 4.0 takes rendezvous messages of them for truncated.
inline Family double_int_family() {
    Family family{"double+int",
                  12,
                  2,
                  {{"MPI_DOUBLE_INT", MPI_DOUBLE_INT, 1},
                   {"packed struct", structure({1, 1}, {0, 8}, {MPI_DOUBLE, MPI_INT}), 1},
                   {"swapped struct", structure({1, 1}, {8, 0}, {MPI_DOUBLE, MPI_INT}), 1},
                   {"contiguous(2) of MPI_DOUBLE_INT", contiguous(2, MPI_DOUBLE_INT), 2}}};
#ifndef OPEN_MPI
    family.largest_bytes = 512;
#endif
    return family;
}

inline Family byte_family() {
    return {"byte", 1, 1, {{"byte", MPI_BYTE, 1}, {"resized byte", resized(MPI_BYTE, 0, 3), 1}}};
}

inline Family double_family() {
    return {"double",
            8,
            4,
            {{"double", MPI_DOUBLE, 1},
             {"contiguous(4)", contiguous(4, MPI_DOUBLE), 4},
             {"vector(2,2,3)", vector(2, 2, 3, MPI_DOUBLE), 4},
             {"duplicate", commit([] {
                  MPI_Datatype t;
                  MPI_Type_dup(MPI_DOUBLE, &t);
                  return t;
              }()),
              1}}};
}

// One family for each basic type class: the C types, the pairs, Fortran's, C++'s.
inline std::vector<Family> basic_families() {
    std::vector<Family> all;
    auto add = [&](const char* name, MPI_Datatype type) {
        int bytes = 0;
        if (type == MPI_DATATYPE_NULL || MPI_Type_size(type, &bytes) != MPI_SUCCESS || bytes == 0) return;
        all.push_back({name, bytes, 1, {{name, type, 1}}});
    };
#define TEST_TYPE(type) add(#type, type)
    TEST_TYPE(MPI_CHAR);
    TEST_TYPE(MPI_SIGNED_CHAR);
    TEST_TYPE(MPI_UNSIGNED_CHAR);
    TEST_TYPE(MPI_WCHAR);
    TEST_TYPE(MPI_SHORT);
    TEST_TYPE(MPI_UNSIGNED);
    TEST_TYPE(MPI_LONG);
    TEST_TYPE(MPI_UNSIGNED_LONG_LONG);
    TEST_TYPE(MPI_FLOAT);
    TEST_TYPE(MPI_DOUBLE);
    TEST_TYPE(MPI_LONG_DOUBLE);
    TEST_TYPE(MPI_INT8_T);
    TEST_TYPE(MPI_UINT16_T);
    TEST_TYPE(MPI_INT32_T);
    TEST_TYPE(MPI_UINT64_T);
    TEST_TYPE(MPI_AINT);
    TEST_TYPE(MPI_OFFSET);
    TEST_TYPE(MPI_COUNT);
    TEST_TYPE(MPI_C_BOOL);
    TEST_TYPE(MPI_C_FLOAT_COMPLEX);
    TEST_TYPE(MPI_C_DOUBLE_COMPLEX);
    TEST_TYPE(MPI_BYTE);
    TEST_TYPE(MPI_PACKED);
    TEST_TYPE(MPI_FLOAT_INT);
    TEST_TYPE(MPI_LONG_INT);
    TEST_TYPE(MPI_SHORT_INT);
    TEST_TYPE(MPI_2INT);
    TEST_TYPE(MPI_LONG_DOUBLE_INT);
    TEST_TYPE(MPI_DOUBLE_INT);
    TEST_TYPE(MPI_INTEGER);
    TEST_TYPE(MPI_DOUBLE_PRECISION);
    TEST_TYPE(MPI_LOGICAL);
    TEST_TYPE(MPI_CHARACTER);
    TEST_TYPE(MPI_COMPLEX);
    TEST_TYPE(MPI_2REAL);
#undef TEST_TYPE
    return all;
}

}  // namespace test
