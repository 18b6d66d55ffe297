// SPDX-License-Identifier: Apache-2.0
#include "model/weights_loader.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "model/files.h"
#include "model/weights_plan.h"
#include "tensor/quantized_blocks.h"

namespace incipit::model {
namespace {

// What the digest of all weights takes from one tensor, besides its bytes.
std::string describe(const WeightSlot& slot) {
  const TensorInfo& tensor = *slot.tensor;
  base::FieldWriter fields;
  fields.add("name", tensor.name).add("type", tensor::name(tensor.type));
  for (const std::uint64_t dimension : tensor.shape) fields.add("dimension", dimension);
  fields.add("bytes", tensor.bytes);
  if (!slot.whole()) fields.add("first row", slot.rows.first).add("run", slot.rows.run);
  return fields.str();
}

// The numbers of a vector's slot.
std::vector<float> vector_of(const WeightSlot& slot, base::Bytes bytes) {
  std::vector<float> values(slot.tensor->shape.back()), chosen;
  tensor::dequantize_row(slot.tensor->type, bytes.data(), values);
  chosen.reserve(slot.rows.count);
  for (std::uint64_t i = 0; i < slot.rows.count; ++i) {
    const float value = values[slot.rows.row(i)];
    chosen.push_back(slot.from_one ? 1.0f + value : value);
  }
  return chosen;
}

device::Buffer upload_vector(device::Device& device, std::span<const float> values) {
  device::Buffer buffer = device.allocate(values.size_bytes());
  device.upload(std::as_bytes(values), buffer.data());
  return buffer;
}

// Reads the rows of a matrix's slot, one after the other, out of its tensor.
class RowReader {
 public:
  RowReader(const TensorSource& source, const WeightSlot& slot)
      : source_(source),
        slot_(slot),
        tensor_(*slot.tensor),
        row_bytes_(tensor::row_bytes(tensor_.type, slot.columns())) {}

  // Fills `next` with the whole rows that follow.
  void read(std::span<std::byte> next) {
    while (!next.empty()) {
      const std::uint64_t in_run = slot_.rows.run - row_ % slot_.rows.run;
      const std::uint64_t rows = std::min<std::uint64_t>(in_run, next.size() / row_bytes_);
      const auto piece = next.first(rows * row_bytes_);
      if (slot_.transposed) {
        read_transposed(slot_.rows.row(row_), rows, piece);
      } else {
        source_.read(tensor_, slot_.rows.row(row_) * row_bytes_, piece);
      }
      row_ += rows;
      next = next.subspan(piece.size());
    }
  }

 private:
  // Columns of a transposed tensor that are turned at once, so that their lines stay in the cache.
  static constexpr std::uint64_t kColumns = 16;

  // The tensor holds column after column: of each, the piece that these rows have.
  void read_transposed(std::uint64_t first, std::uint64_t rows, std::span<std::byte> out) {
    const std::size_t element = tensor::block_bytes(tensor_.type);
    const std::uint64_t stored = tensor_.shape.back();
    columns_.resize(kColumns * rows * element);
    for (std::uint64_t c = 0; c < slot_.columns(); c += kColumns) {
      const std::uint64_t count = std::min(kColumns, slot_.columns() - c);
      for (std::uint64_t i = 0; i < count; ++i) {
        source_.read(tensor_, ((c + i) * stored + first) * element,
                     std::span(columns_).subspan(i * rows * element, rows * element));
      }
      std::byte* const to = out.data() + c * element;
      if (element == 2) {
        transpose<std::uint16_t>(columns_.data(), count, rows, to);
      } else {
        transpose<std::uint32_t>(columns_.data(), count, rows, to);
      }
    }
  }

  // [count, rows] elements become [rows, count] of the rows at `to`.
  template <class Element>
  void transpose(const std::byte* from, std::uint64_t count, std::uint64_t rows,
                 std::byte* to) const noexcept {
    for (std::uint64_t r = 0; r < rows; ++r) {
      for (std::uint64_t i = 0; i < count; ++i) {
        std::memcpy(to + r * row_bytes_ + i * sizeof(Element),
                    from + (i * rows + r) * sizeof(Element), sizeof(Element));
      }
    }
  }

  const TensorSource& source_;
  const WeightSlot& slot_;
  const TensorInfo& tensor_;
  const std::size_t row_bytes_;
  std::uint64_t row_ = 0;
  std::vector<std::byte> columns_;
};

// F16 numbers become BF16 numbers, in place.
void round_to_bf16(std::span<std::byte> numbers) noexcept {
  for (; numbers.size() >= 2; numbers = numbers.subspan(2)) {
    std::uint16_t bits;
    std::memcpy(&bits, numbers.data(), sizeof bits);
    bits = tensor::f32_to_bf16(tensor::f16_to_f32(bits));
    std::memcpy(numbers.data(), &bits, sizeof bits);
  }
}

template <class Word, Word kExponent>
bool words_finite(base::Bytes bytes) noexcept {
  bool finite = true;
  for (std::size_t i = 0; i + sizeof(Word) <= bytes.size(); i += sizeof(Word)) {
    Word word;
    std::memcpy(&word, bytes.data() + i, sizeof word);
    finite &= (word & kExponent) != kExponent;
  }
  return finite;
}

// Of blocks that hold `scales` f16 numbers from byte `first` on.
bool blocks_finite(base::Bytes bytes, std::size_t block_bytes, std::size_t scales,
                   std::size_t first = 0) noexcept {
  bool finite = true;
  for (std::size_t i = 0; i + block_bytes <= bytes.size(); i += block_bytes) {
    finite &= words_finite<std::uint16_t, 0x7C00>(bytes.subspan(i + first, scales * 2));
  }
  return finite;
}

}  // namespace

void check_tensors(const TensorSource& source, const TensorNames& names,
                   const ModelConfig& config) {
  ModelWeights nowhere;
  plan_weights(source, names, config, nowhere);
}

ModelWeights load_weights(const TensorSource& source, const TensorNames& names,
                          const ModelConfig& config, device::Device& device,
                          const std::function<void(double fraction)>& progress, bool f16_as_bf16) {
  ModelWeights weights;
  const std::vector<WeightSlot> slots = plan_weights(source, names, config, weights);
  const auto bytes_of = [](const WeightSlot& slot) {
    return slot.matrix == nullptr
               ? slot.tensor->bytes
               : slot.rows.count * tensor::row_bytes(slot.tensor->type, slot.columns());
  };
  double total = 0.0, done = 0.0;
  for (const WeightSlot& slot : slots) total += static_cast<double>(bytes_of(slot));
  base::StreamHash128 hash;
  for (const WeightSlot& slot : slots) {
    const TensorInfo& tensor = *slot.tensor;
    hash.update(base::as_bytes(describe(slot)));
    const bool rounds = f16_as_bf16 && slot.matrix != nullptr && tensor.type == tensor::DType::kF16;
    if (rounds) hash.update(base::as_bytes("as BF16"));
    const auto take = [&](std::span<std::byte> next) {
      hash.update(next);
      if (!all_finite(tensor.type, next)) {
        fail(source.file_of(tensor), "tensor '" + tensor.name +
                                         "' holds infinities or NaN; the file is damaged or was "
                                         "converted with overflow");
      }
      if (rounds) round_to_bf16(next);
      done += static_cast<double>(next.size());
      if (progress) progress(done / total);
    };
    if (slot.matrix != nullptr) {
      RowReader rows(source, slot);
      const auto read = [&](std::span<std::byte> next) {
        rows.read(next);
        take(next);
      };
      const tensor::DType type = rounds ? tensor::DType::kBF16 : tensor.type;
      *slot.matrix = device.make_weight(type, slot.rows.count, slot.columns(), read);
      weights.parameters += slot.rows.count * slot.columns();
    } else {
      std::vector<std::byte> bytes(tensor.bytes);
      source.read(tensor, 0, bytes);
      take(bytes);
      *slot.vector = upload_vector(device, vector_of(slot, bytes));
      weights.parameters += slot.rows.count;
    }
  }
  weights.digest = hash.digest();
  return weights;
}

bool all_finite(tensor::DType type, base::Bytes bytes) noexcept {
  switch (type) {
    case tensor::DType::kF32:
      return words_finite<std::uint32_t, 0x7F800000>(bytes);
    case tensor::DType::kF16:
      return words_finite<std::uint16_t, 0x7C00>(bytes);
    case tensor::DType::kBF16:
      return words_finite<std::uint16_t, 0x7F80>(bytes);
    case tensor::DType::kQ8_0:
    case tensor::DType::kQ4_0:
    case tensor::DType::kQ5_0:
      return blocks_finite(bytes, tensor::block_bytes(type), 1);
    case tensor::DType::kQ4_1:
    case tensor::DType::kQ5_1:
    case tensor::DType::kQ4_K:
    case tensor::DType::kQ5_K:
      return blocks_finite(bytes, tensor::block_bytes(type), 2);
    case tensor::DType::kQ6_K:
      return blocks_finite(bytes, sizeof(tensor::BlockQ6_K), 1, offsetof(tensor::BlockQ6_K, d));
  }
  return false;
}

}  // namespace incipit::model
