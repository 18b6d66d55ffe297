// SPDX-License-Identifier: Apache-2.0
#include "cuda/prim/group_product.cuh"

#include <cmath>

#include "cuda/prim/memory.cuh"
#include "cuda/prim/phase_barrier.cuh"
#include "simt/kernel.h"

using namespace incipit;
using namespace incipit::cuda::prim;
using namespace incipit::testing;

namespace {

constexpr unsigned kRowBytes = 128, kAtom = 1024;
constexpr unsigned kDepth = 64;  // of the products here: four steps

simt::Options sm_90(simt::Schedule schedule = simt::Schedule::kForward) {
  simt::Options options;
  options.architecture = 90;
  options.schedule = schedule;
  return options;
}

/// Small numbers that are exact in every type, different in rows and columns.
float element(unsigned row, unsigned column) {
  return static_cast<float>(static_cast<int>((row * 7 + column * 5 + row * column) % 17) - 8) / 4;
}

/// Shared memory from the first address that is a multiple of 1,024.
unsigned char* aligned_shared() {
  auto* const shared = dynamic_shared<unsigned char>();
  return shared + (kAtom - shared_address(shared) % kAtom) % kAtom;
}

template <class T>
void put(unsigned char* tile, unsigned row, unsigned column, float value) {
  const unsigned chunk = column / 8 ^ row % 8;
  shared_store(reinterpret_cast<T*>(tile + row * kRowBytes + chunk * 16) + column % 8,
               from_float<T>(value));
}

/// Rows of 64 values each: `tiles` pieces of `rows` side by side, by all threads.
template <class T>
void fill(unsigned char* tile, unsigned rows, unsigned columns) {
  for (unsigned i = thread_x(); i < rows * columns; i += kGroupThreads) {
    const unsigned row = i / columns, column = i % columns;
    put<T>(tile + column / 64 * rows * kRowBytes, row, column % 64, element(row, column));
  }
}

void share() {
  fence_async_proxy();
  sync_threads();
}

/// Where register i of this thread's sums lies.
unsigned row_of(unsigned i) { return thread_x() / 32 * 16 + lane() / 4 + i / 2 % 2 * 8; }
unsigned column_of(unsigned i) { return i / 4 * 8 + lane() % 4 * 2 + i % 2; }

struct Place {
  unsigned char *a, *b;
};
constexpr std::size_t kShared = kAtom + (64 + 128) * kRowBytes;

/// a [64, 64] and b [128, 64] in shared memory, for products by descriptors.
template <class T>
Place prepare() {
  unsigned char* const a = aligned_shared();
  fill<T>(a, 64, kDepth);
  fill<T>(a + 64 * kRowBytes, 128, kDepth);
  share();
  return {a, a + 64 * kRowBytes};
}

std::uint64_t describe(const unsigned char* tile, unsigned step) {
  return describe_matrix(shared_address(tile) + step * 32, 16, kAtom);
}

template <class T>
void multiply_all(float (&sums)[64], Place place) {
  begin_products(Site::here(), sums);
  multiply_group<T, false>(sums, describe(place.a, 0), describe(place.b, 0));
  for (unsigned step = 1; step < kDepth / 16; ++step) {
    multiply_group<T, true>(sums, describe(place.a, step), describe(place.b, step));
  }
  commit_products();
}

double wanted(unsigned row, unsigned column) {
  double sum = 0.0;
  for (unsigned k = 0; k < kDepth; ++k) {
    sum += static_cast<double>(element(row, k)) * static_cast<double>(element(column, k));
  }
  return sum;
}

}  // namespace

TEMPLATE_TEST_CASE("products of a warpgroup from shared memory", "", cuda::F16, cuda::BF16) {
  for (const auto schedule :
       {simt::Schedule::kForward, simt::Schedule::kReverse, simt::Schedule::kRandom}) {
    std::vector<float> out(64 * 128);
    bool early = false;
    const auto counters = run_kernel(
        kGroupThreads,
        [&] {
          float sums[64];
          multiply_all<TestType>(sums, prepare<TestType>());
          if (thread_x() == 77) early = sums[5] == sums[5];  // NaN until they are waited for
          wait_products<0>(Site::here(), sums);
          for (unsigned i = 0; i < 64; ++i) out[row_of(i) * 128 + column_of(i)] = sums[i];
        },
        sm_90(schedule), kShared);
    CHECK_FALSE(early);
    CHECK(counters.group_products == 4);
    unsigned wrong = 0;
    for (unsigned i = 0; i < out.size(); ++i) {
      wrong += static_cast<double>(out[i]) == wanted(i / 128, i % 128) ? 0u : 1u;
    }
    CHECK(wrong == 0);
  }
}

template <class T, unsigned kCount>
void check_rows() {
  constexpr unsigned kColumns = 2 * kCount;
  std::vector<float> out(64 * kColumns);
  run_kernel(
      kGroupThreads,
      [&] {
        unsigned char* const b = aligned_shared();
        fill<T>(b, kDepth, kColumns);  // 64 columns of all rows, then the next 64
        share();
        std::uint32_t a[kDepth / 16][4];
        for (unsigned step = 0; step < kDepth / 16; ++step) {
          for (unsigned j = 0; j < 4; ++j) {
            const unsigned row = row_of(2 * j), k = step * 16 + lane() % 4 * 2 + j / 2 * 8;
            a[step][j] = pack_pair<T>(element(row, k), element(row, k + 1));
          }
        }
        float sums[kCount];
        for (float& sum : sums) sum = 1.0f;
        begin_products(Site::here(), sums, a);
        for (unsigned step = 0; step < kDepth / 16; ++step) {
          multiply_group_rows<T>(sums, a[step],
                                 describe_matrix(shared_address(b) + step * 16 * kRowBytes,
                                                 kDepth * kRowBytes, kAtom));
        }
        commit_products();
        wait_products<0>(Site::here(), sums);
        for (unsigned i = 0; i < kCount; ++i) out[row_of(i) * kColumns + column_of(i)] = sums[i];
      },
      sm_90(), kAtom + kDepth * 2 * kRowBytes);
  unsigned wrong = 0;
  for (unsigned row = 0; row < 64; ++row) {
    for (unsigned column = 0; column < kColumns; ++column) {
      double sum = 1.0;
      for (unsigned k = 0; k < kDepth; ++k) {
        sum += static_cast<double>(element(row, k)) * static_cast<double>(element(k, column));
      }
      wrong += static_cast<double>(out[row * kColumns + column]) == sum ? 0u : 1u;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("products of a warpgroup from registers, b by rows") {
  check_rows<cuda::F16, 64>();
  check_rows<cuda::BF16, 64>();
  check_rows<cuda::F16, 32>();
  check_rows<cuda::BF16, 32>();
}

TEST_CASE("waiting for all groups but the last delivers those before, unless they are still used") {
  std::vector<unsigned> seen;
  run_kernel(
      kGroupThreads,
      [&] {
        const Place place = prepare<cuda::F16>();
        float first[64], second[64];
        multiply_all<cuda::F16>(first, place);
        multiply_all<cuda::F16>(second, place);
        wait_products<1>(Site::here(), first);
        const bool arrived = first[0] == first[0], early = second[0] == second[0];
        begin_products(Site::here(), first);
        multiply_group<cuda::F16, true>(first, describe(place.a, 0), describe(place.b, 0));
        commit_products();
        wait_products<1>(Site::here(), second);
        const bool again = first[0] == first[0], late = second[0] == second[0];
        wait_products<0>(Site::here(), first);
        if (thread_x() == 0) seen = {arrived, early, again, late, first[0] == first[0]};
      },
      sm_90(), kShared);
  CHECK(seen == std::vector<unsigned>{true, false, false, true, true});
}

namespace {

/// What the emulator says to body(sums, place), which may do anything with what is prepared.
template <class Body>
std::string failure(const Body& body) {
  return failure_of(
      kGroupThreads,
      [&] {
        const Place place = prepare<cuda::F16>();
        float sums[64] = {};
        body(sums, place);
      },
      sm_90(), kShared);
}

using Sums = float[64];

}  // namespace

TEST_CASE("products of a warpgroup that a GPU would get wrong") {
  CHECK(failure([](Sums& sums, Place place) {
          multiply_all<cuda::F16>(sums, place);
          wait_products<0>(Site::here(), sums);
        }) == "");
  CHECK_THAT(failure([](Sums& sums, Place place) {
               multiply_group<cuda::F16, false>(sums, describe(place.a, 0), describe(place.b, 0));
             }),
             says("no wgmma.fence"));
  CHECK_THAT(failure([](Sums& sums, Place place) {
               multiply_all<cuda::F16>(sums, place);
               wait_products<0>(Site::here(), sums);
               multiply_group<cuda::F16, true>(sums, describe(place.a, 0), describe(place.b, 0));
             }),
             says("no wgmma.fence"));
  CHECK_THAT(failure([](Sums& sums, Place place) { multiply_all<cuda::F16>(sums, place); }),
             says("products of a warpgroup that it did not wait for"));
  CHECK_THAT(failure([](Sums& sums, Place place) {
               multiply_all<cuda::F16>(sums, place);
               wait_products<1>(Site::here(), sums);
             }),
             says("did not wait for"));
  CHECK_THAT(failure([](Sums& sums, Place place) {
               multiply_all<cuda::F16>(sums, place);
               for (float& sum : sums) sum *= 2.0f;
               wait_products<0>(Site::here(), sums);
             }),
             says("an accumulator was written to before"));
  CHECK_THAT(failure([](Sums& sums, Place place) {
               multiply_all<cuda::F16>(sums, place);
               sums[3] = 0.0f;
               multiply_all<cuda::F16>(sums, place);
             }),
             says("the accumulator of a product under way"));
  CHECK_THAT(failure([](Sums& sums, Place place) {
               multiply_all<cuda::F16>(sums, place);
               if (thread_x() == 0) put<cuda::F16>(place.b, 3, 3, 99.0f);
               fence_async_proxy();
               wait_products<0>(Site::here(), sums);
             }),
             says("operands were changed"));
  CHECK_THAT(failure([](Sums& sums, Place place) {
               if (thread_x() == 5) put<cuda::F16>(place.b, 3, 3, 99.0f);
               sync_threads();
               multiply_all<cuda::F16>(sums, place);
             }),
             says("what thread 5 has stored without fence.proxy.async"));
  CHECK_THAT(failure([](Sums& sums, Place place) {
               multiply_all<cuda::F16>(sums, {place.a, place.b + kAtom});
             }),
             says("a descriptor leads out of shared memory"));
  CHECK_THAT(failure([](Sums& sums, Place place) {
               begin_products(Site::here(), sums);
               multiply_group<cuda::F16, false>(sums, describe(place.a, thread_x() / 64),
                                                describe(place.b, 0));
             }),
             says("pass different operands"));
  CHECK_THAT(failure([](Sums& sums, Place place) {
               begin_products(Site::here(), sums);
               multiply_group<cuda::F16, false>(sums, describe(place.a, 0) & ~(3ull << 62),
                                                describe(place.b, 0));
             }),
             says("only those of 128-byte swizzle"));
  CHECK_THAT(failure([](Sums& sums, Place place) {
               if (thread_x() < 96) multiply_all<cuda::F16>(sums, place);
               commit_products();
             }),
             says("the threads of a warpgroup are at different places"));
  CHECK_THAT(failure([](Sums& sums, Place place) {
               if (thread_x() < 96) multiply_all<cuda::F16>(sums, place);
             }),
             says("wgmma.fence of warpgroup 0 at"));
  CHECK_THAT(failure_of(
                 64, [] { commit_products(); }, sm_90()),
             says("whole warpgroups"));
  CHECK_THAT(failure_of(128, [] { commit_products(); }), says("needs sm_90a"));
}

TEST_CASE("registers of a under way must stay") {
  CHECK_THAT(failure([](Sums& sums, Place place) {
               std::uint32_t a[1][4] = {};
               begin_products(Site::here(), sums, a);
               multiply_group_rows<cuda::F16>(sums, a[0], describe(place.a, 0));
               commit_products();
               a[0][lane() % 4] = 1;
               wait_products<0>(Site::here(), sums);
             }),
             says("operands were changed"));
}
