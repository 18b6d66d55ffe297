// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BENCHMARKS_CACHE_REPLAY_TRACE_H_
#define INCIPIT_BENCHMARKS_CACHE_REPLAY_TRACE_H_

#include <incipit/sampling.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

using incipit::TokenId;

/// A request as a trace has it.
struct Request {
  double timestamp = 0.0;
  // Mooncake's format: ids of blocks of kHashedTokens tokens, of which the last may be cut short.
  std::vector<std::uint64_t> hash_ids = {};
  std::size_t prompt_tokens = 0;
  // A full-text trace: pseudo-tokens. What was generated is known there only.
  std::vector<TokenId> prompt = {}, output = {};
};

/// Tokens of a block in Mooncake's format.
inline constexpr std::size_t kHashedTokens = 512;

/// The requests of all files in the order of their timestamps; of equal ones, in that of the files.
/// Throws std::runtime_error that names the file and the line.
std::vector<Request> read_traces(const std::vector<std::string>& files);

/// Replaces `tokens` by the prompt and, where it is known, what was generated. Returns how many are
/// the prompt's.
std::size_t expand(const Request& request, std::vector<TokenId>& tokens);

/// Ids for the pieces of a text: words with the space in front of them, up to three digits,
/// white space, and single other characters. Not a model's tokens, but about as many, and equal
/// texts give equal ones.
std::vector<TokenId> pseudo_tokens(std::string_view text);

}  // namespace bench

#endif  // INCIPIT_BENCHMARKS_CACHE_REPLAY_TRACE_H_
