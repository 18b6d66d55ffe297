// SPDX-License-Identifier: Apache-2.0
// Steps of decoding as graphs: of single launches, and of the device's.
#include "cuda/step_queue.h"

#include <memory>
#include <vector>

#include "cuda/decoding.h"
#include "cuda/prim/launch.cuh"
#include "cuda/prim/memory.cuh"
#include "support/catch.h"

using namespace incipit;
using namespace incipit::testing;
using cuda::StepQueue;
using simt::EmulatedRuntime;
using simt::GraphState;

namespace {

constexpr std::uint32_t kPrime = 31;

/// Not commutative, so that the order shows.
INCIPIT_KERNEL(32) digit_kernel(std::uint32_t* value, std::uint32_t digit) {
  using namespace cuda::prim;
  if (thread_x() == 0) store(value, load(value) * kPrime + digit);
}

/// A number in memory of the device, to which a queue appends digits.
class Digits {
 public:
  explicit Digits(const simt::RuntimeOptions& options = {})
      : runtime(options),
        queue(runtime, runtime.make_stream()),
        pinned_(runtime.allocate_pinned(sizeof(std::uint32_t))),
        value_(runtime.allocate(sizeof(std::uint32_t))) {
    runtime.fill(queue.stream(), value_.data(), std::byte{0}, value_.bytes());
  }

  void append(std::uint32_t digit) {
    auto* const value = value_.as<std::uint32_t>().data();
    wanted_ = wanted_ * kPrime + digit;
    queue.launch([value, digit, unused = std::uint32_t{0}](void* native) {
      cuda::launch(static_cast<cuda::Stream>(native), {.threads = 32}, &digit_kernel, value,
                   digit + unused);
    });
  }
  void step(const std::vector<std::uint32_t>& digits, std::size_t rows = 1) {
    queue.begin(rows);
    for (const std::uint32_t digit : digits) append(digit);
    queue.end();
  }
  bool right() {
    runtime.download(queue.stream(), value_.data(), pinned_.data(), value_.bytes());
    runtime.synchronize(queue.stream());
    return pinned_.as<std::uint32_t>()[0] == wanted_;
  }

  EmulatedRuntime runtime;
  StepQueue queue;

 private:
  const device::Buffer pinned_, value_;
  std::uint32_t wanted_ = 0;
};

}  // namespace

TEST_CASE("the second step of a kind makes a graph, and those behind it start it") {
  for (const auto& options : stream_orders(4)) {
    Digits digits(options);
    CAPTURE(static_cast<int>(options.order), options.seed);
    digits.step({1, 2});
    CHECK(digits.runtime.counters().launches == 2);
    CHECK(digits.runtime.counters().graphs == 0);
    for (std::uint64_t i = 1; i <= 3; ++i) {
      digits.step({1, 2});
      CHECK(digits.runtime.counters().graph_launches == i);
      CHECK(digits.right());
    }
    CHECK(digits.runtime.counters().graphs == 1);
    CHECK(digits.runtime.counters().launches == 2);
  }
}

TEST_CASE("a step that differs is not the graph's, which changes for the next") {
  struct Case {
    GraphState state;
    std::uint64_t graphs, updates, starts;
  };
  for (const Case& c : {Case{GraphState::kFine, 2, 1, 4}, Case{GraphState::kNoUpdates, 3, 0, 4},
                        Case{GraphState::kRefusing, 0, 0, 0}}) {
    simt::RuntimeOptions options;
    options.graphs = c.state;
    Digits digits(options);
    for (const auto& step : std::vector<std::vector<std::uint32_t>>{
             {1, 2}, {1, 2}, {1, 3}, {1, 3}, {1, 3}, {1, 3, 4}, {1, 3}, {1, 3, 4}, {1, 3, 4}}) {
      digits.step(step);
    }
    const auto counters = digits.runtime.counters();
    CAPTURE(static_cast<int>(c.state));
    CHECK(digits.right());
    CHECK(counters.graphs == c.graphs);
    CHECK(counters.graph_updates == c.updates);
    CHECK(counters.graph_launches == c.starts);
  }
}

TEST_CASE("steps are remembered by their rows, and only the last few") {
  Digits digits;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t rows = 1; rows <= 3; ++rows) digits.step({5}, rows);
  }
  CHECK(digits.runtime.counters().graphs == 3);
  CHECK(digits.runtime.counters().graph_launches == 6);
  for (int round = 0; round < 3; ++round) {
    for (std::size_t rows = 11; rows <= 30; ++rows) digits.step({5}, rows);
  }
  CHECK(digits.runtime.counters().graphs == 3);
  for (int i = 0; i < 3; ++i) digits.step({5}, StepQueue::kMostRows + 1);
  digits.step({}, 1);
  CHECK(digits.runtime.counters().graph_launches == 6);
  CHECK(digits.right());
}

TEST_CASE("what cannot wait goes behind what was kept, and the rest of the step is not kept") {
  Digits digits;
  for (int i = 0; i < 3; ++i) {
    digits.queue.begin(1);
    digits.append(7);
    digits.append(8);
    digits.queue.flush();
    CHECK(digits.right());
    digits.append(9);
    CHECK(digits.right());
    digits.queue.end();
  }
  CHECK(digits.runtime.counters().graphs == 0);
  digits.queue.begin(1);
  digits.append(3);
  digits.step({4});  // the step before never ended
  CHECK(digits.right());
}

TEST_CASE("a lost device ends a step, with graph and without") {
  for (const int steps_before : {0, 1, 2}) {
    Digits digits;
    for (int i = 0; i < steps_before; ++i) digits.step({1, 2});
    digits.queue.begin(1);
    digits.append(1);
    digits.append(2);
    digits.runtime.lose_device(1);
    for (int i = 0; i < 2; ++i) {
      try {
        digits.queue.end();
        CHECK(i > 0);  // nothing is left to do
      } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::kDeviceLost);
      }
    }
  }
}

TEST_CASE("steps of the device give the same bits as graphs") {
  std::vector<std::vector<float>> wanted;
  const auto run = [&](const simt::RuntimeOptions& options, bool is_step) {
    const auto runtime = std::make_shared<EmulatedRuntime>(options);
    const auto device = cuda::make_cuda_device(runtime, Activations::kMixed, 1);
    Decoding decoding(*device);
    std::vector<std::vector<float>> rows;
    for (std::uint32_t position = 256; position < 262; ++position) {
      for (const std::size_t count : {8u, 3u}) {
        rows.push_back(decoding.step(position, count, is_step));
      }
    }
    if (cuda::kClearsPadding && is_step) {
      const auto counters = runtime->counters();
      const bool graphs = options.graphs == GraphState::kFine;
      CHECK(counters.graphs == (graphs ? 2 : 0));
      // In the very first step the workspace grows, which ends what is kept of it.
      CHECK(counters.graph_launches == (graphs ? 9 : 0));
    }
    return rows;
  };
  wanted = run({}, false);
  auto orders = stream_orders(2);
  orders.emplace_back().graphs = GraphState::kRefusing;
  for (const auto& options : orders) {
    CAPTURE(static_cast<int>(options.order), options.seed);
    CHECK(run(options, true) == wanted);
  }
}

TEST_CASE("memory that runs out in a step leaves the device as it was") {
  std::vector<std::vector<float>> wanted;
  const auto positions = {256u, 257u, 258u, 259u};
  {
    const auto device =
        cuda::make_cuda_device(std::make_shared<EmulatedRuntime>(), Activations::kMixed, 1);
    Decoding decoding(*device);
    for (const std::uint32_t position : positions) {
      wanted.push_back(decoding.step(position, 3, false));
    }
  }
  for (const std::uint64_t refused : {1u, 2u}) {
    const auto runtime = std::make_shared<EmulatedRuntime>();
    const auto device = cuda::make_cuda_device(runtime, Activations::kMixed, 1);
    Decoding decoding(*device);
    std::vector<std::vector<float>> got;
    for (const std::uint32_t position : positions) {
      runtime->refuse_allocation(refused);  // the workspace grows twice in the first step
      try {
        decoding.step(position, 3, true);
        CHECK(position > 256);
      } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::kOutOfMemory);
        CHECK(position == 256);
        device->end_step();
      }
      runtime->refuse_allocation(std::uint64_t{1} << 40);
      got.push_back(decoding.step(position, 3, true));
    }
    CAPTURE(refused);
    CHECK(got == wanted);
  }
}
