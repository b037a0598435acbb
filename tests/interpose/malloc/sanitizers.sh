#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# sanitizers.sh LIBRARY: programs built with a sanitizer work when its runtime comes first, and we say that buffers
# are private; an address sanitizer that comes after us refuses to start, with its reason.
set -u
library=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/program.c" <<'PROGRAM'
#include <stdlib.h>
int main(void) { char* p = malloc(100); p[5] = 1; free(p); return 0; }
PROGRAM
export PMI_RANK=0 ASAN_OPTIONS=detect_leaks=0
failed=0
for kind in address thread; do
    runtime=$(gcc -print-file-name="lib${kind%"${kind#?}"}san.so")
    if ! gcc -fsanitize=$kind "$work/program.c" -o "$work/$kind"; then echo "no -fsanitize=$kind"; exit 77; fi
    said=$(COCO_LOG=info LD_PRELOAD="$runtime $library" "$work/$kind" 2>&1) || { echo "$kind: fails"; failed=1; }
    echo "$said" | grep -q 'another allocator serves malloc' || { echo "$kind: not told"; failed=1; }
done
LD_PRELOAD=$library "$work/address" 2>&1 | grep -q 'does not come first' || { echo 'no refusal'; failed=1; }
exit $failed
