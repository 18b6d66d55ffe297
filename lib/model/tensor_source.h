// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_MODEL_TENSOR_SOURCE_H_
#define INCIPIT_MODEL_TENSOR_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "tensor/dtype.h"
#include "tensor/stored_blocks.h"

namespace incipit::model {

inline constexpr std::size_t kMaxTensors = 65536;
inline constexpr std::size_t kMaxDimensions = 4;

/// A file's type of elements that nothing computes with.
struct UnreadType {
  std::string_view name;  // outlives the tensor
  std::size_t bytes = 0;  // of an element
};

/// One tensor of a model file, checked: its bytes lie in the file.
struct TensorInfo {
  std::string name;
  tensor::DType type = tensor::DType::kF32;
  std::vector<std::uint64_t> shape;  // outermost first; 1 to kMaxDimensions, none is 0
  std::uint64_t offset = 0;          // of its first byte in the file
  std::uint64_t bytes = 0;           // as TensorSource::read() gives it
  std::size_t file = 0;              // which of the source's files
  /// How the file has it, where no kernel has that type and `type` stands in for it (kQ8_0).
  std::optional<tensor::StoredType> stored = {};
  /// In place of `type`, for a tensor that is listed but must not be a part of the model.
  std::optional<UnreadType> unread = {};

  std::uint64_t file_bytes() const noexcept;
};

/// What a tensor's bytes must be by its type and shape. Throws Error{kModelUnreadable} for a shape
/// that cannot be.
std::uint64_t tensor_bytes(const TensorInfo& tensor, const std::filesystem::path& file);

/// Types of tensors that are computed as another one, for people: "Q2_K as Q8_0"; empty: none.
std::string converted_types(std::span<const TensorInfo> tensors);

/// "[576, 49152]"
std::string to_string(std::span<const std::uint64_t> shape);

/// The tensors of a model, from one file or several.
class TensorSource {
 public:
  /// Throws Error{kModelUnreadable} where two tensors have one name.
  TensorSource(std::vector<base::ReadFile> files, std::vector<TensorInfo> tensors);

  std::span<const TensorInfo> tensors() const noexcept { return tensors_; }  // by name
  const TensorInfo* find(std::string_view name) const noexcept;              // null: none
  const std::filesystem::path& file_of(const TensorInfo& tensor) const {
    return files_[tensor.file].path();
  }
  /// The path that errors about the model as a whole name.
  const std::filesystem::path& first_file() const { return files_.front().path(); }

  /// Fills `out` with the tensor's bytes from its `begin`-th on: whole rows where it is `stored` as
  /// another type.
  void read(const TensorInfo& tensor, std::uint64_t begin, std::span<std::byte> out) const;

 private:
  void read_stored(const TensorInfo& tensor, std::uint64_t begin, std::span<std::byte> out) const;

  std::vector<base::ReadFile> files_;
  std::vector<TensorInfo> tensors_;
};

}  // namespace incipit::model

#endif  // INCIPIT_MODEL_TENSOR_SOURCE_H_
