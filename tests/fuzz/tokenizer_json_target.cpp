// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"
#include "fuzz/target.h"
#include "incipit/error.h"
#include "support/temporary_directory.h"
#include "support/tiny_model.h"
#include "text/tokenizer.h"
#include "text/tokenizer_json.h"

namespace incipit::fuzz {
namespace {

void run(std::string_view bytes) {
  try {
    const text::Tokenizer tokenizer(text::parse_tokenizer_json(bytes));
    tokenizer.decode(tokenizer.encode("The other one is here: <|im_end|> 1 + 2\r\n\t \xff"));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kModelUnreadable) throw;
  }
}

std::vector<std::string> seeds() {
  const auto json_of = [](const test::TinyModel& model) {
    const test::TemporaryDirectory directory;
    model.write_hugging_face(directory.path());
    return base::read_text_file(directory.path() / "tokenizer.json", 1 << 20);
  };
  return {json_of(test::make_smallest_model(tensor::DType::kF32)),
          json_of(test::make_tiny_model({.family = test::Family::kQwen2, .layers = 1}))};
}

}  // namespace

constexpr Target kTokenizerJson = {run, seeds};

}  // namespace incipit::fuzz
