// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_COMPRESS_EXTRACT_H_
#define INCIPIT_COMPRESS_EXTRACT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace incipit::compress {

/// A piece of the conversation that a summary may quote.
struct Candidate {
  std::size_t tokens = 0;
  std::uint64_t salience = 0;
  bool must_keep = false;
};

/// The extractive summary: numbers of the pieces to quote, ascending. All that must be kept is,
/// even beyond `max_tokens`; the room that is left goes to the most salient pieces that still fit,
/// newer before older where salience is equal. O(n log n).
std::vector<std::size_t> extract(std::span<const Candidate> pieces, std::size_t max_tokens);

/// The order in which they get room; it serves any room.
std::vector<std::size_t> order_of(std::span<const Candidate> pieces);
/// O(n), but for sorting what is chosen.
std::vector<std::size_t> extract(std::span<const Candidate> pieces,
                                 std::span<const std::size_t> order, std::size_t max_tokens);

}  // namespace incipit::compress

#endif  // INCIPIT_COMPRESS_EXTRACT_H_
