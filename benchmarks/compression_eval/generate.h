// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BENCHMARKS_COMPRESSION_EVAL_GENERATE_H_
#define INCIPIT_BENCHMARKS_COMPRESSION_EVAL_GENERATE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "conversation.h"

namespace bench {

/// What to make up.
struct GeneratorOptions {
  std::uint64_t seed = 1;
  std::size_t conversations = 6;  // English and Chinese in turns
  std::size_t turns = 300;        // of the user, each with a reply
};

/// Chats about a dozen people, the same on every machine. Every fourth turn tells a fact, among
/// small talk about the same people; about one turn in seven asks something. Later each fact is
/// asked for once, seven times in ten by a question and otherwise by a remark that needs the fact
/// but shares few words with it.
std::vector<Conversation> generate(const GeneratorOptions& options);

}  // namespace bench

#endif  // INCIPIT_BENCHMARKS_COMPRESSION_EVAL_GENERATE_H_
