// SPDX-License-Identifier: Apache-2.0
#include "model/vocabulary_rules.h"

#include <limits>

#include "support/catch.h"
#include "support/unreadable.h"

namespace incipit::model {
namespace {

using test::check_unreadable;

text::TokenizerSpec four_tokens() {
  text::TokenizerSpec spec;
  spec.tokens = {"<|endoftext|>", "<|im_end|>", "<|eot_id|>", "<|other|>"};
  spec.kinds = {text::TokenKind::kControl, text::TokenKind::kNormal, text::TokenKind::kControl,
                text::TokenKind::kControl};
  return spec;
}

TEST_CASE("A token id is one of the vocabulary") {
  const text::TokenizerSpec spec = four_tokens();
  CHECK(checked_token(0, spec, "eos", "file") == 0);
  CHECK(checked_token(3, spec, "eos", "file") == 3);
  for (const std::uint64_t id :
       {std::uint64_t{4}, std::uint64_t{0xffffffff}, std::numeric_limits<std::uint64_t>::max()}) {
    check_unreadable("file: eos is", [&] { return checked_token(id, spec, "eos", "file"); });
  }
}

TEST_CASE("Control tokens of well-known names end a text, each once") {
  text::TokenizerSpec spec = four_tokens();
  add_end(spec, 2);
  add_end(spec, 2);
  CHECK(spec.ends == std::vector<TokenId>{2});
  add_known_ends(spec);
  CHECK(spec.ends == std::vector<TokenId>{2, 0});
}

TEST_CASE("A vocabulary is padded to the rows of the embedding") {
  text::TokenizerSpec spec = four_tokens();
  pad_vocabulary(spec, 4, "file");
  CHECK(spec.tokens.size() == 4);
  pad_vocabulary(spec, 6, "file");
  REQUIRE(spec.tokens.size() == 6);
  REQUIRE(spec.kinds.size() == 6);
  CHECK(spec.tokens[5].empty());
  CHECK(spec.kinds[5] == text::TokenKind::kUnused);
  check_unreadable("6 tokens, but the model's vocabulary is 5", [&] {
    pad_vocabulary(spec, 5, "file");
    return 0;
  });
}

}  // namespace
}  // namespace incipit::model
