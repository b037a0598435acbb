// SPDX-License-Identifier: BSD-3-Clause
//
// Runs a program under a filter of system calls as containers have them: the calls that are named fail with
// EPERM. usage: without_calls CALL[,CALL...] PROGRAM ARGUMENTS     CALL: ioctl, mbind, memfd_create,
// process_vm_readv
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct call {
    const char* name;
    long number;
};
static const struct call known[] = {{"ioctl", SYS_ioctl},
                                    {"mbind", SYS_mbind},
                                    {"memfd_create", SYS_memfd_create},
                                    {"process_vm_readv", SYS_process_vm_readv}};

static long number_of(const char* name) {
    for (size_t i = 0; i < sizeof known / sizeof known[0]; ++i)
        if (strcmp(known[i].name, name) == 0) return known[i].number;
    return -1;
}

static int deny(long number) {
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof program / sizeof program[0], program};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

int main(int argc, char** argv) {
    if (argc < 3) return fprintf(stderr, "usage: without_calls CALL[,CALL...] PROGRAM ARGUMENTS\n"), 2;
    for (char* name = strtok(argv[1], ","); name != NULL; name = strtok(NULL, ",")) {
        const long number = number_of(name);
        if (number < 0 || !deny(number))
            return fprintf(stderr, "without_calls: %s: %s\n", name,
                           number < 0 ? "unknown call" : strerror(errno)),
                   2;
    }
    execvp(argv[2], argv + 2);
    return fprintf(stderr, "without_calls: %s: %s\n", argv[2], strerror(errno)), 127;
}
