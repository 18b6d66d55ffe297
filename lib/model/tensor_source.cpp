// SPDX-License-Identifier: Apache-2.0
#include "model/tensor_source.h"

#include <algorithm>
#include <cstring>
#include <set>
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
  const std::uint64_t stored_block = tensor.stored ? tensor::block_elements(*tensor.stored) : block;
  if (tensor.shape.back() % stored_block != 0) {
    const auto type = tensor.stored ? tensor::name(*tensor.stored) : tensor::name(tensor.type);
    fail(file, "tensor '" + tensor.name + "' has rows of " + std::to_string(tensor.shape.back()) +
                   " elements, but " + std::string(type) + " comes in blocks of " +
                   std::to_string(stored_block) + "; the file is damaged");
  }
  std::uint64_t bytes = tensor.unread ? tensor.unread->bytes : tensor::block_bytes(tensor.type);
  for (const std::uint64_t dimension : tensor.shape) {
    if (dimension == 0) fail(file, "tensor '" + tensor.name + "' is empty; the file is damaged");
    bytes = base::checked_mul(bytes, dimension, what);
  }
  return bytes / block;
}

std::string converted_types(std::span<const TensorInfo> tensors) {
  std::set<std::string> types;
  for (const TensorInfo& tensor : tensors) {
    if (!tensor.stored) continue;
    types.insert(std::string(tensor::name(*tensor.stored)) + " as " +
                 std::string(tensor::name(tensor.type)));
  }
  std::string text;
  for (const std::string& type : types) text += (text.empty() ? "" : ", ") + type;
  return text;
}

std::string to_string(std::span<const std::uint64_t> shape) {
  std::string text = "[";
  for (const std::uint64_t dimension : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(dimension);
  }
  return text + "]";
}

std::uint64_t TensorInfo::file_bytes() const noexcept {
  if (!stored) return bytes;
  const std::uint64_t block =
      tensor::block_elements(*stored) / tensor::block_elements(type) * tensor::block_bytes(type);
  return bytes / block * tensor::block_bytes(*stored);
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
  if (tensor.stored) {
    read_stored(tensor, begin, out);
  } else {
    files_[tensor.file].read(tensor.offset + begin, out);
  }
}

void TensorSource::read_stored(const TensorInfo& tensor, std::uint64_t begin,
                               std::span<std::byte> out) const {
  constexpr std::size_t kPieceBlocks = 256;  // of the file, at once
  const std::size_t from_bytes = tensor::block_bytes(*tensor.stored);
  const std::size_t runs = tensor::block_elements(*tensor.stored) / tensor::kRun;
  const std::size_t to_bytes = runs * sizeof(tensor::BlockQ8_0);
  INCIPIT_CHECK(tensor.type == tensor::DType::kQ8_0 && begin % to_bytes == 0 &&
                out.size() % to_bytes == 0);
  std::vector<std::byte> from;
  std::vector<tensor::BlockQ8_0> to;
  std::uint64_t offset = tensor.offset + begin / to_bytes * from_bytes;
  while (!out.empty()) {
    const std::size_t blocks = std::min(out.size() / to_bytes, kPieceBlocks);
    from.resize(blocks * from_bytes);
    to.resize(blocks * runs);
    files_[tensor.file].read(offset, from);
    tensor::convert_blocks(*tensor.stored, from.data(), to);
    std::memcpy(out.data(), to.data(), blocks * to_bytes);
    offset += from.size();
    out = out.subspan(blocks * to_bytes);
  }
}

}  // namespace incipit::model
