// SPDX-License-Identifier: BSD-3-Clause
//
// The door of syscall(): a program, or a library that watches memory, may change mappings by it. Those calls
// go to mapping.cc; all others go on to libc's function by a jump, with all registers and the stack as they
// came, as some of them return twice.
#if defined(__x86_64__)
#include <asm/unistd.h>

    .text
    .globl syscall
    .type syscall, @function
syscall:
    endbr64
    cmpq $__NR_mmap, %rdi
    je 1f
    cmpq $__NR_munmap, %rdi
    je 1f
    cmpq $__NR_madvise, %rdi
    je 1f
    cmpq $__NR_mremap, %rdi
    je 1f
    cmpq $__NR_mprotect, %rdi
    je 1f
    cmpq $__NR_shmat, %rdi
    je 1f
    cmpq $__NR_shmdt, %rdi
    je 1f
    cmpq $__NR_remap_file_pages, %rdi
    je 1f
    movq coco_next_syscall(%rip), %rax
    jmp *%rax
1:  jmp coco_mapping_syscall
    .size syscall, . - syscall

// As libc's, before that has been looked up.
    .globl coco_bare_syscall
    .hidden coco_bare_syscall
    .type coco_bare_syscall, @function
coco_bare_syscall:
    endbr64
    movq %rdi, %rax
    movq %rsi, %rdi
    movq %rdx, %rsi
    movq %rcx, %rdx
    movq %r8, %r10
    movq %r9, %r8
    movq 8(%rsp), %r9
    syscall
    cmpq $-4095, %rax
    jae 2f
    ret
2:  movq %rax, %rdi
    jmp coco_failed_syscall
    .size coco_bare_syscall, . - coco_bare_syscall
#endif
    .section .note.GNU-stack, "", @progbits
