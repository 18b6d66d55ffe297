// SPDX-License-Identifier: Apache-2.0
// Copies between host and device, and arrays that operations bring along, in every order of
// streams.
#include "cuda/transfers.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "cuda/host_array.h"
#include "cuda/runtime_test.h"
#include "support/catch.h"

using namespace incipit;
using cuda::HostArray;
using cuda::StepQueue;
using cuda::StreamRef;
using cuda::Transfers;
using simt::EmulatedRuntime;
using testing::stream_orders;

namespace {

std::vector<std::byte> pattern(std::size_t bytes, unsigned seed) {
  std::vector<std::byte> out(bytes);
  unsigned state = seed * 2654435761u + 1;
  for (std::byte& value : out) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<std::byte>(state >> 24);
  }
  return out;
}

std::vector<std::byte> downloaded(Transfers& transfers, const std::byte* from, std::size_t bytes) {
  std::vector<std::byte> out(bytes);
  transfers.download(from, out);
  return out;
}

/// An array of a stream, and what looks at it.
struct Arrays {
  explicit Arrays(const simt::RuntimeOptions& options) : runtime(options) {}

  EmulatedRuntime runtime;
  const StreamRef compute = runtime.make_stream();
  Transfers transfers{runtime, compute};
  StepQueue queue{runtime, compute};
  HostArray array{runtime, queue};
};

}  // namespace

TEST_CASE("bytes go to the device and back, whatever their number") {
  for (const auto& options : stream_orders(4)) {
    EmulatedRuntime runtime(options);
    const StreamRef compute = runtime.make_stream();
    Transfers transfers(runtime, compute);
    for (const std::size_t bytes :
         {std::size_t{0}, std::size_t{1}, Transfers::kSmallBytes, Transfers::kSmallBytes + 1,
          Transfers::kChunkBytes, Transfers::kChunkBytes + 1, 3 * Transfers::kChunkBytes + 5}) {
      const device::Buffer memory = runtime.allocate(bytes);
      auto given = pattern(bytes, 1);
      const auto wanted = given;
      transfers.upload(given, memory.data());
      std::fill(given.begin(), given.end(), std::byte{0});  // may change as soon as it returns
      CAPTURE(bytes);
      CHECK(downloaded(transfers, memory.data(), bytes) == wanted);
    }
  }
}

TEST_CASE("a copy comes after the work queued before it, and before the work queued after it") {
  for (const std::size_t bytes : {std::size_t{100}, 2 * Transfers::kChunkBytes + 100}) {
    for (const auto& options : stream_orders(8)) {
      EmulatedRuntime runtime(options);
      const StreamRef compute = runtime.make_stream();
      Transfers transfers(runtime, compute);
      const device::Buffer memory = runtime.allocate(bytes), kept = runtime.allocate(bytes);
      const std::vector<std::byte> ones(bytes, std::byte{1});
      CAPTURE(bytes, static_cast<int>(options.order), options.seed);

      // The block is read by a step, then gets other contents, which the next step reads.
      runtime.fill(compute, memory.data(), std::byte{7}, bytes);
      runtime.copy(compute, memory.data(), kept.data(), bytes);
      transfers.upload(ones, memory.data());
      CHECK(downloaded(transfers, kept.data(), bytes) ==
            std::vector<std::byte>(bytes, std::byte{7}));
      runtime.copy(compute, memory.data(), kept.data(), bytes);
      CHECK(downloaded(transfers, kept.data(), bytes) == ones);

      // What a step has yet to write is not stored before.
      runtime.fill(compute, memory.data(), std::byte{9}, bytes);
      CHECK(downloaded(transfers, memory.data(), bytes) ==
            std::vector<std::byte>(bytes, std::byte{9}));
    }
  }
}

TEST_CASE("small uploads wait for nothing until their memory runs out") {
  EmulatedRuntime runtime;
  const StreamRef compute = runtime.make_stream();
  Transfers transfers(runtime, compute);
  const device::Buffer memory = runtime.allocate(10 * 64);
  std::vector<std::byte> wanted;
  for (unsigned i = 0; i < 10; ++i) {
    const auto part = pattern(64, i);
    transfers.upload(part, memory.data() + i * 64);
    wanted.insert(wanted.end(), part.begin(), part.end());
  }
  CHECK(downloaded(transfers, memory.data(), wanted.size()) == wanted);
}

TEST_CASE("many threads copy at a time") {
  EmulatedRuntime runtime({.order = simt::StreamOrder::kRandom});
  const StreamRef compute = runtime.make_stream();
  Transfers transfers(runtime, compute);
  constexpr std::size_t kThreads = 4;
  constexpr std::size_t kPieces[] = {300, Transfers::kSmallBytes + 300};
  const std::size_t all = kPieces[0] + kPieces[1];
  const device::Buffer memory = runtime.allocate(kThreads * all);
  std::vector<char> right(kThreads, 0);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      bool same = true;
      for (unsigned round = 0; round < 5; ++round) {
        std::byte* to = memory.data() + i * all;
        for (const std::size_t bytes : kPieces) {
          const auto given = pattern(bytes, static_cast<unsigned>(i) + round);
          transfers.upload(given, to);
          same = same && downloaded(transfers, to, bytes) == given;
          to += bytes;
        }
      }
      right[i] = same ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == std::vector<char>(kThreads, 1));
}

TEST_CASE("a lost device fails a copy, and memory that is refused the making") {
  EmulatedRuntime runtime;
  const StreamRef compute = runtime.make_stream();
  runtime.refuse_allocation(1);
  CHECK_THROWS_AS(Transfers(runtime, compute), Error);
  Transfers transfers(runtime, compute);
  const device::Buffer memory = runtime.allocate(64);
  runtime.lose_device(3);
  std::vector<std::byte> bytes(64);
  CHECK_THROWS_AS(transfers.download(memory.data(), bytes), Error);
  CHECK_THROWS_AS(transfers.upload(bytes, memory.data()), Error);
}

TEST_CASE("arrays are brought once, and are there for what comes next in the stream") {
  for (const auto& options : stream_orders(8)) {
    Arrays all(options);
    EmulatedRuntime& runtime = all.runtime;
    const StreamRef compute = all.compute;
    constexpr std::size_t kBytes = 6000;
    const device::Buffer memory = runtime.allocate(20 * kBytes);
    const auto uploads = runtime.counters().uploads;
    std::vector<std::byte> wanted;
    for (unsigned i = 0; i < 20; ++i) {
      auto first = pattern(100, i), second = pattern(kBytes - 128, 100 + i);
      for (int layer = 0; layer < 3; ++layer) {
        const std::byte* const there = all.array.bring({first, {}, second});
        runtime.copy(compute, there, memory.data() + i * kBytes, 100);
        runtime.copy(compute, there + HostArray::aligned(100), memory.data() + i * kBytes + 100,
                     second.size());
      }
      wanted.insert(wanted.end(), first.begin(), first.end());
      wanted.insert(wanted.end(), second.begin(), second.end());
      wanted.resize((i + 1) * kBytes, std::byte{0xff});
      std::fill(first.begin(), first.end(), std::byte{0});
      std::fill(second.begin(), second.end(), std::byte{0});
    }
    CHECK(runtime.counters().uploads - uploads == 20);
    CHECK(downloaded(all.transfers, memory.data(), wanted.size()) == wanted);
  }
}

TEST_CASE("arrays take memory when they grow, and no more") {
  EmulatedRuntime runtime;
  const StreamRef compute = runtime.make_stream();
  StepQueue queue(runtime, compute);
  HostArray array(runtime, queue);
  array.bring({pattern(100000, 1)});
  const auto allocations = runtime.counters().allocations;
  for (unsigned i = 0; i < 10; ++i) array.bring({pattern(100000 - i, i)});
  array.bring({});
  CHECK(runtime.counters().allocations == allocations);
  array.bring({pattern(150000, 3)});
  CHECK(runtime.counters().allocations > allocations);
}

TEST_CASE("steps find their arrays where those of the last step were, though these may be in use") {
  for (const auto& options : stream_orders(8)) {
    Arrays all(options);
    EmulatedRuntime& runtime = all.runtime;
    const StreamRef compute = all.compute;
    constexpr std::size_t kBytes = 500;
    const device::Buffer memory = runtime.allocate(30 * kBytes);
    std::vector<std::byte> wanted;
    std::vector<const std::byte*> places;
    for (unsigned step = 0; step < 5; ++step) {
      all.array.begin();
      for (unsigned i = 0; i < 6; ++i) {  // more than there are versions
        const auto bytes = pattern(kBytes, i < 2 ? i : 10 * step + i);
        places.push_back(all.array.bring({bytes}));
        runtime.copy(compute, places.back(), memory.data() + (step * 6 + i) * kBytes, kBytes);
        wanted.insert(wanted.end(), bytes.begin(), bytes.end());
        if (step > 0) CHECK(places.back() == places[i]);
      }
    }
    CHECK(downloaded(all.transfers, memory.data(), wanted.size()) == wanted);
  }
}
