// SPDX-License-Identifier: Apache-2.0
// Kernels with a fault that a sanitizer must report: `simt_faults NAME`. Plain accesses, not those
// of cuda/prim, which the emulator checks itself.
#include <cstdio>
#include <string_view>
#include <vector>

#include "cuda/prim/atomic.cuh"
#include "cuda/prim/launch.cuh"
#include "cuda/prim/warp.cuh"

using namespace incipit;
using namespace incipit::cuda::prim;

namespace {

/// Nothing is wrong with it.
void clean(float* out) {
  auto* const shared = dynamic_shared<float>();
  shared[thread_x()] = static_cast<float>(thread_x());
  sync_threads();
  float sum = shared[thread_x() ^ 1u];
  sync_threads();
  shared[thread_x()] = sum;
  sync_warp();
  sum += shared[thread_x() / 32 * 32];
  out[block_x() * 64 + thread_x()] = sum;
}

void no_barrier(float* out) {
  auto* const shared = dynamic_shared<float>();
  shared[thread_x()] = 1.0f;
  out[block_x() * 64 + thread_x()] = shared[thread_x() ^ 33u];
}

/// A shuffle orders nothing.
void shuffle_for_a_barrier(float* out) {
  auto* const shared = dynamic_shared<float>();
  shared[thread_x()] = 1.0f;
  shuffle_xor(1, 1u);
  out[block_x() * 64 + thread_x()] = shared[thread_x() ^ 1u];
}

/// The store of the next round meets the loads of this one.
void one_barrier_for_two(float* out) {
  auto* const shared = dynamic_shared<float>();
  float sum = 0.0f;
  for (int round = 0; round < 3; ++round) {
    shared[thread_x()] = sum;
    sync_threads();
    sum += shared[63 - thread_x()];
  }
  out[block_x() * 64 + thread_x()] = sum;
}

void barrier_of_half_a_warp(float* out) {
  auto* const shared = dynamic_shared<float>();
  shared[thread_x()] = 1.0f;
  sync_warp(lane() < 16 ? 0xffffu : 0xffff0000u);
  out[block_x() * 64 + thread_x()] = shared[thread_x() ^ 16u];
}

/// Blocks are ordered by nothing.
void blocks_share(float* out) { out[63 - (thread_x() + block_x()) % 64] = 1.0f; }

void past_shared_memory(float* out) {
  auto* const shared = dynamic_shared<float>();
  shared[thread_x() + 1] = 1.0f;
  out[thread_x()] = 0.0f;
}

void past_an_array(float* out) {
  INCIPIT_SHARED(float[64], values);
  const unsigned past = thread_x() + block_x() + 1;
  (&values[0])[past] = 1.0f;
  out[thread_x()] = 0.0f;
}

void misaligned(float* out) {
  const auto* const four = reinterpret_cast<const std::uint64_t*>(out + 1);
  const std::uint64_t value = *four;
  out[0] = static_cast<float>(value);
}

struct Fault {
  std::string_view name;
  void (*kernel)(float*);
};

constexpr Fault kFaults[] = {{"clean", clean},
                             {"no_barrier", no_barrier},
                             {"shuffle_for_a_barrier", shuffle_for_a_barrier},
                             {"one_barrier_for_two", one_barrier_for_two},
                             {"barrier_of_half_a_warp", barrier_of_half_a_warp},
                             {"blocks_share", blocks_share},
                             {"past_shared_memory", past_shared_memory},
                             {"past_an_array", past_an_array},
                             {"misaligned", misaligned}};

}  // namespace

int main(int count, char** arguments) {
  for (const Fault& fault : kFaults) {
    if (count != 2 || fault.name != arguments[1]) continue;
    std::vector<float> out(2 * 64 + 2);
    simt::Machine machine;
    cuda::launch(&machine, {.blocks_x = 2, .threads = 64, .shared_bytes = 256}, fault.kernel,
                 out.data());
    std::puts("the kernel ran to its end");
    return 0;
  }
  std::puts("name a fault");
  return 1;
}
