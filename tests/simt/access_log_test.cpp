// SPDX-License-Identifier: Apache-2.0
#include "simt/access_log.h"

#include "cuda/prim/memory.cuh"
#include "simt/kernel.h"

using namespace incipit;
using namespace incipit::cuda::prim;
using namespace incipit::testing;

namespace {

unsigned conflicts(unsigned bytes, std::uintptr_t stride, unsigned count = 32) {
  std::uintptr_t addresses[32];
  for (unsigned i = 0; i < count; ++i) addresses[i] = i * stride;
  return simt::bank_conflicts(addresses, count, bytes);
}

}  // namespace

TEST_CASE("bank conflicts by stride and width") {
  CHECK(conflicts(4, 4) == 0);
  CHECK(conflicts(4, 0) == 0);  // all want the same word
  CHECK(conflicts(4, 8) == 1);
  CHECK(conflicts(4, 128) == 31);
  CHECK(conflicts(4, 132) == 0);
  CHECK(conflicts(2, 2) == 0);
  CHECK(conflicts(1, 128) == 31);
  CHECK(conflicts(8, 8) == 0);  // two parts of 16 lanes
  CHECK(conflicts(8, 128) == 2 * 15);
  CHECK(conflicts(16, 16) == 0);
  CHECK(conflicts(16, 144) == 0);
  CHECK(conflicts(16, 128) == 4 * 7);
  CHECK(conflicts(16, 128, 1) == 0);
}

TEST_CASE("sectors by stride and width") {
  std::uintptr_t addresses[32];
  const auto of = [&](unsigned bytes, std::uintptr_t stride, std::uintptr_t start = 0) {
    for (unsigned i = 0; i < 32; ++i) addresses[i] = start + i * stride;
    return simt::sectors(addresses, 32, bytes);
  };
  CHECK(of(4, 4) == 4);
  CHECK(of(4, 4, 4) == 5);
  CHECK(of(4, 0) == 1);
  CHECK(of(16, 16) == 16);
  CHECK(of(4, 32) == 32);
}

TEST_CASE("accesses of a warp are counted together, lane by lane as they come") {
  std::vector<float> from(4096), to(4096);
  for (const auto schedule :
       {simt::Schedule::kForward, simt::Schedule::kReverse, simt::Schedule::kRandom}) {
    simt::Options options;
    options.schedule = schedule;
    const auto counters = run_kernel(
        64,
        [&] {
          for (unsigned i = thread_x(); i < 256; i += 64) store(&to[i], load(&from[i]));
          if (lane() < 8) load(&from[lane() * 8]);
        },
        options);
    CHECK(counters.global_loads == 2 * 4 + 2);
    CHECK(counters.global_load_bytes == 4 * 256 + 2 * 8 * 4);
    CHECK(counters.global_load_sectors >= 32 + 16);
    CHECK(counters.global_load_sectors <= 2 * (32 + 16));  // the vectors may lie askew
    CHECK(counters.global_stores == 8);
    CHECK(counters.global_store_bytes == 1024);
  }
}

TEST_CASE("accesses on either side of a barrier are not one instruction") {
  const auto counters = run_kernel(
      32,
      [] {
        for (unsigned i = 0; i < 3; ++i) {
          if (lane() == 5 * i) shared_store(dynamic_shared<float>() + 32 * lane(), 1.0f);
          sync_threads();
        }
      },
      {}, 4096);
  CHECK(counters.bank_conflicts == 0);
}

TEST_CASE("more places than the log begins with") {
  std::vector<float> values(1024);
  const auto counters = run_kernel(256, [&] {
    const unsigned i = thread_x();
    const auto at = [&](int line) { load(&values[i], Site{"many", line}); };
    for (int line = 0; line < 100; ++line) at(line);
  });
  CHECK(counters.global_loads == 8 * 100);
}

TEST_CASE("conflicts of ordinary accesses count, and fail where they are to") {
  const auto body = [] { shared_store(dynamic_shared<float>() + 32 * lane(), 1.0f); };
  CHECK(run_kernel(32, body, {}, 4096).bank_conflicts == 31);
  simt::Options options;
  options.conflicts_fail = true;
  CHECK_THAT(failure_of(32, body, options, 4096), says("31 extra passes"));
  options.count_accesses = false;
  CHECK(failure_of(32, body, options, 4096).empty());
}
