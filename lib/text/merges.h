// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_MERGES_H_
#define INCIPIT_TEXT_MERGES_H_

#include <vector>

#include "text/tokenizer.h"
#include "text/vocabulary.h"

namespace incipit::text {

/// Two tokens and what they become.
struct MergeRule {
  TokenId left = -1;
  TokenId right = -1;
  TokenId id = -1;
};

/// The merges of a byte-pair tokenizer, the first to apply in front: those that the spec lists or,
/// where it has scores instead (SentencePiece), all pairs of tokens that make up a token:
/// user-defined ones in their order, then those of the highest score, then those with the longest
/// left part. Throws Error{kModelUnreadable} for a merge that names no such tokens.
std::vector<MergeRule> merges_of(const TokenizerSpec& spec, const Vocabulary& vocabulary);

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_MERGES_H_
