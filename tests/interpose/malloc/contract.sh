#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# contract.sh LIBRARY PROGRAM: the program tells the same of malloc with the malloc door preloaded in a rank as without.
# shellcheck disable=SC2086  # MESON_EXE_WRAPPER, what runs programs of another processor, is a list of words
set -eu
unset PMI_RANK PMI_ID PMIX_RANK OMPI_COMM_WORLD_RANK MPI_LOCALRANKID PALS_RANKID COCO_HEAP_LIMIT COCO_DISABLE MALLOC_PERTURB_
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
${MESON_EXE_WRAPPER-} "$2" > "$work/libc"
PMI_RANK=0 LD_PRELOAD=$1 ${MESON_EXE_WRAPPER-} "$2" shared > "$work/ours"
test -s "$work/libc"
diff "$work/libc" "$work/ours"
