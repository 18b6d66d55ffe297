// SPDX-License-Identifier: Apache-2.0
#include "model/tensor_source.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "model/files.h"

namespace incipit::model {

std::uint64_t tensor_bytes(const TensorInfo& tensor, const std::filesystem::path& file) {
  const std::string what = file.string() + ": the size of tensor '" + tensor.name + "'";
  if (tensor.shape.empty() || tensor.shape.size() > kMaxDimensions) {
    fail(file, "tensor '" + tensor.name + "' has " + std::to_string(tensor.shape.size()) +
                   " dimensions, not 1 to " + std::to_string(kMaxDimensions) +
                   "; the file is damaged");
  }
  const std::uint64_t block = tensor::block_elements(tensor.type);
  if (tensor.shape.back() % block != 0) {
    fail(file, "tensor '" + tensor.name + "' has rows of " + std::to_string(tensor.shape.back()) +
                   " elements, but " + std::string(tensor::name(tensor.type)) +
                   " comes in blocks of " + std::to_string(block) + "; the file is damaged");
  }
  std::uint64_t bytes = tensor::block_bytes(tensor.type);
  for (const std::uint64_t dimension : tensor.shape) {
    if (dimension == 0) fail(file, "tensor '" + tensor.name + "' is empty; the file is damaged");
    bytes = base::checked_mul(bytes, dimension, what);
  }
  return bytes / block;
}

std::string to_string(std::span<const std::uint64_t> shape) {
  std::string text = "[";
  for (const std::uint64_t dimension : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(dimension);
  }
  return text + "]";
}

TensorSource::TensorSource(std::vector<base::ReadFile> files, std::vector<TensorInfo> tensors)
    : files_(std::move(files)), tensors_(std::move(tensors)) {
  std::sort(tensors_.begin(), tensors_.end(),
            [](const TensorInfo& a, const TensorInfo& b) { return a.name < b.name; });
  const auto twin =
      std::adjacent_find(tensors_.begin(), tensors_.end(),
                         [](const TensorInfo& a, const TensorInfo& b) { return a.name == b.name; });
  if (twin != tensors_.end()) {
    fail(file_of(*twin), "there are two tensors '" + twin->name + "'; the file is damaged");
  }
}

const TensorInfo* TensorSource::find(std::string_view name) const noexcept {
  const auto found = std::lower_bound(
      tensors_.begin(), tensors_.end(), name,
      [](const TensorInfo& tensor, std::string_view wanted) { return tensor.name < wanted; });
  return found != tensors_.end() && found->name == name ? &*found : nullptr;
}

void TensorSource::read(const TensorInfo& tensor, std::uint64_t begin,
                        std::span<std::byte> out) const {
  INCIPIT_CHECK(begin <= tensor.bytes && out.size() <= tensor.bytes - begin);
  files_[tensor.file].read(tensor.offset + begin, out);
}

}  // namespace incipit::model
