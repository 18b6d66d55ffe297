// SPDX-License-Identifier: Apache-2.0
// A few thousand mutations of each fuzz target's seeds, always the same ones.
#include "fuzz/corpus.h"
#include "fuzz/mutations.h"

namespace incipit::fuzz {
namespace {

TEST_CASE("chat templates and conversations survive mutations") { run_mutations(kChat, 20000); }
TEST_CASE("config.json survives mutations") { run_mutations(kConfigJson, 4000); }
TEST_CASE("GGUF files survive mutations") { run_mutations(kGguf, 4000); }
TEST_CASE("safetensors files survive mutations") { run_mutations(kSafetensors, 8000); }
TEST_CASE("tokenizers in GGUF survive mutations") { run_mutations(kTokenizerGguf, 3000); }
TEST_CASE("tokenizer.json survives mutations") { run_mutations(kTokenizerJson, 2000); }
TEST_CASE("texts survive mutations") { run_mutations(kTokenizerText, 8000); }

TEST_CASE("what fuzzers found worth keeping is run again") {
  run_corpus(kChat, "chat");
  run_corpus(kConfigJson, "config_json");
  run_corpus(kGguf, "gguf");
  run_corpus(kSafetensors, "safetensors");
  run_corpus(kTokenizerGguf, "tokenizer_gguf");
  run_corpus(kTokenizerJson, "tokenizer_json");
  run_corpus(kTokenizerText, "tokenizer_text");
}

}  // namespace
}  // namespace incipit::fuzz
