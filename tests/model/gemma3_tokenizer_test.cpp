// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/file.h"
#include "model/gguf.h"
#include "model/gguf_model.h"
#include "support/catch.h"
#include "text/subword_fixture.h"

// The vocabulary of Gemma 3 270M as the real GGUF file has it, against Hugging Face's reading of
// it. The file is looked for beside that of SmolLM2.

namespace incipit::model {
namespace {

TEST_CASE("Gemma 3 encodes and decodes as Hugging Face's tokenizers do") {
  const std::filesystem::path smollm2 = INCIPIT_TEST_MODEL;
  const std::filesystem::path file = smollm2.parent_path() / "gemma-3-270m.Q4_K_M.gguf";
  if (smollm2.empty() || !std::filesystem::exists(file)) {
    WARN("skipped: there is no Gemma 3 model file");
    return;
  }
  const GgufHeader header = read_gguf_header(base::ReadFile(file));
  const text::Tokenizer tokenizer(read_gguf_tokenizer(header.metadata));
  CHECK(tokenizer.vocabulary() == 262144);
  text::check_equal(tokenizer, "gemma3");
  const std::vector<text::TextPiece> pieces = {
      {"<bos><start_of_turn>user\n", true}, {"Hi<end_of_turn>", false}, {"<end_of_turn>\n", true}};
  const auto ids = tokenizer.encode(pieces);
  CHECK(ids.front() == 2);
  CHECK(ids[1] == 105);
  CHECK(std::count(ids.begin(), ids.end(), 106) == 1);
  CHECK(tokenizer.decode(ids) == "user\nHi<end_of_turn>\n");
}

}  // namespace
}  // namespace incipit::model
