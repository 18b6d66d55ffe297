// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include "compress/conversations.h"
#include "compress/invariants.h"
#include "compress/segment.h"
#include "incipit/compressor.h"
#include "support/catch.h"

namespace incipit::test {
namespace {

Message say(Role role, std::string text) {
  Message message{.role = role};
  message.text = std::move(text);
  return message;
}

const std::string kSecret = "The code of the vault is kingfisher-4711.";

Compressor long_chat(const CompressorOptions& options) {
  Compressor compressor(options, byte_counter());
  compressor.add(say(Role::kUser, kSecret));
  compressor.add(say(Role::kAssistant, "Noted."));
  for (std::size_t i = 0; i < 150; ++i) {
    compressor.add(
        say(Role::kUser, "Crate " + std::to_string(i) + " holds spare parts for lamps."));
    compressor.apply();
    compressor.add(
        say(Role::kAssistant, "Crate " + std::to_string(i) + " is on the list, thanks."));
  }
  return compressor;
}

std::size_t evidence_at(const CompressedPrompt& prompt) {
  for (std::size_t i = 0; i < prompt.messages.size(); ++i) {
    if (prompt.messages[i].text.starts_with(compress::kEvidenceHeading)) return i;
  }
  return prompt.messages.size();
}

TEST_CASE("evidence stands just in front of the last user turn, within its share") {
  CompressorOptions options;
  options.token_budget = 800;
  options.segment_ratio = 0;  // nothing is left in segments
  Compressor compressor = long_chat(options);
  const std::string question = "Which code opens the vault?";
  compressor.add(say(Role::kUser, question));
  const CompressedPrompt prompt = compressor.apply();
  const std::size_t at = evidence_at(prompt);
  REQUIRE(at + 2 == prompt.messages.size());
  CAPTURE(prompt.messages[at].text);
  CHECK(prompt.messages[at].text.starts_with(std::string(compress::kEvidenceHeading) +
                                             "\nUser: " + kSecret));
  CHECK(prompt.messages[at].role == Role::kSystem);
  CHECK(prompt.messages.back().text == question);
  CHECK(byte_counter().message(prompt.messages[at]) <= 800 / 16);
  // It stays while the turn lasts, and goes with it.
  Message call = say(Role::kAssistant, "");
  call.tool_calls.push_back({"c", "open", "{}"});
  Message result = say(Role::kTool, "It is open.");
  result.tool_call_id = "c";
  compressor.add(call);
  compressor.add(result);
  const CompressedPrompt next = compressor.apply();
  REQUIRE(evidence_at(next) == at);
  CHECK(next.messages[at].text == prompt.messages[at].text);
  CHECK(next.stable_tokens == prompt.tokens_after - byte_counter().prompt);
  compressor.add(say(Role::kAssistant, "Open it is."));
  compressor.add(say(Role::kUser, "Good."));
  CHECK(evidence_at(compressor.apply()) == compressor.plan().messages.size());
}

TEST_CASE("what was asked again and again does not hide the answer") {
  CompressorOptions options;
  options.token_budget = 1500;
  options.segment_ratio = 0;
  const std::string question = "What is the code of the vault?";
  Compressor compressor(options, byte_counter());
  compressor.add(say(Role::kUser, kSecret));
  compressor.add(say(Role::kAssistant, "Noted."));
  for (std::size_t i = 0; i < 700; ++i) {
    const std::string number = std::to_string(i);
    compressor.add(
        say(Role::kUser, i % 7 == 3 ? question : "Crate " + number + " holds spare parts."));
    compressor.apply();
    compressor.add(say(Role::kAssistant, "Line " + number + " of the list is full, thanks."));
  }
  const CompressedPrompt prompt = compressor.plan(say(Role::kUser, question));
  const std::size_t at = evidence_at(prompt);
  REQUIRE(at < prompt.messages.size());
  CAPTURE(prompt.messages[at].text);
  CHECK(prompt.messages[at].text.find(kSecret) != std::string::npos);
}

TEST_CASE("nothing is brought back where nothing is asked, or there is no room") {
  CompressorOptions options;
  options.token_budget = 800;
  const Compressor compressor = long_chat(options);
  for (const std::string text : {"", " ", "?", "Thanks a lot.", "\xFF\xFE?"}) {
    const CompressedPrompt prompt = compressor.plan(say(Role::kUser, text));
    CAPTURE(text);
    CHECK(evidence_at(prompt) == prompt.messages.size());
  }
  options.evidence_share = 0;
  const Compressor without = long_chat(options);
  const CompressedPrompt prompt = without.plan(say(Role::kUser, "Which code opens the vault?"));
  CHECK(evidence_at(prompt) == prompt.messages.size());
}

TEST_CASE("a TextScorer is asked only where there is something, and must answer in full") {
  CompressorOptions options;
  options.token_budget = 800;
  std::size_t calls = 0;
  options.relevance = [&calls](std::string_view question, std::span<const std::string_view> texts) {
    ++calls;
    CHECK_FALSE(texts.empty());
    CHECK(question.find("vault") != std::string_view::npos);
    return std::vector<std::uint64_t>(texts.size(), 1);
  };
  const Compressor compressor = long_chat(options);
  CHECK(calls == 0);
  compressor.plan(say(Role::kUser, "Which code opens the vault?"));
  CHECK(calls == 1);
  options.relevance = [](std::string_view, std::span<const std::string_view>) {
    return std::vector<std::uint64_t>();
  };
  Compressor wrong = long_chat(options);
  wrong.add(say(Role::kUser, "Which code opens the vault?"));
  const std::string before = wrong.serialize();
  CHECK_THROWS_AS(wrong.plan(), Error);
  CHECK_THROWS_AS(wrong.apply(), Error);
  CHECK(wrong.serialize() == before);
}

}  // namespace
}  // namespace incipit::test
