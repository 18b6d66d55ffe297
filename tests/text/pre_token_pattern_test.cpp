// SPDX-License-Identifier: Apache-2.0
#include "text/pre_token_pattern.h"

#include <array>

#include "support/catch.h"
#include "text/fixture.h"
#include "text/utf8.h"

namespace incipit::text {
namespace {

constexpr std::array kKinds = {PreTokenizer::kGpt2,  PreTokenizer::kSmolLm, PreTokenizer::kLlama3,
                               PreTokenizer::kQwen2, PreTokenizer::kBloom,  PreTokenizer::kTekken};

using Texts = std::vector<std::string>;

Texts cut(const PreTokenPattern& pattern, std::string_view text) {
  PreTokenPattern::Scanner scanner(pattern);
  Texts parts;
  while (!text.empty()) {
    const std::size_t size = scanner.next(text);
    REQUIRE(size > 0);
    REQUIRE(size <= text.size());
    parts.emplace_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return parts;
}

Texts cut(PreTokenizer kind, std::string_view text) { return cut(PreTokenPattern(kind), text); }

TEST_CASE("each family cuts its own way") {
  const std::string text = "It's 1234 I'LL--go\n\n  x\t\n";
  CHECK(cut(PreTokenizer::kGpt2, text) ==
        Texts{"It", "'s", " 1234", " I", "'", "LL", "--", "go", "\n\n ", " x", "\t\n"});
  CHECK(cut(PreTokenizer::kSmolLm, text) == Texts{"It", "'s", " ", "1", "2", "3", "4", " I", "'",
                                                  "LL", "--", "go", "\n\n ", " x", "\t\n"});
  CHECK(cut(PreTokenizer::kLlama3, text) ==
        Texts{"It", "'s", " ", "123", "4", " I", "'LL", "--", "go", "\n\n", " ", " x", "\t\n"});
  CHECK(cut(PreTokenizer::kQwen2, text) == Texts{"It", "'s", " ", "1", "2", "3", "4", " I", "'LL",
                                                 "--", "go", "\n\n", " ", " x", "\t\n"});
}

TEST_CASE("BLOOM keeps stretches of white space and punctuation in one piece") {
  const auto bloom = [](std::string_view text) { return cut(PreTokenizer::kBloom, text); };
  CHECK(bloom("It's 1234, (no) way!") == Texts{"It's", " 1234", ", (", "no", ")", " way", "!"});
  CHECK(bloom("a   b") == Texts{"a", "  ", " b"});
  CHECK(bloom("a ... \n b\n") == Texts{"a", " ... \n", " b", "\n"});
  CHECK(bloom("\u4eba\u3002\u4eba\uff0c") == Texts{"\u4eba", "\u3002", "\u4eba", "\uff0c"});
  CHECK(bloom("\n\nx") == Texts{"\n\n", "x"});
}

TEST_CASE("tekken cuts before capital letters") {
  CHECK(cut(PreTokenizer::kTekken, "HelloWorld XMLParser it's 12 a/b\n") ==
        Texts{"Hello", "World", " XMLParser", " it", "'s", " ", "1", "2", " a", "/b", "\n"});
}

TEST_CASE("before a digit set apart, spaces are as at the end of a text") {
  CHECK(cut(PreTokenizer::kSmolLm, "a   1") == Texts{"a", "   ", "1"});
  CHECK(cut(PreTokenizer::kGpt2, "a   1") == Texts{"a", "  ", " 1"});
  CHECK(cut(PreTokenizer::kSmolLm, "a   b") == Texts{"a", "  ", " b"});
}

TEST_CASE("spaces are Unicode's White_Space") {
  for (char32_t code = 0; code < 0x11000; ++code) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    const bool space = (code >= 9 && code <= 13) || code == 0x20 || code == 0x85 || code == 0xA0 ||
                       code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
                       code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
    static const PreTokenPattern pattern(PreTokenizer::kGpt2);
    std::string text = "\t";
    append_utf8(text, code);
    text += "\t";
    if ((cut(pattern, text).front() == text) != space) FAIL_CHECK(std::uint32_t{code});
  }
}

TEST_CASE("machine code and interpreter cut alike") {
  const std::vector<std::string> strings = corpus();
  for (const PreTokenizer kind : kKinds) {
    const PreTokenPattern compiled(kind), interpreted(kind, /*jit=*/false);
    for (const std::string& text : strings) {
      if (cut(compiled, text) != cut(interpreted, text)) FAIL_CHECK(text);
    }
  }
}

TEST_CASE("pre-tokens of hundreds of kilobytes pass, with and without machine code") {
  constexpr std::size_t kTimes = 1 << 18;
  for (const bool jit : {true, false}) {
    for (const PreTokenizer kind : kKinds) {
      const PreTokenPattern pattern(kind, jit);
      for (const char* part : {"a", "A", "\u4eba", "-", "'", "\n", ","}) {
        CHECK(cut(pattern, repeated(part, kTimes)).size() == 1);
      }
      CHECK(cut(pattern, repeated(" ", kTimes) + "x") == Texts{std::string(kTimes - 1, ' '), " x"});
      CHECK(cut(pattern, repeated(" ", kTimes) + "\n").size() == 1);
    }
  }
}

TEST_CASE("in an open text a pre-token counts only where nothing could change it") {
  const auto first = [](PreTokenizer kind, std::string_view text) {
    std::array<std::size_t, 2> sizes{};
    for (const bool jit : {true, false}) {
      const PreTokenPattern pattern(kind, jit);
      sizes[jit ? 1 : 0] = PreTokenPattern::Scanner(pattern).next_in_open_text(text);
    }
    CHECK(sizes[0] == sizes[1]);
    return sizes[0];
  };
  CHECK(first(PreTokenizer::kGpt2, "ab") == 0);
  CHECK(first(PreTokenizer::kGpt2, "ab ") == 2);
  CHECK(first(PreTokenizer::kGpt2, "'") == 0);
  CHECK(first(PreTokenizer::kGpt2, "'s") == 2);
  CHECK(first(PreTokenizer::kGpt2, "'x") == 1);
  CHECK(first(PreTokenizer::kGpt2, "  ") == 0);
  CHECK(first(PreTokenizer::kGpt2, "  a") == 1);
  CHECK(first(PreTokenizer::kLlama3, "12") == 0);
  CHECK(first(PreTokenizer::kLlama3, "123") == 3);
  CHECK(first(PreTokenizer::kQwen2, "1") == 1);
  CHECK(first(PreTokenizer::kQwen2, "!") == 0);
  CHECK(first(PreTokenizer::kQwen2, "\n") == 0);
  CHECK(first(PreTokenizer::kQwen2, "\n x") == 1);
  CHECK(first(PreTokenizer::kQwen2, "\n  x") == 1);
  CHECK(first(PreTokenizer::kBloom, "a") == 0);
  CHECK(first(PreTokenizer::kBloom, "a,") == 1);
  CHECK(first(PreTokenizer::kBloom, ", ") == 0);
  CHECK(first(PreTokenizer::kBloom, ", a") == 1);
  CHECK(first(PreTokenizer::kBloom, ",a") == 1);
  CHECK(first(PreTokenizer::kTekken, "a") == 0);
  CHECK(first(PreTokenizer::kTekken, "aB") == 1);
}

TEST_CASE("the published expressions are told apart") {
  CHECK(published_regex(PreTokenizer::kSmolLm) == published_regex(PreTokenizer::kGpt2));
  CHECK(published_regex(PreTokenizer::kLlama3) != published_regex(PreTokenizer::kQwen2));
}

}  // namespace
}  // namespace incipit::text
