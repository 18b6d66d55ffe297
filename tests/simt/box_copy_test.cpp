// SPDX-License-Identifier: Apache-2.0
#include "cuda/prim/box_copy.cuh"

#include "cuda/prim/memory.cuh"
#include "simt/kernel.h"

using namespace incipit;
using namespace incipit::cuda;
using namespace incipit::cuda::prim;
using namespace incipit::testing;

namespace {

constexpr unsigned kRows = 24, kColumns = 128, kPlanes = 3, kBoxRows = 16;
constexpr unsigned kBoxBytes = kBoxRows * 128;
constexpr std::size_t kShared = 1024 + 2 * kBoxBytes + 64;

/// An array of planes of rows, in which each value is its own index.
struct alignas(16) Source {
  std::vector<std::uint16_t> values = std::vector<std::uint16_t>(kPlanes * kRows * kColumns);
  Source() {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint16_t>(i);
  }
  TensorMap map() const {
    return make_tensor_map(
        {values.data(), {kColumns, kRows, kPlanes}, kColumns * 2, kRows * kColumns * 2, kBoxRows});
  }
};

simt::Options sm_90(simt::Schedule schedule = simt::Schedule::kForward) {
  simt::Options options;
  options.architecture = 90;
  options.schedule = schedule;
  return options;
}

struct Place {
  unsigned char* box;  // two of them, aligned
  PhaseBarrier* barriers;
};

/// Two barriers, made by thread 0, of one arrival each.
Place prepare(unsigned arrivals = 1) {
  auto* const shared = dynamic_shared<unsigned char>();
  auto* const box = shared + (1024 - shared_address(shared) % 1024) % 1024;
  auto* const barriers = reinterpret_cast<PhaseBarrier*>(box + 2 * kBoxBytes);
  if (thread_x() == 0) {
    init_barrier(barriers, arrivals);
    init_barrier(barriers + 1, arrivals);
    publish_barriers();
  }
  sync_threads();
  return {box, barriers};
}

std::uint16_t value_at(const unsigned char* box, unsigned row, unsigned column) {
  std::uint16_t value = 0;
  const unsigned chunk = column / 8 ^ row % 8;
  std::memcpy(&value, box + row * 128 + chunk * 16 + column % 8 * 2, 2);
  return value;
}

template <class Body>
std::string failure(const Body& body) {
  const Source source;
  const TensorMap map = source.map();
  return failure_of(
      64, [&] { body(prepare(), map); }, sm_90(), kShared);
}

}  // namespace

TEST_CASE("a box arrives swizzled, zeros where the array ends, when its barrier is waited for") {
  const Source source;
  const TensorMap map = source.map();
  for (const auto schedule :
       {simt::Schedule::kForward, simt::Schedule::kReverse, simt::Schedule::kRandom}) {
    unsigned wrong = 0, early = 0;
    const auto counters = run_kernel(
        64,
        [&] {
          const Place place = prepare();
          if (thread_x() == 0) {
            arrive(place.barriers, 2 * kBoxBytes);
            copy_box(place.box, map, 64, 3, 2, place.barriers);
            copy_box(place.box + kBoxBytes, map, 0, 20, 1, place.barriers);  // four rows are there
            early = value_at(place.box, 0, 0);
          }
          wait_phase(place.barriers, 0);
          if (thread_x() != 40) return;
          for (unsigned row = 0; row < kBoxRows; ++row) {
            for (unsigned column = 0; column < 64; ++column) {
              const unsigned first = (2 * kRows + row + 3) * kColumns + 64 + column;
              const unsigned second = row < 4 ? (kRows + row + 20) * kColumns + column : 0;
              wrong += value_at(place.box, row, column) != first;
              wrong += value_at(place.box + kBoxBytes, row, column) != second;
            }
          }
        },
        sm_90(schedule), kShared);
    CHECK(early == 0xffff);
    CHECK(wrong == 0);
    CHECK(counters.tensor_copies == 2);
    CHECK(counters.tensor_copy_bytes == 2 * kBoxBytes);
  }
}

TEST_CASE("phases end by arrivals and alternate") {
  for (const auto schedule :
       {simt::Schedule::kForward, simt::Schedule::kReverse, simt::Schedule::kRandom}) {
    std::vector<unsigned> order;
    run_kernel(
        64,
        [&] {
          const Place place = prepare(32);
          if (warp() == 1) wait_phase(place.barriers, 1);  // before the first phase
          for (unsigned round = 0; round < 4; ++round) {
            if (warp() == 1) {
              wait_phase(place.barriers + 1, round % 2 ^ 1u);
              if (lane() == 7) order.push_back(2 * round);
              arrive(place.barriers);
            } else {
              wait_phase(place.barriers, round % 2);
              if (lane() == 9) order.push_back(2 * round + 1);
              arrive(place.barriers + 1);
            }
          }
        },
        sm_90(schedule), kShared);
    CHECK(order == std::vector<unsigned>{0, 1, 2, 3, 4, 5, 6, 7});
  }
}

TEST_CASE("barriers and boxes that a GPU would refuse or get wrong") {
  CHECK_THAT(failure([](Place place, const TensorMap&) { wait_phase(place.barriers, 0); }),
             says("64 threads, the first is 0: an mbarrier's phase of parity 0"));
  CHECK_THAT(failure([](Place place, const TensorMap&) { arrive(place.barriers + 2); }),
             says("used before it is made"));
  CHECK_THAT(failure([](Place place, const TensorMap&) { init_barrier(place.barriers, 1); }),
             says("made twice"));
  CHECK_THAT(failure([](Place place, const TensorMap& map) {
               if (thread_x() > 0) return;
               init_barrier(place.barriers + 2, 1);
               copy_box(place.box, map, 0, 0, 0, place.barriers + 2);
             }),
             says("no fence has made the mbarrier known"));
  CHECK_THAT(failure([](Place place, const TensorMap& map) {
               if (thread_x() > 0) return;
               arrive(place.barriers, kBoxBytes);
               copy_box(place.box, map, 0, 0, 0, place.barriers);
             }),
             says("tensor copies that nobody waited for"));
  CHECK_THAT(failure([](Place place, const TensorMap& map) {
               if (thread_x() > 0) return;
               arrive(place.barriers, kBoxBytes - 16);
               copy_box(place.box, map, 0, 0, 0, place.barriers);
               wait_phase(place.barriers, 0);
             }),
             says("copies bring more bytes"));
  CHECK_THAT(failure([](Place place, const TensorMap& map) {
               if (thread_x() > 0) return;
               arrive(place.barriers, kBoxBytes + 16);
               copy_box(place.box, map, 0, 0, 0, place.barriers);
               wait_phase(place.barriers, 0);
             }),
             says("deadlock"));
  CHECK_THAT(failure([](Place place, const TensorMap& map) {
               if (thread_x() > 0) return;
               arrive(place.barriers, kBoxBytes);
               copy_box(place.box, map, 0, 0, 0, place.barriers);
               arrive(place.barriers);
             }),
             says("more arrivals than it counts"));
}

TEST_CASE("boxes that go to the wrong place") {
  CHECK_THAT(failure([](Place place, const TensorMap& map) {
               copy_box(place.box + 64, map, 0, 0, 0, place.barriers);
             }),
             says("no multiple of 128"));
  CHECK_THAT(failure([](Place place, const TensorMap& map) {
               copy_box(place.box + 2 * kBoxBytes, map, 0, 0, 0, place.barriers);
             }),
             says("outside of shared memory"));
  CHECK_THAT(failure([](Place place, const TensorMap& map) {
               if (lane() == 3) shared_store(place.box + 5 + warp(), std::uint8_t{1});
               sync_threads();
               copy_box(place.box, map, 0, 0, 0, place.barriers);
             }),
             says("stored without fence.proxy.async"));
  CHECK_THAT(failure([](Place place, TensorMap map) {
               map.strides[0] += 2;
               copy_box(place.box, map, 0, 0, 0, place.barriers);
             }),
             says("multiples of 16 bytes"));
  CHECK_THAT(failure([](Place place, TensorMap map) {
               map.box[1] = 257;
               copy_box(place.box, map, 0, 0, 0, place.barriers);
             }),
             says("256 of them at most"));
  CHECK_THAT(failure_of(
                 32, [] { init_barrier(dynamic_shared<PhaseBarrier>(), 1); }, {}, 64),
             says("needs sm_90"));
}
