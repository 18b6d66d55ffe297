#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Debian packages that are missing; with all of them there it needs no network and no
# rights. Without arguments: what the library, its tests, examples and benchmarks are built with.
# Usage: cmake/install_packages.sh [PACKAGE...]
set -eu

if [ $# -eq 0 ]; then
  set -- g++ cmake ninja-build pkg-config binutils python3 \
    libpcre2-dev libutf8proc-dev nlohmann-json3-dev libxxhash-dev libssl-dev \
    libhiredis-dev libmemcached-dev libzstd-dev redis-server memcached \
    catch2 libbenchmark-dev libcli11-dev libboost-context-dev clang-format ccache
fi

say() { echo "install_packages.sh: $*" >&2; }

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  say "this is no Debian; make sure that you have the like of: $*"
  exit 0
fi

missing=""
for package in "$@"; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=""
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    say "please run as root: apt-get install$missing"
    exit 1
  fi
  as_root="sudo"
fi
say "installing$missing"
$as_root apt-get update -q >&2 </dev/null
# shellcheck disable=SC2086
$as_root env DEBIAN_FRONTEND=noninteractive \
  apt-get install -q -y --no-install-recommends $missing >&2 </dev/null
