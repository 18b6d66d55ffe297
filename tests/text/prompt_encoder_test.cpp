// SPDX-License-Identifier: Apache-2.0
#include "text/prompt_encoder.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "support/catch.h"
#include "text/fixture.h"

namespace incipit::text {
namespace {

std::string static_text(std::size_t bytes) {
  std::string text = repeated("Question: how many? It's 12 of the 20 examples.\n", bytes / 48 + 1);
  text.resize(bytes);
  return text;
}

TEST_CASE("equals the tokens of the joined text, new or known, at every split") {
  for (const char* family : kFamilies) {
    const Tokenizer tokenizer = tokenizer_of(family);
    PromptEncoder encoder(tokenizer, 3);
    std::mt19937 random(29);
    for (int round = 0; round < 20; ++round) {
      const std::string text = random_text(random, 14);
      const std::vector<TokenId> expected = tokenizer.encode(text);
      for (std::size_t split = 0; split <= text.size(); ++split) {
        const std::string front = text.substr(0, split), rest = text.substr(split);
        for (int again = 0; again < 2; ++again) {
          if (encoder.encode(front, rest) != expected) FAIL_CHECK(family << ": " << text);
        }
      }
    }
  }
}

TEST_CASE("the boundary may be inside a word") {
  const Tokenizer tokenizer = tokenizer_of("gpt2");
  PromptEncoder encoder(tokenizer, 1);
  const auto ids = encoder.encode("Hello, the", "re it is");
  CHECK(ids == tokenizer.encode("Hello, there it is"));
  CHECK(ids != joined(tokenizer.encode("Hello, the"), tokenizer.encode("re it is")));
}

TEST_CASE("any capacity works, none included") {
  const Tokenizer tokenizer = tokenizer_of("smollm");
  for (const std::size_t capacity : {0u, 1u, 2u, 17u}) {
    PromptEncoder encoder(tokenizer, capacity);
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 20; ++i) {
        const std::string text = "Text number " + std::to_string(i) + " of";
        CHECK(encoder.encode(text, " 20") == tokenizer.encode(text + " 20"));
      }
    }
  }
}

TEST_CASE("a repeated static text of 12 KB costs at most a millisecond") {
  const Tokenizer tokenizer = tokenizer_of("qwen2");
  PromptEncoder encoder(tokenizer, 4);
  const std::string text = static_text(12 << 10);
  const auto expected = tokenizer.encode(text + "And now?");
  auto best = std::chrono::steady_clock::duration::max();
  for (int round = 0; round < 50; ++round) {
    const auto start = std::chrono::steady_clock::now();
    const auto ids = encoder.encode(text, "And now?");
    best = std::min(best, std::chrono::steady_clock::now() - start);
    REQUIRE(ids == expected);
  }
  CHECK(best <= std::chrono::milliseconds(1));
}

TEST_CASE("threads share an encoder") {
  const Tokenizer tokenizer = tokenizer_of("llama3");
  PromptEncoder encoder(tokenizer, 2);  // fewer than the texts, so that some are always new
  std::vector<std::string> texts;
  std::vector<std::vector<TokenId>> expected;
  for (int i = 0; i < 5; ++i) {
    texts.push_back("Context " + std::to_string(i) + ": " + static_text(200));
    expected.push_back(tokenizer.encode(texts.back() + "s end"));
  }
  std::vector<std::size_t> wrong(4, 0);
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < wrong.size(); ++thread) {
    threads.emplace_back([&, thread] {
      for (std::size_t i = 0; i < 100; ++i) {
        const std::size_t which = (i * (thread + 1)) % texts.size();
        if (encoder.encode(texts[which], "s end") != expected[which]) ++wrong[thread];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<std::size_t>(4, 0));
}

}  // namespace
}  // namespace incipit::text
