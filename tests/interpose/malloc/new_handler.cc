// SPDX-License-Identifier: BSD-3-Clause
// The program's own new handler is called and its own bad_alloc thrown, whichever C++ library it has: the
// shared one, or a static copy. libcoco.so brings another static copy, whose handler and count of exceptions
// in flight are not the program's.
#include <cstdlib>
#include <exception>
#include <new>

#include "expect.h"

namespace {

volatile std::size_t g_huge = SIZE_MAX / 2;  // volatile: the compiler must not judge the size
void* volatile g_made;
int g_calls = 0;

// Gives up at its third call.
void handler() {
    if (++g_calls == 3) std::set_new_handler(nullptr);
}

struct OwnError {};
void thrower() { throw OwnError{}; }

template <class Make>
void check_throws(Make make) {
    g_calls = 0;
    std::set_new_handler(handler);
    bool threw = false;
    try {
        g_made = make();
    } catch (const std::bad_alloc&) {
        threw = true;
    }
    EXPECT(threw && g_calls == 3);
    EXPECT(std::uncaught_exceptions() == 0);
}

template <class Make>
void check_null(Make make) {
    g_calls = 0;
    std::set_new_handler(handler);
    EXPECT(make() == nullptr && g_calls == 3);
    EXPECT(std::uncaught_exceptions() == 0);
}

void check_own_error() {
    std::set_new_handler(thrower);
    bool threw = false;
    try {
        g_made = ::operator new(g_huge);
    } catch (const OwnError&) {
        threw = true;
    }
    EXPECT(threw && std::uncaught_exceptions() == 0);
    std::set_new_handler(nullptr);
}

}  // namespace

int main() {
    int* one = new int(1);
    EXPECT(lies_on_shared_heap(one));
    delete one;
    constexpr std::align_val_t kLine{64};
    check_throws([] { return ::operator new(g_huge); });
    check_throws([] { return ::operator new[](g_huge); });
    check_throws([&] { return ::operator new(g_huge, kLine); });
    check_throws([&] { return ::operator new[](g_huge, kLine); });
    check_null([] { return ::operator new(g_huge, std::nothrow); });
    check_null([] { return ::operator new[](g_huge, std::nothrow); });
    check_null([&] { return ::operator new(g_huge, kLine, std::nothrow); });
    check_null([&] { return ::operator new[](g_huge, kLine, std::nothrow); });
    check_own_error();
    return failures();
}
