// SPDX-License-Identifier: Apache-2.0
#include "text/text_encoder.h"

#include "support/catch.h"
#include "text/fixture.h"

// TextEncoder seen through Tokenizer: what is stable stays, and hostile texts cost linear time.

namespace incipit::text {
namespace {

TEST_CASE("a stable front and the rest are the tokens of the whole, at every split") {
  const std::vector<std::string> strings = corpus();
  for (const char* family : kAllFamilies) {
    const Tokenizer tokenizer = tokenizer_of(family);
    std::mt19937 random(17);
    for (int round = 0; round < 250; ++round) {
      std::string text = random_text(random, 12);
      if (round % 5 == 0) text += strings[random() % strings.size()];
      text.resize(std::min<std::size_t>(text.size(), 80));
      const std::vector<TokenId> expected = tokenizer.encode(text);
      for (std::size_t split = 0; split <= text.size(); ++split) {
        const auto stable = tokenizer.encode_stable(std::string_view(text).substr(0, split));
        REQUIRE(stable.bytes <= split);
        const auto rest =
            tokenizer.encode_rest(std::string_view(text).substr(stable.bytes), stable.seam);
        if (joined(stable.ids, rest) != expected)
          FAIL_CHECK(family << " at " << split << ": " << text);
      }
    }
  }
}

/// `family` with control tokens that are looked for before or after normalising: "foo", and others
/// that have to be words.
Tokenizer with_words(const char* family, bool normalized) {
  TokenizerSpec spec = spec_of(family);
  for (const char* token : {"foo", "bar", "@@", "ab cd", "cd"}) {
    spec.rules[static_cast<TokenId>(spec.tokens.size())] = {
        .whole_word = std::string_view(token) != "foo" && std::string_view(token) != "cd",
        .normalized = normalized};
    spec.tokens.emplace_back(token);
    spec.kinds.push_back(TokenKind::kControl);
    if (!spec.scores.empty()) spec.scores.push_back(0);
  }
  return Tokenizer(std::move(spec));
}

TEST_CASE("a token that has to be a word is one, or none, across every split") {
  const std::vector<std::string> texts = {
      "foobar ",    "foo bar ",  "foobarfoo bar-",        "a@@-",
      "-@@-a@@ @@", "a b@@ c@@", "a>\u0338@@- \u226f@@-", "\u00e9@@ e\u0301@@-",
      "xab cd y",   "-ab cd y",  "x ab cdab cd. ab cd.",  "a\xff@@ \xff bar a\xc3@@ "};
  for (const char* family : kAllFamilies) {
    for (const bool normalized : {false, true}) {
      const Tokenizer tokenizer = with_words(family, normalized);
      for (const std::string& text : texts) {
        const std::vector<TokenId> expected = tokenizer.encode(text);
        for (std::size_t split = 0; split <= text.size(); ++split) {
          const auto stable = tokenizer.encode_stable(std::string_view(text).substr(0, split));
          const auto rest =
              tokenizer.encode_rest(std::string_view(text).substr(stable.bytes), stable.seam);
          if (joined(stable.ids, rest) != expected)
            FAIL_CHECK(family << (normalized ? ", normalized, " : " ") << split << ": " << text);
        }
        // And where the front has seen all of the text.
        const auto stable = tokenizer.encode_stable(text + "-");
        const auto rest = tokenizer.encode_rest((text + "-").substr(stable.bytes), stable.seam);
        CHECK(joined(stable.ids, rest) == tokenizer.encode(text + "-"));
      }
    }
  }
}

TEST_CASE("no continuation changes a stable front") {
  for (const char* family : kAllFamilies) {
    const Tokenizer tokenizer = tokenizer_of(family);
    std::mt19937 random(19);
    for (int round = 0; round < 120; ++round) {
      const std::string text = random_text(random, 6);
      const auto stable = tokenizer.encode_stable(text);
      for (const std::string& next : awkward_parts()) {
        const std::string whole = text + next + random_text(random, 2);
        const auto rest =
            tokenizer.encode_rest(std::string_view(whole).substr(stable.bytes), stable.seam);
        if (joined(stable.ids, rest) != tokenizer.encode(whole)) {
          FAIL_CHECK(family << ": " << text << " before " << next);
        }
      }
    }
  }
}

TEST_CASE("the stable front is as long as it can be") {
  const auto stable = [](const char* family, std::string_view text) {
    return tokenizer_of(family).encode_stable(text).bytes;
  };
  CHECK(stable("gpt2", "") == 0);
  CHECK(stable("gpt2", "word") == 0);
  CHECK(stable("gpt2", "two words") == 3);
  CHECK(stable("gpt2", "it's") == 4);
  CHECK(stable("gpt2", "a 12") == 1);
  CHECK(stable("gpt2", "end.\n") == 4);
  CHECK(stable("gpt2", "x <|endoftext|>") == 15);
  CHECK(stable("gpt2", "a <|endo") == 1);
  CHECK(stable("gpt2", "a <|endo ") == 8);
  CHECK(stable("smollm", "a 12") == 4);
  CHECK(stable("llama3", "a 1234") == 5);
  CHECK(stable("gpt2", "a\xff") == 2);
  CHECK(stable("gpt2", "a \xe4\xb8") == 1);
  CHECK(stable("qwen2", "<think>") == 0);  // may become "<think>\n"
  CHECK(stable("qwen2", "<think>x") == 7);
  CHECK(stable("qwen2", "caf\u00e9 e") == 5);
  CHECK(stable("qwen2", "\u4eba\u3002\u4eba\u3002\u4eba") == 9);
  CHECK(stable("mistral", "two words") == 8);
  CHECK(stable("mistral", " ") == 0);
  CHECK(stable("mistral", "[INST]") == 6);
  CHECK(stable("phi3", "<|user|>\n") == 0);  // strips what follows
  CHECK(stable("phi3", "<|user|>\nx") == 9);
  CHECK(stable("phi3", "it \n") == 0);  // "<mask>" strips what stands before it
  CHECK(stable("gemma", "a\nb") == 2);
  CHECK(stable("unigram", "two words") == 3);
  CHECK(stable("xlnet", "two words") == 0);
  CHECK(stable("whole", "two words") == 0);
  CHECK(tokenizer_of("llama3").encode_stable("").ids == std::vector<TokenId>{0});
}

TEST_CASE("a long text is stable but for its last words") {
  const std::string text = repeated("It's about 20 examples, \u00e9t\u00e9 \u4eba\u4eba.\n", 400);
  for (const char* family : kFamilies) {
    CHECK(tokenizer_of(family).encode_stable(text).bytes + 8 >= text.size());
  }
}

TEST_CASE("hostile texts are encoded in linear time") {
  constexpr std::size_t kBytes = 1 << 17;
  const std::vector<std::string> parts = {"a",           "ab",       " ",
                                          "\n",          " \n",      "-",
                                          "'",           "1",        "<",
                                          "<|im_start|", "\u4eba",   "\u0301\u0323",
                                          "\u1100",      "\xf0\x9f", std::string(1, '\0')};
  for (const char* family : {"qwen2", "gemma", "phi3", "whole", "bloom", "tekken"}) {
    const Tokenizer tokenizer = tokenizer_of(family);
    for (const std::string& part : parts) {
      const std::string text = repeated(part, kBytes / part.size());
      const auto stable = tokenizer.encode_stable(text);
      CHECK(joined(stable.ids, tokenizer.encode_rest(text.substr(stable.bytes), stable.seam)) ==
            tokenizer.encode(text));
    }
  }
}

}  // namespace
}  // namespace incipit::text
