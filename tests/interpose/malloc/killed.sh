#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# killed.sh LIBRARY: a killed rank leaves nothing on /dev/shm and gives its memory back.
set -u
files() { find /dev/shm -maxdepth 1 -name 'coco-*' | wc -l; }
before=$(files)
PMI_RANK=0 LD_PRELOAD=$1 sleep 60 &
pid=$!
for _ in 1 2 3 4 5 6 7 8 9 10; do
    grep -qs coco-heap "/proc/$pid/maps" && break
    sleep 0.2
done
grep -q coco-heap "/proc/$pid/maps" || { echo "the rank has no segment" >&2; kill -9 "$pid"; exit 1; }
kill -9 "$pid"
wait "$pid" 2>/dev/null
[ "$(files)" -eq "$before" ]
