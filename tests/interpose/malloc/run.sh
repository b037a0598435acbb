#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run.sh LIBRARY SITUATION PROGRAM [ARG...]: runs a program with the malloc door preloaded in a situation: as a rank
# (rank), as no rank (other), with a small heap (small), with none (none), with a small address space (tight), with small
# files (files), on a /dev/shm of 256 MiB where there is no memfd (mount: needs root; WITHOUT_CALLS is the program for that).
# MESON_EXE_WRAPPER: what runs programs of another processor.
set -u
library=$1 situation=$2
shift 2
unset PMI_RANK PMI_ID PMIX_RANK OMPI_COMM_WORLD_RANK MPI_LOCALRANKID PALS_RANKID COCO_HEAP_LIMIT COCO_DISABLE
case $situation in
    other) ;;
    small) export PMI_RANK=0 COCO_HEAP_LIMIT=64M ;;
    none)  export PMI_RANK=0 COCO_HEAP_LIMIT=0 ;;
    tight) export PMI_RANK=0; ulimit -v 500000 ;;
    files) export PMI_RANK=0; ulimit -f 50000 ;;
    rank)  export PMI_RANK=0 ;;
    mount)
        [ "$(id -u)" = 0 ] || { echo "skipped: a mount namespace of its own needs root"; exit 77; }
        exec unshare -m "$0" "$library" mounted "$@" ;;
    mounted)  # in the namespace that `mount` has made
        mount -t tmpfs -o size=256m tmpfs /dev/shm || exit 1
        export PMI_RANK=0
        set -- "$WITHOUT_CALLS" memfd_create "$@" ;;
    *) echo "run.sh: unknown situation $situation" >&2; exit 2 ;;
esac
# shellcheck disable=SC2086  # a list of words
LD_PRELOAD=$library exec ${MESON_EXE_WRAPPER-} "$@"
