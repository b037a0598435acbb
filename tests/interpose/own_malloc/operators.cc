// SPDX-License-Identifier: BSD-3-Clause
// A program that replaces two of the operators, from which the standard makes all others for ordinary
// alignments: blocks of its own reach none but its own operator delete, also from within the C++ library.
#include <mpi.h>

#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "check.h"

namespace {

constexpr std::uint64_t kMark = 0x6f776e6f70657261u;
struct alignas(16) Head {
    std::uint64_t mark;
};
long g_made = 0;

struct alignas(256) Wide {
    char data[300];
};

}  // namespace

void* operator new(std::size_t bytes) {
    if (bytes > PTRDIFF_MAX) throw std::bad_alloc();
    auto* head = static_cast<Head*>(std::malloc(sizeof(Head) + bytes));
    if (head == nullptr) throw std::bad_alloc();
    head->mark = kMark;
    ++g_made;
    return head + 1;
}

void operator delete(void* block) noexcept {
    if (block == nullptr) return;
    Head* head = static_cast<Head*>(block) - 1;
    CHECK(head->mark == kMark);
    head->mark = 0;
    --g_made;
    std::free(head);
}

namespace {

volatile std::size_t g_huge = SIZE_MAX - 4096;

void check_operators() {
    long before = g_made;
    auto* one = new int(5);
    auto* many = new std::string[7];
    auto* quiet = new (std::nothrow) long;
    auto* quiet_many = new (std::nothrow) long[100];
    CHECK(g_made == before + 4);
    delete one;
    delete[] many;
    delete quiet;
    delete[] quiet_many;
    CHECK(::operator new(g_huge, std::nothrow) == nullptr);
    CHECK(::operator new[](g_huge, std::nothrow) == nullptr);
    ::operator delete (::operator new(100), std::size_t{100});
    ::operator delete[](::operator new[](100), std::size_t{100});
    ::operator delete(::operator new(100, std::nothrow), std::nothrow);
    CHECK(g_made == before);
    std::vector<std::string> texts(100, std::string(200, 'x'));
    CHECK(g_made >= before + 100);
    auto wide = std::make_unique<Wide>();
    CHECK(reinterpret_cast<std::uintptr_t>(wide.get()) % 256 == 0);
    auto shared = std::make_shared<std::vector<int>>(1000, 1);
    CHECK(shared->at(999) == 1);
}

void check_collectives(int each) {
    int rank = 0, ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    std::vector<int> out(static_cast<std::size_t>(each * ranks), rank), in(out.size());
    MPI_Alltoall(out.data(), each, MPI_INT, in.data(), each, MPI_INT, MPI_COMM_WORLD);
    for (std::size_t i = 0; i < in.size(); ++i) CHECK(in[i] == static_cast<int>(i) / each);
}

}  // namespace

int main(int count, char** arguments) {
    check_operators();
    MPI_Init(&count, &arguments);
    check_operators();
    for (int each : {1, 100, 10000, 300000}) check_collectives(each);
    MPI_Finalize();
    return 0;
}
