#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# learned_rules.sh MPI_RUN WORDS... -- PROGRAM HAS_SESSIONS: jobs that leave rules to one another. libcoco's own calls are delayed, so that
# there is no doubt about what is faster: the MPI library's function.
set -u
# A collective that takes a job some tenths of a second looks at nothing. So many calls take a second and more.
enough=15000
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
words=()
while [ "$1" != -- ]; do words+=("$1"); shift; done
program=$2
has_sessions=$3
fail() { echo "FAILED: $*"; exit 1; }
job() {  # TURNS [session|late|bounded] WORDS...
    turns=$1
    arguments=("$turns")
    shift
    if [ "$1" = session ] || [ "$1" = late ] || [ "$1" = bounded ]; then arguments+=("$1"); shift; fi
    "${words[@]}" -n 2 --env "XDG_CACHE_HOME=$folder/cache" --env COCO_TEST_DELAY=200 "$@" -- "$program" "${arguments[@]}" ||
        fail "the job with $*"
}
shopt -s nullglob
found() { files=("$folder"/cache/coco/*); [ ${#files[@]} -eq "$1" ]; }
has_learned_mpi() { found 1 && grep -q 'algorithm  = "mpi"' "${files[0]}"; }
# learn HAS_LEARNED WORDS...: jobs until that command says yes. On a busy machine both choices take as long as other programs let them;
# then a later job learns what the first one did not.
learn() {
    has_learned=$1
    shift
    for _ in 1 2 3 4 5; do
        job $enough "$@"
        if $has_learned; then return; fi
    done
    fail "not learned, or forgotten, by jobs with $*: $(find "$folder" -type f -print -exec cat {} +)"
}

job 3000 --env COCO_LEARN=off
job 3000 --env COCO_LEARN=read
found 0 || fail "a job that does not learn has left rules"
learn has_learned_mpi --env COCO_LEARN=on --ran alltoall=any
cp "${files[0]}" "$folder/first"
job 30 --env COCO_LEARN=read --left alltoall
cmp -s "${files[0]}" "$folder/first" || fail "a job that only reads has written"
# Where a session was opened before MPI_Init its calls may have chosen already: the job goes by the rules that it had then.
if $has_sessions; then job 30 session --env COCO_LEARN=read --ran alltoall=any; fi
learn has_learned_mpi --env COCO_LEARN=on
# When MPI ends after all static objects, too.
job $enough late --env COCO_LEARN=on
found 1 || fail "${#files[@]} files were left by jobs that ended late: ${files[*]}"
# Other rules to begin with have a file of their own.
printf '[[rule]]\nalgorithm = "naive"\ncollective = "alltoall"\n' > "$folder/policy.toml"
job 30 --env COCO_LEARN=read --env "COCO_POLICY=$folder/policy.toml" --ran alltoall=any
# A file that the user names, in a folder that is made, and one where no file can be: a line, and the job goes on.
learn "test -s $folder/deep/mine.toml" --env "COCO_LEARN=$folder/deep/mine.toml"
job $enough --env COCO_LEARN=/dev/null/mine.toml --prints 'warn: learned rules: /dev/null/mine.toml' --lines 1
# A program that has bounded the size of files does not die of what libcoco cannot write.
job 30 bounded --env "COCO_STATS=$folder/report.json" --prints 'report.json: cannot be written: File too large' --lines 1
for attempt in 1 2 3 4 5; do
    (job $enough bounded --env "COCO_LEARN=$folder/deep/bounded.toml" --prints 'warn: learned rules: .*bounded.toml: File too large' --lines 1) && break
    [ $attempt -lt 5 ] || fail "nothing learned, or no line, by jobs that may not write"
done
head -c 200 "$folder/first" > "$folder/deep/mine.toml"
job 30 --env "COCO_LEARN=$folder/deep/mine.toml" --ran alltoall=any --prints 'learned rules: .*mine.toml: ' --lines 1
