// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_STEP_QUEUE_H_
#define INCIPIT_CUDA_STEP_QUEUE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/runtime.h"

// The launches of the computation. Those of a step with few rows are kept until the step ends. A
// step of a text is mostly what the one before was, to the last byte of what its kernels get, as
// ids, slots and plans come in memory that stays where it is. So the step becomes a graph, which
// the device starts as one: a step of decoding is hundreds of launches, each of which takes the
// host longer than the device.

namespace incipit::cuda {

#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
#define INCIPIT_CLEARS_PADDING 1
#endif
#endif

/// What lies between the members of a launch's body becomes zero, where the compiler can do that:
/// bodies are compared by their bytes. Else steps that are the same may look different, and are
/// queued launch by launch.
#if defined(INCIPIT_CLEARS_PADDING)
constexpr bool kClearsPadding = true;
template <class Body>
void clear_padding(Body& body) {
  __builtin_clear_padding(&body);
}
#else
constexpr bool kClearsPadding = false;
template <class Body>
void clear_padding(Body&) {}
#endif

/// Launches one behind the other, by value.
class LaunchList {
 public:
  void add(const Launch& launch);
  void clear() noexcept;
  bool empty() const noexcept { return launches_.empty(); }
  std::size_t size() const noexcept { return launches_.size(); }
  Launch operator[](std::size_t index) const noexcept;
  /// Good while the list stays as it is.
  std::vector<Launch> views() const;

  friend bool operator==(const LaunchList& a, const LaunchList& b) noexcept;

 private:
  struct Kept {
    Launch::Call call = nullptr;
    std::size_t offset = 0, bytes = 0;  // of memory_; offset in elements

    friend bool operator==(const Kept&, const Kept&) = default;
  };

  struct Unit {  // not std::max_align_t itself, which has padding
    alignas(std::max_align_t) std::byte bytes[alignof(std::max_align_t)];
  };

  std::vector<Kept> launches_;
  std::vector<Unit> memory_;
};

/// One thread calls.
class StepQueue {
 public:
  /// Of a step that is kept. With more, the device takes longer than the host's launches.
  static constexpr std::size_t kMostRows = 64;

  StepQueue(Runtime& runtime, StreamRef stream) : runtime_(runtime), stream_(stream) {}

  StreamRef stream() const noexcept { return stream_; }

  /// See Runtime::launch(). In a step the launch is kept, so what it reads and writes must stay
  /// until end() or flush(), and what is queued in the stream meanwhile goes ahead of it.
  template <class Body>
  void launch(const Body& body) {
    Body plain = body;
    clear_padding(plain);
    add(Launch::of(plain));
  }

  void begin(std::size_t rows);
  /// Queues what was kept.
  void end();
  /// The same before the end: what follows in this step is not kept. For all that cannot wait.
  void flush();

 private:
  // Numbers of rows whose steps are remembered.
  static constexpr std::size_t kRemembered = 8;

  /// What the graph of a remembered step is, if there is one.
  enum class GraphOf { kOlder, kThis, kRefused };

  /// The last step with so many rows.
  struct Remembered {
    std::size_t rows = 0;  // 0: none
    std::uint64_t used = 0;
    LaunchList launches = {};
    GraphOf state = GraphOf::kOlder;
    std::unique_ptr<Graph> graph = nullptr;
  };

  void add(const Launch& launch);
  void queue_all(const LaunchList& launches);
  Remembered& remembered(std::size_t rows);

  Runtime& runtime_;
  const StreamRef stream_;
  bool keeps_ = false;
  std::size_t rows_ = 0;  // of the step
  LaunchList kept_;
  std::array<Remembered, kRemembered> steps_ = {};
  std::uint64_t clock_ = 0;
};

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_STEP_QUEUE_H_
