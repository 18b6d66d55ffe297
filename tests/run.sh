#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# On a fresh Debian 12 machine or any other: installs what is missing, builds the release preset
# and runs all tests but the nightly ones. Arguments are ctest's: `tests/run.sh -R kv/`.
set -eu

cd "$(dirname -- "$0")/.."

cmake/install_packages.sh
if ! model=$(cmake/fetch_model.sh); then
  echo "tests/run.sh: the tests that need the real model will skip" >&2
  model=""
fi
cmake --preset release -DINCIPIT_TEST_MODEL="$model"
cmake --build --preset release
exec ctest --preset release "$@"
