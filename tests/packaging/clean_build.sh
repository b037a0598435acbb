#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# clean_build.sh: for scripts/check_packages, in a fresh Debian 12 with these sources: packages in /packages, and what lintian says.
set -eu
sources=$(cd "$(dirname "$0")/../.." && pwd)
# The project has no address; who publishes packages gives theirs.
no_address=bogus-mail-host,bogus-mail-host-in-debian-changelog
apt-get update -q
"$sources/scripts/package-deb" /packages
apt-get install -yq --no-install-recommends lintian
lintian --allow-root --fail-on error --suppress-tags "$no_address" /packages/*.changes
