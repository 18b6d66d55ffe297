// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"
#include "fuzz/small_tokenizers.h"
#include "fuzz/target.h"
#include "incipit/error.h"
#include "model/gguf.h"
#include "model/gguf_model.h"
#include "support/memory_file.h"
#include "support/tiny_model.h"
#include "text/tokenizer.h"

namespace incipit::fuzz {
namespace {

void run(std::string_view bytes) {
  const test::MemoryFile file(bytes);
  try {
    const model::GgufHeader header = model::read_gguf_header(base::ReadFile(file.path()));
    const text::Tokenizer tokenizer(model::read_gguf_tokenizer(header.metadata));
    tokenizer.decode(tokenizer.encode("the  other aba <b>\n\n<|user|> \u4eba\u00e9 1 + 2\t \xff"));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kModelUnreadable) throw;
  }
}

std::vector<std::string> seeds() {
  test::GgufWriter byte_level =
      test::make_tiny_model({.family = test::Family::kQwen2, .layers = 1}).gguf();
  byte_level.tensors.clear();
  return {small_gguf("llama").bytes(), small_gguf("t5").bytes(), byte_level.bytes()};
}

}  // namespace

constexpr Target kTokenizerGguf = {run, seeds};

}  // namespace incipit::fuzz
