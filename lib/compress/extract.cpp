// SPDX-License-Identifier: Apache-2.0
#include "compress/extract.h"

#include <algorithm>
#include <numeric>

namespace incipit::compress {

std::vector<std::size_t> order_of(std::span<const Candidate> pieces) {
  std::vector<std::size_t> order(pieces.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (pieces[a].must_keep != pieces[b].must_keep) return pieces[a].must_keep;
    if (pieces[a].salience != pieces[b].salience) return pieces[a].salience > pieces[b].salience;
    return a > b;
  });
  return order;
}

std::vector<std::size_t> extract(std::span<const Candidate> pieces, std::size_t max_tokens) {
  return extract(pieces, order_of(pieces), max_tokens);
}

std::vector<std::size_t> extract(std::span<const Candidate> pieces,
                                 std::span<const std::size_t> order, std::size_t max_tokens) {
  std::vector<std::size_t> chosen;
  chosen.reserve(order.size());
  std::size_t left = max_tokens;
  for (const std::size_t piece : order) {
    const std::size_t tokens = pieces[piece].tokens;
    if (tokens > left && !pieces[piece].must_keep) continue;
    chosen.push_back(piece);
    left -= std::min(left, tokens);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace incipit::compress
