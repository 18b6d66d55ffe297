#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# On a fresh Debian 12 machine or any other: installs what is missing, builds the release preset
# and runs all tests but the nightly ones. Arguments are ctest's: `tests/run.sh -R kv/`.
set -eu

cd "$(dirname -- "$0")/.."

cmake/install_packages.sh
fetch() {
  cmake/fetch_model.sh "$1" || echo "tests/run.sh: the tests that need $1 will skip" >&2
}
cmake --preset release -DINCIPIT_TEST_MODEL="$(fetch smollm2)" \
  -DINCIPIT_TEST_GEMMA="$(fetch gemma3)"
cmake --build --preset release
exec ctest --preset release "$@"
