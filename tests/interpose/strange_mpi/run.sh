#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# run.sh LIBCOCO PROGRAM SCOPE MODULE: runs the program with libcoco preloaded, as rank 0 and as rank 1 of a job: rank 0 alone
# says that calls are left to the library.
# shellcheck disable=SC2086  # MESON_EXE_WRAPPER, what runs programs of another processor, is a list of words
set -u
status=0
for rank in 0 1; do
    output=$(PMI_RANK=$rank LD_PRELOAD=$1 ${MESON_EXE_WRAPPER-} "$2" "$3" "$4" 2>&1) || status=1
    printf '%s\n' "$output"
    lines=$(printf '%s\n' "$output" | grep -c 'is of no MPI family that libcoco knows: all calls are left to MPI')
    [ "$lines" -eq $((1 - rank)) ] || { echo "FAILED: $lines lines on rank $rank"; status=1; }
done
exit $status
