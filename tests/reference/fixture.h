// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_REFERENCE_FIXTURE_H_
#define INCIPIT_TESTS_REFERENCE_FIXTURE_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "incipit/sampling.h"

namespace incipit::test {

/// What is kept of the float64 logits of one position.
struct FixtureRow {
  float log_sum_exp = 0.0f;
  std::vector<TokenId> top_ids = {};  // likeliest first
  std::vector<float> top = {};        // their logits
  std::vector<float> fixed = {};      // logits of Fixture::fixed_ids

  float logprob(std::size_t rank) const { return top[rank] - log_sum_exp; }
  /// Where `id` stands among the likeliest; nullopt: behind them.
  std::optional<std::size_t> rank(TokenId id) const;
};

/// A prompt and its greedy continuation.
struct FixtureCase {
  std::string name = {};
  std::size_t prompt = 0;             // tokens
  std::vector<TokenId> ids = {};      // of prompt and continuation
  std::vector<FixtureRow> rows = {};  // of each of ids but the last

  std::span<const TokenId> prompt_ids() const { return std::span(ids).first(prompt); }
  std::span<const TokenId> continuation() const { return std::span(ids).subspan(prompt); }
  /// What the logits were computed from.
  std::span<const TokenId> fed_ids() const { return std::span(ids).first(rows.size()); }
};

/// Logits of a model by Hugging Face transformers; the format is in README.md.
struct Fixture {
  std::size_t vocabulary = 0;
  float noise = 0.0f;  // largest difference between transformers' float32 and float64 logits
  std::uint64_t weight_bytes = 0;  // size of the weights' file
  std::vector<TokenId> fixed_ids = {};
  std::vector<FixtureCase> cases = {};

  /// Another float32 implementation rounds elsewhere; README.md says why 8 is enough.
  float tolerance() const { return 8.0f * noise; }
};

/// Throws incipit::Error where the file is missing or damaged.
Fixture read_fixture(const std::filesystem::path& path);

/// Largest difference between a row of logits and what the fixture holds of it, log-sum-exp
/// included; infinity where a logit is no number.
double largest_difference(const Fixture& fixture, const FixtureRow& expected,
                          std::span<const float> logits);

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_REFERENCE_FIXTURE_H_
