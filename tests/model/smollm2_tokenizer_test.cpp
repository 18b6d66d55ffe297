// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>

#include "model/model_file.h"
#include "support/catch.h"
#include "text/chat_format.h"
#include "text/fixture.h"

// The tokenizer and chat format of the real model's file against Hugging Face's tokenizers library.

namespace incipit::model {
namespace {

std::unique_ptr<const ModelFile> open_smollm2() {
  const std::filesystem::path path = INCIPIT_TEST_MODEL;
  if (path.empty() || !std::filesystem::exists(path)) {
    WARN("skipped: there is no SmolLM2 model file");
    return nullptr;
  }
  return open_model(path);
}

TEST_CASE("encodes as Hugging Face's tokenizers do") {
  const auto file = open_smollm2();
  if (file == nullptr) return;
  const text::Tokenizer tokenizer(file->tokenizer());
  CHECK(tokenizer.vocabulary() == 49152);
  const auto strings = text::corpus();
  const auto expected = text::expected_ids("smollm2");
  REQUIRE(expected.size() == strings.size());
  for (std::size_t i = 0; i < strings.size(); ++i) {
    if (tokenizer.encode(strings[i]) != expected[i]) FAIL_CHECK(strings[i]);
  }
}

TEST_CASE("decodes what it encoded") {
  const auto file = open_smollm2();
  if (file == nullptr) return;
  const text::Tokenizer tokenizer(file->tokenizer());
  for (const std::string& string : text::corpus()) {
    const text::TextPiece content{string, false};
    const std::string decoded = tokenizer.decode(tokenizer.encode(std::span(&content, 1)));
    // The vocabulary has no token for some bytes that are rare in text: control characters.
    std::string expected = string;
    std::erase_if(expected, [&](char byte) {
      const text::TextPiece one{std::string(1, byte), false};
      return tokenizer.encode(std::span(&one, 1)).empty();
    });
    if (decoded != expected) FAIL_CHECK(string);
  }
}

TEST_CASE("its chat template is ChatML with a system message of its own") {
  const auto file = open_smollm2();
  if (file == nullptr) return;
  CHECK(file->chat_template().text == text::read_fixture("templates/smollm2.jinja"));
  const auto format = text::recognize_chat_format(file->chat_template());
  REQUIRE(format != nullptr);
  const Message hi{Role::kUser, "Hi"};
  const text::Tokenizer tokenizer(file->tokenizer());
  const auto ids = tokenizer.encode(format->render(std::span(&hi, 1), {}));
  CHECK(ids == tokenizer.encode(text::join(format->render(std::span(&hi, 1), {}))));
  CHECK(ids.front() == 1);
  CHECK(std::count(ids.begin(), ids.end(), 1) == 3);
  CHECK(std::count(ids.begin(), ids.end(), 2) == 2);
  CHECK(tokenizer.is_end(2));
}

}  // namespace
}  // namespace incipit::model
