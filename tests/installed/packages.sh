#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# packages.sh BUILD MPICC LINKED.c PROGRAM MPI_RUN [WORD...]: makes Debian packages of a build folder, installs them with dpkg, uses
# them with one MPI and removes them. All that happens on a copy of this machine's files, which the kernel makes as they are written
# (overlayfs), in a mount namespace of its own: so dpkg has the machine's real packages, and what is left is seen at once. Needs root.
# MPI_RUN [WORD...]: the driver of MPI tests, with the words that choose the MPI.
set -euo pipefail
export CCACHE_DISABLE=1  # a compiler's cache would leave its counts in the copy
here=$(cd "$(dirname "$0")" && pwd)
root=$(realpath "$here/../..") self=$here/$(basename "$0")

skip() { echo "skipped: $1"; exit 77; }
fail() { echo "FAILED: $1"; exit 1; }

outside() {
    [ "$(id -u)" = 0 ] || skip "dpkg and mounts need root"
    command -v dh >/dev/null || skip "debhelper is not installed"
    place=$(mktemp -d)
    trap 'rm -rf "$place"' EXIT
    "$root/scripts/package-deb" --built "$1" "$place/packages" >"$place/log" 2>&1 || { cat "$place/log"; fail "package-deb"; }
    unshare -m "$self" --overlay "$place" "$@"
}

# In the mount namespace. Files that are outside of / for the kernel, as those of $place may be, are bound into the copy.
overlay() {  # PLACE ARGUMENT...
    place=$1 copy=$1/copy
    mkdir "$place/layer" "$copy"
    mount -t tmpfs tmpfs "$place/layer"
    mkdir "$place/layer/written" "$place/layer/work"
    mount -t overlay overlay -o "lowerdir=/,upperdir=$place/layer/written,workdir=$place/layer/work" "$copy" 2>/dev/null ||
        skip "this kernel lays no overlay over /"
    for folder in /proc /sys /dev /tmp "$root" "$place"; do
        mount --rbind "$folder" "$copy$folder"
    done
    chroot "$copy" "$self" --inside "$PWD" "$@"
    # Folders that were there before are in it, too, where a package put something inside.
    cd "$place/layer/written"
    left=$(find . ! -type d -print -o -type d ! -exec test -d /{} \; -print |
        grep -vE '^\./var/(lib/dpkg|log|cache)/' || true)
    [ -z "$left" ] || fail "left after the packages were removed: $left"
}

inside() {  # FOLDER PLACE BUILD MPICC LINKED.c PROGRAM MPI_RUN [WORD...]
    cd "$1"
    place=$2 mpicc=$4 linked=$5 program=$6
    shift 6
    used=(--ran alltoall=any --counted alltoall=20)
    dpkg --install "$place"/packages/*.deb >"$place/log" 2>&1 || { cat "$place/log"; fail "dpkg --install"; }
    [ "$(command -v coco)" = /usr/bin/coco ] || fail "coco is not found"
    "$@" "${used[@]}" -- coco run "$program" || fail "coco run"
    # shellcheck disable=SC2046  # a list of words
    "$mpicc" "$linked" -o "$place/linked" $(pkg-config --cflags --libs coco)
    "$@" "${used[@]}" -- "$place/linked" || fail "a program that is linked with libcoco-dev"
    sh -euc "$("$root/tests/packaging/recipe_part" test)" || fail "the test of the Apptainer recipe"
    for package in libcoco0 coco libcoco-dev; do
        [ -z "$(dpkg --verify "$package")" ] || fail "$package is not installed as it is"
    done
    dpkg --purge libcoco-dev coco libcoco0 >"$place/log" 2>&1 || { cat "$place/log"; fail "dpkg --purge"; }
}

case $1 in
    --overlay) shift; overlay "$@" ;;
    --inside) shift; inside "$@" ;;
    *) outside "$@" ;;
esac
