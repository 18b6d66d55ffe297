// SPDX-License-Identifier: Apache-2.0
#include "model/model_file.h"

#include <system_error>
#include <utility>

#include "model/files.h"
#include "model/model_parts.h"
#include "model/vocabulary_rules.h"
#include "model/weights_loader.h"

namespace incipit::model {
namespace {

class OpenedModel final : public ModelFile {
 public:
  explicit OpenedModel(ModelParts parts) : parts_(std::move(parts)) {}

  const ModelConfig& config() const noexcept override { return parts_.config; }
  const text::TokenizerSpec& tokenizer() const noexcept override { return parts_.tokenizer; }
  const text::ChatTemplate& chat_template() const noexcept override { return parts_.chat_template; }
  std::span<const TensorInfo> tensors() const noexcept override { return parts_.tensors.tensors(); }
  const SamplingDefaults& sampling() const noexcept override { return parts_.sampling; }

  ModelWeights load_weights(device::Device& device,
                            const std::function<void(double fraction)>& progress,
                            bool f16_as_bf16) const override {
    return model::load_weights(parts_.tensors, *parts_.names, parts_.config, device, progress,
                               f16_as_bf16);
  }

 private:
  ModelParts parts_;
};

ModelParts read_parts(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (path.empty() || status.type() == std::filesystem::file_type::not_found) {
    fail(path, "there is no such file or directory; give a .gguf file or a Hugging Face directory");
  }
  if (std::filesystem::is_directory(status)) return read_hugging_face(path);
  const std::filesystem::path extension = path.extension();
  if (extension == ".bin" || extension == ".pt" || extension == ".pth") {
    fail(path, "incipit reads no PyTorch checkpoints, which may hold programs; convert it by " +
                   convert_command(path.parent_path()) + ", and give the directory");
  }
  if (extension == ".safetensors") {
    fail(path,
         "the weights alone are no model; give the directory that also holds config.json "
         "and tokenizer.json");
  }
  return read_gguf(path);
}

}  // namespace

std::unique_ptr<const ModelFile> open_model(const std::filesystem::path& path) {
  ModelParts parts = read_parts(path);
  check_tensors(parts.tensors, *parts.names, parts.config);
  pad_vocabulary(parts.tokenizer, parts.config.vocabulary, path);
  return std::make_unique<const OpenedModel>(std::move(parts));
}

}  // namespace incipit::model
