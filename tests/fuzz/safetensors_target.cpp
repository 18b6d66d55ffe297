// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"
#include "fuzz/target.h"
#include "incipit/error.h"
#include "model/safetensors.h"
#include "support/memory_file.h"
#include "support/safetensors_writer.h"

namespace incipit::fuzz {
namespace {

void run(std::string_view bytes) {
  const test::MemoryFile memory(bytes);
  try {
    std::vector<base::ReadFile> files;
    files.emplace_back(memory.path());
    auto tensors = model::read_safetensors_header(files.front(), 0);
    const model::TensorSource source(std::move(files), std::move(tensors));
    for (const model::TensorInfo& tensor : source.tensors()) {
      std::vector<std::byte> data(tensor.bytes);
      source.read(tensor, 0, data);
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kModelUnreadable) throw;
  }
}

std::vector<std::string> seeds() {
  test::SafetensorsWriter writer;
  writer.add("model.norm.weight", "F32", {3}, std::string(12, '\1'));
  writer.add("lm_head.weight", "BF16", {2, 3}, std::string(12, '\2'));
  writer.add("b", "F16", {1, 2, 1, 2}, std::string(8, '\3'));
  const std::string metadata =
      R"({"__metadata__":{"format":"pt"},"a":{"data_offsets":[0,4],"shape":[1],"dtype":"F32"}} )";
  return {writer.bytes(), test::SafetensorsWriter::join(metadata, "1234")};
}

}  // namespace

constexpr Target kSafetensors = {run, seeds};

}  // namespace incipit::fuzz
