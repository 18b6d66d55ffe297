// SPDX-License-Identifier: Apache-2.0
// A few thousand mutations of each fuzz target's seeds, always the same ones.
#include "fuzz/mutations.h"

namespace incipit::fuzz {
namespace {

TEST_CASE("GGUF files survive mutations") { run_mutations(kGguf, 4000); }
TEST_CASE("safetensors files survive mutations") { run_mutations(kSafetensors, 8000); }
TEST_CASE("tokenizer.json survives mutations") { run_mutations(kTokenizerJson, 2000); }

}  // namespace
}  // namespace incipit::fuzz
