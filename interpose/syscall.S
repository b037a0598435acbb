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

#elif defined(__aarch64__)
#include <asm/unistd.h>

// All arguments are in registers, which nothing here changes but x16 and the flags. `hint #34` is `bti c`.
    .text
    .globl syscall
    .type syscall, %function
syscall:
    hint #34
    cmp x0, #__NR_mmap
    b.eq 1f
    cmp x0, #__NR_munmap
    b.eq 1f
    cmp x0, #__NR_madvise
    b.eq 1f
    cmp x0, #__NR_mremap
    b.eq 1f
    cmp x0, #__NR_mprotect
    b.eq 1f
    cmp x0, #__NR_shmat
    b.eq 1f
    adrp x16, coco_next_syscall
    ldr x16, [x16, #:lo12:coco_next_syscall]
    br x16
1:  b coco_mapping_syscall
    .size syscall, . - syscall

// As libc's, before that has been looked up.
    .globl coco_bare_syscall
    .hidden coco_bare_syscall
    .type coco_bare_syscall, %function
coco_bare_syscall:
    hint #34
    mov x8, x0
    mov x0, x1
    mov x1, x2
    mov x2, x3
    mov x3, x4
    mov x4, x5
    mov x5, x6
    svc #0
    cmn x0, #4095
    b.cs 2f
    ret
2:  b coco_failed_syscall
    .size coco_bare_syscall, . - coco_bare_syscall
#endif
    .section .note.GNU-stack, "", %progbits
