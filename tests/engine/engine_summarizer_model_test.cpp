// SPDX-License-Identifier: Apache-2.0
// A Compressor that asks the real model for its summaries.
#include <filesystem>
#include <string>
#include <vector>

#include "incipit/compressor.h"
#include "incipit/engine.h"
#include "support/catch.h"

using namespace incipit;

TEST_CASE("a summary finds 99 % of its prompt in the cache") {
  const std::filesystem::path model = INCIPIT_TEST_MODEL;
  if (!std::filesystem::exists(model)) {
    WARN("skipped: no model at '" << model.string() << "'");
    return;
  }
  Engine engine({.model = model});
  CompressorOptions options;  // a budget of 4,096 tokens
  EngineStats before, after;
  std::string summary;
  std::size_t most = 0;
  GenerateParams params;
  params.ignore_eos = true;
  options.summarizer = [&, ask = engine_summarizer(engine, params)](SummaryRequest request) {
    most = request.max_tokens;
    request.max_tokens = 12;  // to be quick
    before = engine.stats();
    summary = ask(request);
    after = engine.stats();
    return summary;
  };
  Compressor compressor(options, engine.token_counter());
  compressor.add({.role = Role::kSystem, .text = "You are a storekeeper."});
  for (std::size_t i = 0; summary.empty() && i < 200; ++i) {
    const std::string number = std::to_string(i);
    compressor.add({.role = Role::kUser, .text = "Crate " + number + " came from Lisbon by ship."});
    const CompressedPrompt prompt = compressor.apply();
    // Only the last prompt before the summary has to be in the cache, and a block of its reply.
    if (prompt.tokens_after > 3700) {
      engine.generate_with_cache(prompt.messages, {.max_tokens = 17, .ignore_eos = true});
    }
    compressor.add({.role = Role::kAssistant,
                    .text = "I have put crate " + number + " on the shelf beside the door."});
  }
  REQUIRE_FALSE(summary.empty());
  CHECK(most > 100);
  const auto asked = static_cast<double>(after.prompt_tokens - before.prompt_tokens);
  const auto reused = static_cast<double>(after.reused_tokens - before.reused_tokens);
  CAPTURE(asked, reused, summary);
  CHECK(asked > 3700);
  CHECK(reused >= 0.99 * asked);
}
