// SPDX-License-Identifier: Apache-2.0
#include "engine/same_logprobs.h"

#include <cmath>
#include <limits>
#include <vector>

#include "support/catch.h"

using namespace incipit;
using engine::about_equal;
using engine::same_bits;

namespace {

std::vector<TokenLogprob> distribution(const std::vector<TokenLogprob>& probabilities) {
  std::vector<TokenLogprob> out = probabilities;
  for (TokenLogprob& token : out) token.logprob = std::log(token.logprob);
  return out;
}

}  // namespace

TEST_CASE("bits are the same, or they are not") {
  const auto a = distribution({{2, 0.5f}, {0, 0.25f}, {1, 0.25f}});
  auto b = a;
  CHECK(same_bits(a, b));
  b[1].logprob = std::nextafter(b[1].logprob, 0.0f);
  CHECK_FALSE(same_bits(a, b));
  CHECK_FALSE(same_bits(a, distribution({{2, 0.5f}, {1, 0.25f}, {0, 0.25f}})));
}

TEST_CASE("rounding moves little probability, a wrong prefix much") {
  const auto a = distribution({{2, 0.5f}, {0, 0.3f}, {1, 0.2f}, {3, 0.0f}});
  CHECK(about_equal(a, a));
  CHECK(about_equal(a, distribution({{2, 0.52f}, {0, 0.27f}, {1, 0.21f}, {3, 0.0f}})));
  CHECK(about_equal(a, distribution({{2, 0.5f}, {1, 0.24f}, {0, 0.26f}, {3, 0.0f}})));
  CHECK_FALSE(about_equal(a, distribution({{2, 0.44f}, {0, 0.3f}, {1, 0.2f}, {3, 0.06f}})));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK_FALSE(about_equal(a, std::vector<TokenLogprob>{{0, nan}, {1, nan}, {2, nan}, {3, nan}}));
}
