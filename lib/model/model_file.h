// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_MODEL_MODEL_FILE_H_
#define INCIPIT_MODEL_MODEL_FILE_H_

#include <filesystem>
#include <functional>
#include <memory>
#include <span>

#include "model/config.h"
#include "model/tensor_source.h"
#include "model/weights.h"
#include "text/chat_format.h"
#include "text/tokenizer.h"

namespace incipit::model {

/// A model on disk, opened: everything but the weights has been read and checked.
class ModelFile {
 public:
  virtual ~ModelFile() = default;

  virtual const ModelConfig& config() const noexcept = 0;
  virtual const text::TokenizerSpec& tokenizer() const noexcept = 0;
  virtual const text::ChatTemplate& chat_template() const noexcept = 0;
  virtual const SamplingDefaults& sampling() const noexcept = 0;
  virtual std::span<const TensorInfo> tensors() const noexcept = 0;  // by name

  /// Reads the tensors one by one into the device's layout; holds at most one in the file's form.
  /// `f16_as_bf16`: F16 matrices are rounded to BF16, and the digest is another one. Throws
  /// Error{kModelUnreadable} for a tensor that is missing or of a wrong shape or type.
  virtual ModelWeights load_weights(device::Device& device,
                                    const std::function<void(double fraction)>& progress,
                                    bool f16_as_bf16 = false) const = 0;
};

/// Opens a GGUF file or a Hugging Face directory. Throws Error{kModelUnreadable}.
std::unique_ptr<const ModelFile> open_model(const std::filesystem::path& path);

}  // namespace incipit::model

#endif  // INCIPIT_MODEL_MODEL_FILE_H_
