#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What only a machine with an NVIDIA GPU can check: builds the cuda preset (build/cuda; what is
# built already is kept), runs the kernels' tests and the engine's on the device, the sanitizers of
# the CUDA toolkit over a part of them, compares the logits of a whole model with the CPU's, and
# runs the benchmarks, in exact and in fast mode. The model is --model or, without it, a random one
# of SmolLM2-135M's shape, the same every time. Without a GPU it says so and succeeds.
#
# For a machine without nvcc, build beforehand, for its GPU alone (an H200's code is 90a-real):
#   cmake --preset cuda -DINCIPIT_CUDA_ARCHITECTURES=90a-real
#   cmake --build --preset cuda --target gpu_check
# and hand it --no-build; of build/cuda it needs the programs only, 60 MB when stripped.
#
# Usage: tests/gpu_check.sh --json FILE [--model FILE] [--no-build]
set -eu

cd "$(dirname -- "$0")/.."

usage() {
  echo "usage: tests/gpu_check.sh --json FILE [--model FILE] [--no-build]" >&2
  exit 2
}

json="" model="" build=1
while [ $# -gt 0 ]; do
  case $1 in
    --json) [ $# -ge 2 ] || usage; json=$2; shift 2 ;;
    --model) [ $# -ge 2 ] || usage; model=$2; shift 2 ;;
    --no-build) build=0; shift ;;
    *) usage ;;
  esac
done
[ -n "$json" ] || usage

quoted() {
  printf '"%s"' "$(printf %s "$1" | sed 's/["\\]/\\&/g')"
}

gpu=""
if command -v nvidia-smi >/dev/null 2>&1; then
  gpu=$(nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv,noheader 2>/dev/null |
    head -n 1) || gpu=""
fi
if [ -z "$gpu" ]; then
  echo "tests/gpu_check.sh: no GPU here (nvidia-smi finds none); nothing was checked"
  echo '{"gpu": "no GPU", "ok": true, "steps": []}' >"$json"
  exit 0
fi
echo "GPU: $gpu"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ok=true steps=""

# step NAME COMMAND...: runs it, notes how it ended and how long it took.
step() {
  name=$1
  shift
  start=$(date +%s)
  status=passed
  "$@" >"$work/log" 2>&1 || status=failed
  seconds=$(($(date +%s) - start))
  printf '%-24s %-8s %5s s\n' "$name" "$status" "$seconds"
  if [ "$status" = failed ]; then
    ok=false
    tail -n 40 "$work/log"
  fi
  [ -z "$steps" ] || steps="$steps, "
  steps="$steps{\"name\": $(quoted "$name"), \"status\": \"$status\", \"seconds\": $seconds}"
}

folder=build/cuda/tests/cuda/gpu
if [ "$build" = 1 ]; then
  step configure cmake --preset cuda
  step build cmake --build --preset cuda --target gpu_check
fi

# Fast mode looks for cuBLASLt, which the toolkit brings along, not the driver.
if compiler=$(command -v nvcc); then
  toolkit=$(dirname "$(dirname "$(readlink -f "$compiler")")")
  export LD_LIBRARY_PATH="$toolkit/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi

step runtime "$folder/cuda_driver_test"
step kernels "$folder/cuda_gpu_test"
step engine "$folder/cuda_gpu_engine_test"
if command -v compute-sanitizer >/dev/null 2>&1; then
  for tool in memcheck racecheck initcheck synccheck; do
    step "$tool" compute-sanitizer --tool "$tool" --error-exitcode 1 \
      "$folder/cuda_gpu_test" -# "~[#attention_exact_test]~[#attention_edge_test]"
  done
else
  echo "no compute-sanitizer here; its checks were left out"
fi

# measure NAME COMMAND...: the same for what prints figures, which --json writes as a document.
documents=""
measure() {
  step "$@" --json "$work/document.json"
  [ "$status" = failed ] || cat "$work/log"
  [ ! -s "$work/document.json" ] || documents="${documents:+$documents, }$(cat "$work/document.json")"
  rm -f "$work/document.json"
}

random=""
if [ -z "$model" ]; then
  model=$work/random.gguf
  random=--random
fi
# shellcheck disable=SC2086  # an option or nothing
measure logits "$folder/cuda_gpu_compare_logits" --model "$model" $random

# Each document names its mode: incipit-bench under settings, kernel_benchmark in its numerics.
programs=build/cuda/benchmarks
for mode in exact fast; do
  measure "operations, $mode" "$programs/kernel_benchmark" --device cuda --gpu-math "$mode" \
    --filter '^(matmul/(BF16|Q8_0|Q4_1)|attention.*/(BF16|INT8)|rms_norm|add)/'
  for command in prefill decode shared; do
    measure "$command, $mode" "$programs/incipit-bench" "$command" --no-limits \
      --gpu-math "$mode" --model "$model"
  done
done

printf '{"gpu": %s, "ok": %s, "steps": [%s], "documents": [%s]}\n' \
  "$(quoted "$gpu")" "$ok" "$steps" "$documents" >"$json"
[ "$ok" = true ]
