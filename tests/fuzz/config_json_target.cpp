// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"
#include "fuzz/target.h"
#include "incipit/error.h"
#include "model/hugging_face.h"
#include "model/safetensors.h"
#include "support/memory_file.h"
#include "support/temporary_directory.h"
#include "support/tiny_model.h"

namespace incipit::fuzz {
namespace {

// A file of a tiny model's directory.
std::string file_of(const test::TinyModel& model, const char* name) {
  const test::TemporaryDirectory directory;
  model.write_hugging_face(directory.path());
  return base::read_text_file(directory.path() / name, 1 << 22);
}

// The input is a config.json for the weights of a tiny model.
void run(std::string_view bytes) {
  static const std::string weights =
      file_of(test::make_smallest_model(tensor::DType::kF32), "model.safetensors");
  const test::MemoryFile config(bytes), tensors(weights);
  try {
    std::vector<base::ReadFile> files;
    files.emplace_back(tensors.path());
    auto list = model::read_safetensors_header(files.front(), 0);
    const model::TensorSource source(std::move(files), std::move(list));
    const model::JsonFile file(config.path());
    model::read_hugging_face_config(file.root(), source);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kModelUnreadable) throw;
  }
}

std::vector<std::string> seeds() {
  std::vector<std::string> configs;
  for (const test::Family family :
       {test::Family::kLlama, test::Family::kQwen2, test::Family::kQwen3}) {
    configs.push_back(
        file_of(test::make_tiny_model({.family = family, .layers = 1, .llama3_rope = true}),
                "config.json"));
  }
  return configs;
}

}  // namespace

constexpr Target kConfigJson = {run, seeds};

}  // namespace incipit::fuzz
