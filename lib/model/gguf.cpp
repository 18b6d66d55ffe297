// SPDX-License-Identifier: Apache-2.0
#include "model/gguf.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "model/files.h"

namespace incipit::model {
namespace {

// A vocabulary of 256k tokens with its merges takes about 20 MB.
constexpr std::uint64_t kMaxHeaderBytes = std::uint64_t{256} << 20;
constexpr std::uint64_t kPieceBytes = std::uint64_t{256} << 10;
constexpr std::uint64_t kMaxEntries = 65536;
constexpr std::uint64_t kMaxNameBytes = 65535;
constexpr std::uint64_t kMaxStringBytes = std::uint64_t{16} << 20;
constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::uint64_t kMaxAlignment = std::uint64_t{1} << 20;

// The least that an entry and a tensor can take: an empty key and a u8, an empty name and one
// dimension.
constexpr std::uint64_t kMinEntryBytes = 8 + 4 + 1;
constexpr std::uint64_t kMinTensorBytes = 8 + 4 + 8 + 4 + 8;

// Reads the front of a file in pieces, only as far as it is asked for, since where the header ends
// is known at its end. Room is set aside for all that may come, so that what was handed out stays
// in place; memory that no piece has reached is not touched.
class FrontReader {
 public:
  explicit FrontReader(const base::ReadFile& file)
      : file_(file),
        limit_(std::min(file.size(), kMaxHeaderBytes)),
        bytes_(std::make_unique_for_overwrite<std::byte[]>(limit_)) {}

  std::uint64_t position() const noexcept { return position_; }
  std::uint64_t remaining() const noexcept { return limit_ - position_; }

  base::Bytes take(std::uint64_t count) {
    if (count > remaining()) {
      fail("has a header that does not end within " + std::to_string(limit_) + " bytes");
    }
    load(position_ + count);
    const base::Bytes taken(bytes_.get() + position_, count);
    position_ += count;
    return taken;
  }

  template <class T>
  T read() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }

  std::string_view read_string(std::uint64_t cap) {
    const auto length = read<std::uint64_t>();
    if (length > cap) {
      fail("holds a string of " + std::to_string(length) + " bytes at byte " +
           std::to_string(position_));
    }
    const base::Bytes text = take(length);
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }

  // What was taken since `begin`.
  base::Bytes since(std::uint64_t begin) const noexcept {
    return {bytes_.get() + begin, position_ - begin};
  }

  std::unique_ptr<std::byte[]> release() noexcept { return std::move(bytes_); }

  [[noreturn]] void fail(const std::string& what) const {
    model::fail(file_.path(), "the GGUF file " + what + "; it is truncated or damaged");
  }

 private:
  void load(std::uint64_t end) {  // end <= limit_
    if (end <= loaded_) return;
    const std::uint64_t wanted = std::max(end, loaded_ + std::min(kPieceBytes, limit_ - loaded_));
    file_.read(loaded_, std::span(bytes_.get() + loaded_, wanted - loaded_));
    loaded_ = wanted;
  }

  const base::ReadFile& file_;
  const std::uint64_t limit_;
  std::unique_ptr<std::byte[]> bytes_;  // [limit_], of which [loaded_] are read
  std::uint64_t loaded_ = 0;
  std::uint64_t position_ = 0;  // <= loaded_
};

void check_count(const FrontReader& front, std::uint64_t count, std::uint64_t cap,
                 std::uint64_t least_bytes, const char* what) {
  if (count > cap || count > front.remaining() / least_bytes) {
    front.fail("claims " + std::to_string(count) + ' ' + what);
  }
}

GgufType read_type(FrontReader& front) {
  const auto type = front.read<std::uint32_t>();
  if (type >= kGgufTypes) {
    front.fail("has a value of unknown type " + std::to_string(type) + " at byte " +
               std::to_string(front.position()));
  }
  return static_cast<GgufType>(type);
}

GgufValue read_value(FrontReader& front) {
  GgufValue value;
  value.type = read_type(front);
  value.array = value.type == GgufType::kArray;
  if (value.array) {
    value.type = read_type(front);
    value.count = front.read<std::uint64_t>();
  }
  const std::uint64_t begin = front.position();
  if (value.type == GgufType::kArray) {
    front.fail("has a list of lists at byte " + std::to_string(begin));
  }
  if (value.type == GgufType::kString) {
    check_count(front, value.count, kMaxHeaderBytes, sizeof(std::uint64_t), "strings in a list");
    for (std::uint64_t i = 0; i < value.count; ++i) front.read_string(kMaxStringBytes);
  } else {
    front.take(base::checked_mul(value.count, gguf_value_bytes(value.type), "the size of a list"));
  }
  value.bytes = front.since(begin);
  return value;
}

// ggml's numbers of element formats. Those without a dtype are known, but not read.
struct Format {
  std::uint32_t id;
  std::string_view name;
  std::optional<tensor::DType> type = {};         // that it is computed as
  std::optional<tensor::StoredType> stored = {};  // where that is another one
};
constexpr std::array kFormats = std::to_array<Format>({
    {0, "F32", tensor::DType::kF32},
    {1, "F16", tensor::DType::kF16},
    {2, "Q4_0", tensor::DType::kQ4_0},
    {3, "Q4_1", tensor::DType::kQ4_1},
    {6, "Q5_0", tensor::DType::kQ5_0},
    {7, "Q5_1", tensor::DType::kQ5_1},
    {8, "Q8_0", tensor::DType::kQ8_0},
    {9, "Q8_1"},
    {10, "Q2_K", tensor::DType::kQ8_0, tensor::StoredType::kQ2_K},
    {11, "Q3_K", tensor::DType::kQ8_0, tensor::StoredType::kQ3_K},
    {12, "Q4_K", tensor::DType::kQ4_K},
    {13, "Q5_K", tensor::DType::kQ5_K},
    {14, "Q6_K", tensor::DType::kQ6_K},
    {15, "Q8_K", tensor::DType::kQ8_0, tensor::StoredType::kQ8_K},
    {16, "IQ2_XXS"},
    {17, "IQ2_XS"},
    {18, "IQ3_XXS"},
    {19, "IQ1_S"},
    {20, "IQ4_NL", tensor::DType::kQ8_0, tensor::StoredType::kIQ4_NL},
    {21, "IQ3_S"},
    {22, "IQ2_S"},
    {23, "IQ4_XS"},
    {24, "I8"},
    {25, "I16"},
    {26, "I32"},
    {27, "I64"},
    {28, "F64"},
    {29, "IQ1_M"},
    {30, "BF16", tensor::DType::kBF16},
    {34, "TQ1_0"},
    {35, "TQ2_0"},
    {39, "MXFP4"},
});

std::string readable_formats() {
  std::string names;
  for (const Format& format : kFormats) {
    if (format.type) names += (names.empty() ? "" : ", ") + std::string(format.name);
  }
  return names;
}

const Format& read_format(FrontReader& front, std::string_view tensor,
                          const std::filesystem::path& file) {
  const auto id = front.read<std::uint32_t>();
  const auto* known = std::find_if(kFormats.begin(), kFormats.end(),
                                   [&](const Format& format) { return format.id == id; });
  if (known != kFormats.end() && known->type) return *known;
  const std::string type =
      known != kFormats.end() ? std::string(known->name) : "unknown (" + std::to_string(id) + ")";
  fail(file, "the type of tensor '" + std::string(tensor) + "' is " + type + "; incipit reads " +
                 readable_formats() + ", so take a model file that is quantised to one of these");
}

// With its offset still as in the file: from the begin of the data.
TensorInfo read_tensor(FrontReader& front, const std::filesystem::path& file) {
  TensorInfo tensor;
  tensor.name = front.read_string(kMaxNameBytes);
  const auto dimensions = front.read<std::uint32_t>();
  if (dimensions > kMaxDimensions) {
    front.fail("gives tensor '" + tensor.name + "' " + std::to_string(dimensions) + " dimensions");
  }
  tensor.shape.resize(dimensions);
  for (std::size_t i = dimensions; i-- > 0;) tensor.shape[i] = front.read<std::uint64_t>();
  const Format& format = read_format(front, tensor.name, file);
  tensor.type = *format.type;
  tensor.stored = format.stored;
  tensor.offset = front.read<std::uint64_t>();
  tensor.bytes = tensor_bytes(tensor, file);
  return tensor;
}

std::uint64_t read_alignment(const GgufMetadata& metadata) {
  const std::uint64_t alignment =
      metadata.find_count("general.alignment").value_or(kDefaultAlignment);
  if (alignment < 8 || alignment > kMaxAlignment || !std::has_single_bit(alignment)) {
    fail(metadata.file(), "general.alignment is " + std::to_string(alignment) +
                              ", not a power of two from 8 to " + std::to_string(kMaxAlignment) +
                              "; the file is damaged");
  }
  return alignment;
}

// Makes the offsets those in the file, and checks that each tensor lies in it, alone.
void place_tensors(std::vector<TensorInfo>& tensors, std::uint64_t header_bytes,
                   std::uint64_t alignment, const base::ReadFile& file) {
  const std::uint64_t data_begin = (header_bytes + alignment - 1) / alignment * alignment;
  std::vector<const TensorInfo*> in_order;
  in_order.reserve(tensors.size());
  for (TensorInfo& tensor : tensors) {
    const std::string who = "tensor '" + tensor.name + "'";
    if (tensor.offset % alignment != 0) {
      fail(file.path(),
           who + " is not aligned to " + std::to_string(alignment) + " bytes; the file is damaged");
    }
    const std::string what = file.path().string() + ": the end of " + who;
    tensor.offset = base::checked_add(data_begin, tensor.offset, what);
    if (base::checked_add(tensor.offset, tensor.file_bytes(), what) > file.size()) {
      fail(file.path(), who + " (" + std::to_string(tensor.file_bytes()) + " bytes from byte " +
                            std::to_string(tensor.offset) + ") goes beyond the file's end at " +
                            std::to_string(file.size()) + "; it is truncated, fetch it again");
    }
    in_order.push_back(&tensor);
  }
  std::sort(in_order.begin(), in_order.end(),
            [](const TensorInfo* a, const TensorInfo* b) { return a->offset < b->offset; });
  for (std::size_t i = 1; i < in_order.size(); ++i) {
    if (in_order[i - 1]->offset + in_order[i - 1]->file_bytes() > in_order[i]->offset) {
      fail(file.path(), "tensors '" + in_order[i - 1]->name + "' and '" + in_order[i]->name +
                            "' overlap; the file is damaged");
    }
  }
}

void check_version(FrontReader& front, const std::filesystem::path& file) {
  const auto version = front.read<std::uint32_t>();
  if (version == 2 || version == 3) return;
  if (version != 0 && (version & 0xffff) == 0) {
    fail(file, "the GGUF file is big-endian; make a little-endian one");
  }
  fail(file, "GGUF version " + std::to_string(version) +
                 " is not one that incipit reads (2 and 3); convert the model again");
}

}  // namespace

GgufHeader read_gguf_header(const base::ReadFile& file) {
  FrontReader front(file);
  if (front.remaining() < 4 ||
      front.read<std::array<char, 4>>() != std::array{'G', 'G', 'U', 'F'}) {
    fail(file.path(), "this is no GGUF file; give a .gguf file or a Hugging Face directory");
  }
  check_version(front, file.path());
  const auto tensors = front.read<std::uint64_t>();
  const auto entries = front.read<std::uint64_t>();
  GgufHeader header{nullptr, GgufMetadata(file.path()), {}};
  check_count(front, entries, kMaxEntries, kMinEntryBytes, "metadata entries");
  for (std::uint64_t i = 0; i < entries; ++i) {
    const std::string_view key = front.read_string(kMaxNameBytes);
    header.metadata.add(key, read_value(front));
  }
  check_count(front, tensors, kMaxTensors, kMinTensorBytes, "tensors");
  header.tensors.reserve(tensors);
  for (std::uint64_t i = 0; i < tensors; ++i) {
    header.tensors.push_back(read_tensor(front, file.path()));
  }
  place_tensors(header.tensors, front.position(), read_alignment(header.metadata), file);
  header.bytes = front.release();
  return header;
}

}  // namespace incipit::model
