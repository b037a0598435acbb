#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# descriptors.sh LIBRARY: the heap's descriptor leaves the low numbers alone, in a rank that is started without 0 to 2,
# and an environment of many pages still says that this is a rank.
set -eu
unset PMI_ID PMIX_RANK OMPI_COMM_WORLD_RANK MPI_LOCALRANKID PALS_RANKID COCO_HEAP_LIMIT COCO_DISABLE
export LD_PRELOAD="$1"
numbers=$(PMI_RANK=0 sh -c 'ls -l /proc/$$/fd' 0<&- 2>/dev/null | sed -n 's/.* \([0-9]*\) -> .*coco-.*/\1/p')
test -n "$numbers"
for number in $numbers; do test "$number" -gt 2; done
env -i LD_PRELOAD="$1" $(seq -f 'FILLER_%g=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' 2000) PMI_RANK=0 \
    sh -c 'grep -q coco- /proc/$$/maps'
