#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# private_jemalloc.sh IN.a OUT.a AR LD NM OBJCOPY: Debian's jemalloc as one object that shows nothing but coco_je_* names and takes its
# memory, its fork handlers and its settings from us (lib/heap/system.cc, fork.cc), not from the system.
set -eu
in=$(realpath "$1"); out=$(realpath -m "$2")
ar=$3; ld=$4; nm=$5; objcopy=$6  # of the machine that the library is built for
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$ar" x "$in"
rm -f jemalloc_cpp*.o      # its operators new and delete; ours are in interpose/
"$ld" -r -o all.o ./*.o
# What the system gives jemalloc, and what jemalloc gives us. What it takes of the system while it holds a lock of its own must not be a
# name that others wrap.
for name in mmap munmap mprotect madvise clock_gettime open close syscall sysconf sched_getaffinity getpid \
    pthread_mutex_init pthread_mutex_lock pthread_mutex_trylock pthread_mutex_unlock pthread_atfork pthread_cond_init dlsym secure_getenv readlink; do
    echo "$name coco_je_system_$name"
done > renames
for name in malloc calloc realloc free memalign malloc_usable_size mallocx rallocx xallocx mallctl; do
    echo "$name coco_je_$name"; echo "coco_je_$name" >> keep
done >> renames
"$nm" all.o | awk '$3 ~ /^(je_)?malloc_conf$/ { print $3, "coco_je_malloc_conf" }' | sort -u >> renames
echo coco_je_malloc_conf >> keep
"$objcopy" --redefine-syms=renames all.o renamed.o
# Without the constructor that readies jemalloc in every process: its first call does so, in ranks alone (allocator.cc).
"$objcopy" --keep-global-symbols=keep --remove-section='.init_array*' --remove-section='.rel*.init_array*' renamed.o private.o
rm -f "$out"
"$ar" rcs "$out" private.o
