// SPDX-License-Identifier: BSD-3-Clause
// Memory that was allocated before main, and by the first statement of main, is on the shared heap.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "expect.h"

namespace {

void* g_before_main;
__attribute__((constructor)) void before_main() { g_before_main = std::calloc(1, 100); }

}  // namespace

int main() {
    void* first = std::malloc(100'000);
    EXPECT(lies_on_shared_heap(first));
    EXPECT(lies_on_shared_heap(g_before_main));
    EXPECT(lies_on_shared_heap(strdup("text of libc")));
    EXPECT(!lies_on_shared_heap(&first));
    std::free(first);
    return failures();
}
