#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# clean_use.sh: for scripts/check_packages, in a fresh Debian 12 with the packages in /packages: installs them by apt, runs a program of
# each of Debian's MPIs with them, preloaded and linked, and removes them.
set -eu
sources=$(cd "$(dirname "$0")/../.." && pwd)
apt-get update -q
apt-get install -yq --no-install-recommends gcc libc6-dev pkg-config libmpich-dev mpich libopenmpi-dev openmpi-bin
apt-get install -yq --no-install-recommends /packages/libcoco0_*.deb /packages/coco_*.deb /packages/libcoco-dev_*.deb
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 COCO_STATS=1
cd "$(mktemp -d)"
for mpi in mpich openmpi; do
    # shellcheck disable=SC2046  # a list of words
    mpicc.$mpi "$sources/tests/interpose/linked/main.c" -o linked $(pkg-config --cflags --libs coco)
    mpicc.$mpi "$sources/tests/interpose/preloaded/main.c" -o plain
    mpiexec.$mpi -n 2 ./linked
    mpiexec.$mpi -n 2 coco run ./plain
done 2>reports
cat reports
[ "$(grep -c '^coco: collective calls of 2 ranks' reports)" = 4 ] || { echo "not 4 reports"; exit 1; }
dpkg --purge libcoco-dev coco libcoco0
find /usr /etc /var/lib /opt -xdev \( -name '*libcoco*' -o -path '*/coco/*' -o -name coco \) >left
[ ! -s left ] || { echo "left:"; cat left; exit 1; }
