// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_RETRIEVE_RUNS_H_
#define INCIPIT_RETRIEVE_RUNS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace incipit::retrieve {

/// Runs of values, one behind the other in chunks that stay as they are: a new run moves no other,
/// however many there are, and few of them need memory of their own.
template <class T>
class Runs {
 public:
  struct Run {
    std::uint32_t chunk = 0, first = 0;
    std::uint32_t size = 0;
  };

  /// `size` new values. Spans of older runs stay good.
  Run add(std::size_t size) {
    if (chunks_.empty() || chunks_.back().capacity() - chunks_.back().size() < size) {
      const std::size_t doublings = std::min<std::size_t>(chunks_.size(), kDoublings);
      chunks_.emplace_back().reserve(std::max(kFirstChunk << doublings, size));
    }
    std::vector<T>& chunk = chunks_.back();
    const std::size_t first = chunk.size();
    chunk.resize(first + size);
    return {static_cast<std::uint32_t>(chunks_.size() - 1), static_cast<std::uint32_t>(first),
            static_cast<std::uint32_t>(size)};
  }
  Run add(std::span<const T> values) {
    const Run run = add(values.size());
    std::copy(values.begin(), values.end(), chunks_[run.chunk].begin() + run.first);
    return run;
  }

  std::span<T> operator[](Run run) {
    return std::span(chunks_[run.chunk]).subspan(run.first, run.size);
  }
  std::span<const T> operator[](Run run) const {
    return std::span(chunks_[run.chunk]).subspan(run.first, run.size);
  }

 private:
  static constexpr std::size_t kFirstChunk = 256, kDoublings = 4;

  std::vector<std::vector<T>> chunks_;
};

}  // namespace incipit::retrieve

#endif  // INCIPIT_RETRIEVE_RUNS_H_
