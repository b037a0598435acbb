#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# run.sh LIBCOCO PROGRAM MODULE MODULE: runs it with libcoco preloaded, and without it to see that it works at all.
set -u
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
timeout 60 "$2" "$3" "$4" >/dev/null 2>&1 || { echo "skipped: both MPI libraries in one process fail without libcoco too"; exit 77; }
output=$(LD_PRELOAD=$1 timeout 60 "$2" "$3" "$4" 2>&1)
status=$?
printf '%s\n' "$output"
[ $status -eq 0 ] || { echo "FAILED: exit status $status"; exit 1; }
[ "$(printf '%s\n' "$output" | grep -c 'two MPI libraries are in this process')" -eq 1 ] || { echo "FAILED: not one line"; exit 1; }
