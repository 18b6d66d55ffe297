// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BENCHMARKS_COMPRESSION_EVAL_VOCABULARY_H_
#define INCIPIT_BENCHMARKS_COMPRESSION_EVAL_VOCABULARY_H_

#include <span>
#include <string_view>

namespace bench {

/// A kind of fact about a person. In templates {n} is the person and {v} the value.
struct FactKind {
  std::string_view says, asks, hints;
  std::string_view values;  // separated by '|'
};

/// What chats of one language are made of. In templates {n} is a person, {t} a thing, {p} a place,
/// {a} an adjective.
struct Vocabulary {
  std::span<const FactKind> facts;
  std::span<const std::string_view> names;
  std::span<const std::string_view> things, places, adjectives;
  /// Sentences of the user that tell no fact: one of each, put together.
  std::span<const std::string_view> openings, clauses, endings;
  std::span<const std::string_view> wonders;  // questions of the user that need no fact
  std::span<const std::string_view> replies;  // sentences of the assistant
  std::string_view space;                     // between sentences
};

const Vocabulary& english();
const Vocabulary& chinese();

}  // namespace bench

#endif  // INCIPIT_BENCHMARKS_COMPRESSION_EVAL_VOCABULARY_H_
