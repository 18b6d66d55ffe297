// SPDX-License-Identifier: Apache-2.0
#include "cuda/prim/async_copy.cuh"

#include <array>

#include "simt/kernel.h"

using namespace incipit;
using namespace incipit::cuda::prim;
using namespace incipit::testing;

namespace {

struct alignas(16) Source {
  std::array<std::uint32_t, 4 * 32> words = {};
  Source() {
    for (std::uint32_t i = 0; i < words.size(); ++i) words[i] = i + 1;
  }
};

}  // namespace

TEST_CASE("a copy is garbage until its thread has waited") {
  const Source source;
  std::vector<std::uint32_t> before(32), after(32);
  const auto counters = run_kernel(
      32,
      [&] {
        auto* const shared = dynamic_shared<std::uint32_t>();
        shared[4 * lane()] = 7;
        copy_async_16(shared + 4 * lane(), &source.words[4 * lane()], true);
        commit_copies();
        before[lane()] = shared[4 * lane()];
        wait_copies<0>();
        after[lane()] = shared[4 * lane()];
      },
      {}, 512);
  for (std::uint32_t i = 0; i < 32; ++i) {
    CHECK(before[i] == 0xffffffffu);
    CHECK(after[i] == 4 * i + 1);
  }
  CHECK(counters.async_copies == 32);
  CHECK(counters.async_copy_bytes == 512);
}

TEST_CASE("waiting for all but the last groups delivers the others, in order") {
  const Source source;
  std::array<std::uint32_t, 4> seen = {};
  run_kernel(
      32,
      [&] {
        auto* const shared = dynamic_shared<std::uint32_t>();
        if (lane() > 0) return;
        for (unsigned i = 0; i < 3; ++i) {
          copy_async_4(shared + i, &source.words[i], true);
          commit_copies();
        }
        commit_copies();  // an empty group
        wait_copies<2>();
        seen[0] = shared[1];
        seen[1] = shared[2];
        wait_copies<1>();
        seen[2] = shared[2];
        copy_async_4(shared + 3, &source.words[3], true);
        commit_copies();
        wait_copies<0>();
        seen[3] = shared[3];
      },
      {}, 64);
  CHECK(seen == std::array<std::uint32_t, 4>{2, 0xffffffffu, 3, 4});
}

TEST_CASE("a copy that is not valid gives zeros and reads nothing") {
  const Source source;
  std::uint32_t seen = 1;
  run_kernel(
      32,
      [&] {
        auto* const shared = dynamic_shared<std::uint32_t>();
        copy_async_16(shared + 4 * lane(), &source.words[0] + (1 << 20), false);
        commit_copies();
        wait_copies<0>();
        if (lane() == 5) seen = shared[23];
      },
      {}, 512);
  CHECK(seen == 0);
}

TEST_CASE("before sm_80 a copy is done at once") {
  const Source source;
  simt::Options options;
  options.architecture = 75;
  std::uint32_t seen = 0;
  run_kernel(
      32,
      [&] {
        auto* const shared = dynamic_shared<std::uint32_t>();
        copy_async_16(shared + 4 * lane(), &source.words[4 * lane()], true);
        if (lane() == 3) seen = shared[12];
      },
      options, 512);
  CHECK(seen == 13);
}

TEST_CASE("copies that a GPU would refuse or nobody waits for") {
  const Source source;
  const auto failure = [&](auto&& body) {
    return failure_of(
        32, [&] { body(dynamic_shared<unsigned char>()); }, {}, 512);
  };
  CHECK_THAT(failure([&](unsigned char* s) { copy_async_16(s + 4, &source.words[0], true); }),
             says("to a misaligned address"));
  CHECK_THAT(failure([&](unsigned char* s) { copy_async_16(s, &source.words[1], true); }),
             says("from a misaligned address"));
  CHECK_THAT(failure([&](unsigned char* s) { copy_async_16(s + 512, &source.words[0], true); }),
             says("outside of shared memory"));
  CHECK_THAT(failure([&](unsigned char* s) { copy_async_16(s, &source.words[0], true); }),
             says("copies that it did not wait for"));
  CHECK_THAT(failure([&](unsigned char* s) {
               copy_async_16(s, &source.words[0], true);
               commit_copies();
               wait_copies<1>();
             }),
             says("copies that it did not wait for"));
}
