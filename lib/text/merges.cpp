// SPDX-License-Identifier: Apache-2.0
#include "text/merges.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "text/byte_alphabet.h"
#include "text/merge_table.h"
#include "text/utf8.h"

namespace incipit::text {
namespace {

// Bounds the work per byte of a vocabulary: a token of n bytes has n - 1 pairs to look up.
constexpr std::size_t kMaxScoredBytes = 1024;

[[noreturn]] void fail(const std::string& why) {
  base::throw_error(ErrorCode::kModelUnreadable, why);
}

[[noreturn]] void fail_merge(std::size_t rank, const std::string& merge, const char* why) {
  fail("merge " + std::to_string(rank) + " of the tokenizer, \"" + merge + "\", " + why);
}

MergeRule rule_of(const std::string& merge, std::size_t rank, bool byte_level,
                  const Vocabulary& vocabulary) {
  const std::size_t space = merge.find(' ');
  if (space == std::string::npos) fail_merge(rank, merge, "is not two tokens");
  std::string left = merge.substr(0, space), right = merge.substr(space + 1);
  if (byte_level) {
    const auto left_bytes = from_byte_alphabet(left), right_bytes = from_byte_alphabet(right);
    if (!left_bytes || !right_bytes) {
      fail_merge(rank, merge, "has a character outside the byte alphabet");
    }
    left = *left_bytes;
    right = *right_bytes;
  }
  const MergeRule rule = {vocabulary.find(left), vocabulary.find(right),
                          vocabulary.find(left + right)};
  if (rule.left < 0 || rule.right < 0 || rule.id < 0) {
    fail_merge(rank, merge, "names a token that is not in the vocabulary");
  }
  return rule;
}

std::vector<MergeRule> listed(const TokenizerSpec& spec, const Vocabulary& vocabulary) {
  const bool byte_level = spec.model == TokenizerModel::kByteLevelBpe;
  std::vector<MergeRule> rules;
  rules.reserve(spec.merges.size());
  for (std::size_t rank = 0; rank < spec.merges.size(); ++rank) {
    rules.push_back(rule_of(spec.merges[rank], rank, byte_level, vocabulary));
  }
  return rules;
}

struct ScoredRule {
  MergeRule rule;
  double order;             // lower goes first; user-defined tokens before all others
  std::size_t left, right;  // in characters

  auto key() const {
    return std::tuple(order, -static_cast<double>(left), -static_cast<double>(right), rule.id);
  }
};

std::size_t characters(std::string_view text) {
  std::size_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(first_unit(text).bytes);
  return count;
}

void add_pairs(TokenId id, double order, const Vocabulary& vocabulary,
               std::vector<ScoredRule>& out) {
  const std::string_view text = vocabulary.text_of(id);
  if (text.size() > kMaxScoredBytes) {
    fail("token " + std::to_string(id) + " has " + std::to_string(text.size()) +
         " bytes; at most " + std::to_string(kMaxScoredBytes) + " are supported");
  }
  std::size_t left = 1;
  const std::size_t count = characters(text);
  for (std::size_t at = text.empty() ? 0 : first_unit(text).bytes; at < text.size(); ++left) {
    const MergeRule rule = {vocabulary.find(text.substr(0, at)), vocabulary.find(text.substr(at)),
                            id};
    if (rule.left >= 0 && rule.right >= 0) out.push_back({rule, order, left, count - left});
    at += first_unit(text.substr(at)).bytes;
  }
}

std::vector<MergeRule> from_scores(const TokenizerSpec& spec, const Vocabulary& vocabulary) {
  std::vector<ScoredRule> scored;
  for (std::size_t i = 0; i < spec.tokens.size() && i < spec.scores.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (!std::isfinite(spec.scores[i])) {
      fail("the tokenizer gives token " + std::to_string(i) + ", \"" + spec.tokens[i] +
           "\", a score that is no finite number; the file is damaged");
    }
    if (vocabulary.find(vocabulary.text_of(id)) != id) continue;  // no text of its own
    const bool user_defined = spec.kinds[i] == TokenKind::kUserDefined;
    add_pairs(id, user_defined ? -HUGE_VAL : -spec.scores[i], vocabulary, scored);
  }
  std::stable_sort(scored.begin(), scored.end(), [](const ScoredRule& a, const ScoredRule& b) {
    const bool first = std::isinf(a.order);
    if (first && std::isinf(b.order) && a.rule.id != b.rule.id) return a.rule.id < b.rule.id;
    return a.key() < b.key();
  });
  std::vector<MergeRule> rules;
  rules.reserve(scored.size());
  for (const ScoredRule& one : scored) rules.push_back(one.rule);
  return rules;
}

}  // namespace

std::vector<MergeRule> merges_of(const TokenizerSpec& spec, const Vocabulary& vocabulary) {
  const bool by_scores = spec.merges.empty() && spec.model == TokenizerModel::kCharacterBpe;
  std::vector<MergeRule> rules =
      by_scores ? from_scores(spec, vocabulary) : listed(spec, vocabulary);
  if (rules.size() >= MergeTable::kNever) fail("the tokenizer has too many merges");
  return rules;
}

}  // namespace incipit::text
