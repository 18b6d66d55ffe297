// SPDX-License-Identifier: Apache-2.0
#include "fuzz/target.h"
#include "incipit/error.h"
#include "model/model_file.h"
#include "support/memory_file.h"
#include "support/recording_device.h"
#include "support/tiny_model.h"
#include "text/tokenizer.h"

namespace incipit::fuzz {
namespace {

void run(std::string_view bytes) {
  const test::MemoryFile file(bytes);
  try {
    const auto model = model::open_model(file.path());
    const text::Tokenizer tokenizer(model->tokenizer());
    test::RecordingDevice device;
    model->load_weights(device, {});
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kModelUnreadable) throw;
  }
}

std::vector<std::string> seeds() {
  test::GgufWriter second = test::make_smallest_model(tensor::DType::kF16).gguf();
  second.version = 2;
  second.alignment = 64;
  second.set_u32("general.alignment", 64);
  return {test::make_smallest_model(tensor::DType::kQ4_1).gguf().bytes(), second.bytes()};
}

}  // namespace

constexpr Target kGguf = {run, seeds};

}  // namespace incipit::fuzz
