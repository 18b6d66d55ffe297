// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_TEXT_FIXTURE_H_
#define INCIPIT_TESTS_TEXT_FIXTURE_H_

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "incipit/error.h"
#include "support/catch.h"
#include "text/tokenizer.h"
#include "text/tokenizer_json.h"

// What tests/reference/make_tokenizer_fixtures.py made, and texts that are hard to cut.

namespace incipit::text {

inline constexpr std::array<const char*, 4> kFamilies = {"gpt2", "smollm", "llama3", "qwen2"};

// What make_subword_fixtures.py made.
inline constexpr std::array<const char*, 10> kSubwordFamilies = {
    "tekken", "bloom", "prefix", "llama2", "mistral", "gemma", "phi3", "unigram", "xlnet", "whole"};
inline constexpr std::array<const char*, 14> kAllFamilies = {
    "gpt2",   "smollm",  "llama3", "qwen2", "tekken",  "bloom", "prefix",
    "llama2", "mistral", "gemma",  "phi3",  "unigram", "xlnet", "whole"};

inline std::string read_fixture(const std::string& name) {
  std::ifstream file(std::string(INCIPIT_TEST_DATA "/text/") + name, std::ios::binary);
  INFO(name);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::vector<std::string> strings_of(const std::string& name) {
  std::istringstream lines(read_fixture(name));
  std::vector<std::string> strings;
  for (std::string line; std::getline(lines, line);) {
    strings.push_back(nlohmann::json::parse(line).get<std::string>());
  }
  return strings;
}

inline std::vector<std::string> corpus() {
  std::vector<std::string> strings = strings_of("corpus.jsonl");
  REQUIRE(strings.size() >= 2000);
  return strings;
}

/// What Hugging Face makes of the corpus.
inline std::vector<std::vector<TokenId>> expected_ids(const std::string& family) {
  std::istringstream lines(read_fixture(family + ".ids"));
  std::vector<std::vector<TokenId>> ids;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream numbers(line);
    ids.emplace_back(std::istream_iterator<TokenId>(numbers), std::istream_iterator<TokenId>());
  }
  return ids;
}

inline TokenizerSpec spec_of(const std::string& family) {
  const auto is_it = [&](const char* name) { return family == name; };
  const bool subword = std::any_of(kSubwordFamilies.begin(), kSubwordFamilies.end(), is_it);
  return parse_tokenizer_json(read_fixture((subword ? "subwords/" : "") + family + ".json"));
}

inline Tokenizer tokenizer_of(const std::string& family) { return Tokenizer(spec_of(family)); }

inline std::string bytes_of(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  std::string bytes;
  for (const TokenId id : ids) bytes += tokenizer.bytes_of(id);
  return bytes;
}

inline std::vector<TokenId> joined(std::vector<TokenId> a, const std::vector<TokenId>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Parts at whose borders some pre-tokenizer, normaliser or special token might go wrong.
inline const std::vector<std::string>& awkward_parts() {
  static const std::vector<std::string> parts = {"a",
                                                 "b",
                                                 "Hello",
                                                 "the",
                                                 " the",
                                                 " ",
                                                 "  ",
                                                 "\n",
                                                 "\r\n",
                                                 "\t",
                                                 "\u00a0",
                                                 "\u3000",
                                                 "'",
                                                 "'s",
                                                 "'S",
                                                 "'l",
                                                 "l",
                                                 "'re",
                                                 "s",
                                                 "1",
                                                 "23",
                                                 "4567",
                                                 " 8",
                                                 "\u0663",
                                                 "\u2163",
                                                 "!",
                                                 "?!",
                                                 "--",
                                                 "<",
                                                 "<|",
                                                 "<|im_start|>",
                                                 "<|im_end|>",
                                                 "<|endoftext|>",
                                                 "<|eot_id|>",
                                                 "<think>",
                                                 "\n",
                                                 "<tool_call>",
                                                 "  <tool",
                                                 "<s>",
                                                 "</s>",
                                                 "<|user|>",
                                                 "<|end|>",
                                                 "<mask>",
                                                 "<word>",
                                                 "[INST]",
                                                 "<table>",
                                                 "\u2581",
                                                 "``",
                                                 "|>",
                                                 "\u00e9",
                                                 "e\u0301",
                                                 "\u0301",
                                                 "\u0323",
                                                 "\u0307",
                                                 "\u0344",
                                                 "\u212b",
                                                 "\u1100",
                                                 "\u1161",
                                                 "\u11a8",
                                                 "\uac00",
                                                 "\uac01",
                                                 "\u4eba\u4eba",
                                                 "\u3002",
                                                 "\u304b",
                                                 "\u3099",
                                                 "\u0915",
                                                 "\u093c",
                                                 "\u09c7",
                                                 "\u09be",
                                                 "\u0e01\u0e33",
                                                 "\U0001F468\u200D\U0001F469",
                                                 "\uFE0F",
                                                 "\U0001F44D",
                                                 "\U00011099",
                                                 "\U000110BA",
                                                 "\xff",
                                                 "\xc3",
                                                 "\xa9",
                                                 "\xe4\xb8",
                                                 "\xad",
                                                 "\xf0\x9f",
                                                 "\xed\xa0\x80",
                                                 std::string(1, '\0')};
  return parts;
}

inline std::string random_text(std::mt19937& random, std::size_t parts) {
  std::uniform_int_distribution<std::size_t> any(0, awkward_parts().size() - 1);
  std::string text;
  for (std::size_t i = 0; i < parts; ++i) text += awkward_parts()[any(random)];
  return text;
}

inline std::string random_bytes(std::mt19937& random, std::size_t size) {
  std::uniform_int_distribution<int> any(0, 255);
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i) bytes.push_back(static_cast<char>(any(random)));
  return bytes;
}

inline std::string repeated(std::string_view part, std::size_t times) {
  std::string text;
  text.reserve(part.size() * times);
  for (std::size_t i = 0; i < times; ++i) text += part;
  return text;
}

/// The code and message of the Error that `call` throws.
struct Failure {
  ErrorCode code;
  std::string message;
};
inline Failure failure_of(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  FAIL("no Error was thrown");
  return {};
}

}  // namespace incipit::text

#endif  // INCIPIT_TESTS_TEXT_FIXTURE_H_
