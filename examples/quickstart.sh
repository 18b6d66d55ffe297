#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# From a fresh Debian 12 machine to a prompt that is answered from the cache: installs what is
# missing, fetches a small chat model once, builds, and runs examples/quickstart.cpp with all
# arguments passed on (--help shows them). `--model FILE` takes a model of your own; where the
# packages are installed too, that needs no network.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)

model_needed=true
for argument in "$@"; do
  case $argument in
    --model | --model=* | --help | -h) model_needed=false ;;
  esac
done

# stdout belongs to the program: `--json -` writes JSON to it.
"$root/cmake/install_packages.sh" >&2
if $model_needed; then
  model=$("$root/cmake/fetch_model.sh")
  set -- --model "$model" "$@"
fi
(
  cd "$root"
  cmake --preset release
  cmake --build --preset release --target incipit_examples
) >&2
exec "$root/build/release/examples/quickstart" "$@"
