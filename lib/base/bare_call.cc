// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <cerrno>

#include "base/kept_errno.h"
#include "base/kernel.h"

namespace coco::kernel {

long call(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
    register long fourth __asm__("r10") = d;
    register long fifth __asm__("r8") = e;
    register long sixth __asm__("r9") = f;
    long result = 0;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long which __asm__("x8") = number;
    register long first __asm__("x0") = a;
    register long second __asm__("x1") = b;
    register long third __asm__("x2") = c;
    register long fourth __asm__("x3") = d;
    register long fifth __asm__("x4") = e;
    register long sixth __asm__("x5") = f;
    __asm__ volatile("svc #0"
                     : "+r"(first)
                     : "r"(which), "r"(second), "r"(third), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "memory");
    return first;
#else
    const base::KeptErrno kept;
    const long result = syscall(number, a, b, c, d, e, f);  // which has no door there
    return result == -1 ? -static_cast<long>(errno) : result;
#endif
}

}  // namespace coco::kernel
