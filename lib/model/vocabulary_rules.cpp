// SPDX-License-Identifier: Apache-2.0
#include "model/vocabulary_rules.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "model/files.h"

namespace incipit::model {
namespace {

constexpr std::array<std::string_view, 12> kEndNames = {
    "<|endoftext|>", "<|end_of_text|>", "<|im_end|>", "<|eot_id|>",    "<|eom_id|>", "<|end|>",
    "<|eot|>",       "<|end_of_turn|>", "<EOT>",      "<end_of_turn>", "<eos>",      "</s>",
};

}  // namespace

TokenId checked_token(std::uint64_t id, const text::TokenizerSpec& spec, const std::string& what,
                      const std::filesystem::path& file) {
  if (id >= spec.tokens.size()) {
    fail(file, what + " is " + std::to_string(id) + ", but there are " +
                   std::to_string(spec.tokens.size()) + " tokens; the file is damaged");
  }
  return static_cast<TokenId>(id);
}

void add_end(text::TokenizerSpec& spec, TokenId id) {
  if (std::find(spec.ends.begin(), spec.ends.end(), id) == spec.ends.end()) {
    spec.ends.push_back(id);
  }
}

void add_known_ends(text::TokenizerSpec& spec) {
  for (std::size_t id = 0; id < spec.tokens.size(); ++id) {
    if (spec.kinds[id] == text::TokenKind::kControl &&
        std::find(kEndNames.begin(), kEndNames.end(), spec.tokens[id]) != kEndNames.end()) {
      add_end(spec, static_cast<TokenId>(id));
    }
  }
}

void pad_vocabulary(text::TokenizerSpec& spec, std::size_t rows,
                    const std::filesystem::path& file) {
  if (spec.tokens.size() > rows) {
    fail(file, "the tokenizer has " + std::to_string(spec.tokens.size()) +
                   " tokens, but the model's vocabulary is " + std::to_string(rows) +
                   "; tokenizer and weights do not belong together");
  }
  spec.tokens.resize(rows);
  spec.kinds.resize(rows, text::TokenKind::kUnused);
}

}  // namespace incipit::model
