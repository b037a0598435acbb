// SPDX-License-Identifier: BSD-3-Clause
//
// Makes this process believe that it runs on a kernel before Linux 6.11, which tells mappings by their list alone.
// Called by tests at the start of main, before other threads begin. Needs seccomp.
#pragma once
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>

namespace test {

// Returns: false where the kernel takes no filter.
inline bool refuse_mapping_questions() {
    constexpr unsigned kQuestion = _IOWR('f', 17, char[104]);  // PROCMAP_QUERY
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kQuestion, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOTTY),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    sock_fprog filter = {.len = sizeof program / sizeof *program, .filter = program};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// Whether the table of runs asks for it (TEST_OLDER_KERNEL=1).
inline bool is_older_kernel_wanted() { return std::getenv("TEST_OLDER_KERNEL") != nullptr; }

}  // namespace test
