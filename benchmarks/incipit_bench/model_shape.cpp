// SPDX-License-Identifier: Apache-2.0
#include "model_shape.h"

#include <array>
#include <cstdint>
#include <exception>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>

namespace bench {

namespace {

/// The front of a GGUF file: the numbers of its metadata, and which tensor lies where. The engine
/// checks what a file says; here a damaged one only ends the reading with an exception.
class GgufFront {
 public:
  explicit GgufFront(const std::filesystem::path& path) {
    file_.exceptions(std::ios::failbit | std::ios::badbit);
    file_.open(path, std::ios::binary);
    if (read<std::uint32_t>() != kMagic) throw std::runtime_error("no GGUF file");
    read<std::uint32_t>();  // version
    const auto tensors = read<std::uint64_t>();
    const auto entries = read<std::uint64_t>();
    for (std::uint64_t i = 0; i < entries; ++i) {
      const std::string key = text();
      value(key, read<std::uint32_t>());
    }
    for (std::uint64_t i = 0; i < tensors; ++i) {
      const std::string name = text();
      const auto dimensions = read<std::uint32_t>();
      skip(dimensions * sizeof(std::uint64_t) + sizeof(std::uint32_t));
      offsets_[name] = read<std::uint64_t>();
    }
    data_bytes_ = std::filesystem::file_size(path) - static_cast<std::uint64_t>(file_.tellg());
  }

  double number(const std::string& key) const { return numbers_.at(architecture_ + key); }
  double number(const std::string& key, double absent) const {
    const auto found = numbers_.find(architecture_ + key);
    return found == numbers_.end() ? absent : found->second;
  }
  double vocabulary() const { return numbers_.at(kTokens); }

  /// Of the tensors that each token needs: all but an embedding that is no output matrix, too.
  double weight_bytes() const {
    const bool tied = !offsets_.contains("output.weight");
    const std::uint64_t begin = offsets_.at("token_embd.weight");
    std::uint64_t end = data_bytes_;
    for (const auto& [name, offset] : offsets_) {
      if (offset > begin && offset < end) end = offset;
    }
    return static_cast<double>(tied ? data_bytes_ : data_bytes_ - (end - begin));
  }

 private:
  static constexpr std::uint32_t kMagic = 0x46554747;     // "GGUF"
  static constexpr std::uint64_t kLongestText = 1 << 20;  // of a key or a value
  static constexpr const char* kTokens = "tokenizer.ggml.tokens";
  enum Type : std::uint32_t { kUint32 = 4, kString = 8, kArray = 9, kTypes = 13 };
  static constexpr std::array<std::uint64_t, kTypes> kBytes = {1, 1, 2, 2, 4, 4, 4,
                                                               1, 0, 0, 8, 8, 8};

  template <class T>
  T read() {
    T number = {};
    file_.read(reinterpret_cast<char*>(&number), sizeof number);  // NOLINT: bytes of a number
    return number;
  }
  void skip(std::uint64_t bytes) { file_.seekg(static_cast<std::streamoff>(bytes), std::ios::cur); }

  std::string text() {
    const auto length = read<std::uint64_t>();
    if (length > kLongestText) throw std::runtime_error("a text is too long");
    std::string result(length, '\0');
    file_.read(result.data(), static_cast<std::streamsize>(length));
    return result;
  }

  /// Of an array only the length is kept.
  void value(const std::string& key, std::uint32_t type) {
    if (type == kArray) {
      const auto element = read<std::uint32_t>();
      const auto count = read<std::uint64_t>();
      numbers_[key] = static_cast<double>(count);
      if (element != kString) return skip(count * kBytes.at(element));
      for (std::uint64_t i = 0; i < count; ++i) skip(read<std::uint64_t>());
    } else if (type == kString) {
      const std::string word = text();
      if (key == "general.architecture") architecture_ = word + ".";
    } else if (type == kUint32) {
      numbers_[key] = read<std::uint32_t>();
    } else {
      skip(kBytes.at(type));
    }
  }

  std::ifstream file_;
  std::string architecture_ = {};                      // and a dot
  std::map<std::string, double> numbers_ = {};         // by key
  std::map<std::string, std::uint64_t> offsets_ = {};  // by tensor, into the data
  std::uint64_t data_bytes_ = 0;
};

}  // namespace

std::optional<ModelShape> read_shape(const std::filesystem::path& path) try {
  const GgufFront front(path);
  const double layers = front.number("block_count"), width = front.number("embedding_length");
  const double heads = front.number("attention.head_count");
  const double kv_heads = front.number("attention.head_count_kv", heads);
  const double head_dim = front.number("attention.key_length", width / heads);
  const double ffn_width = front.number("feed_forward_length");
  ModelShape shape;
  // q and output, k and v, gate, up and down.
  shape.layer_parameters =
      layers * width * (2 * heads * head_dim + 2 * kv_heads * head_dim + 3 * ffn_width);
  shape.output_parameters = width * front.vocabulary();
  shape.attention_width = layers * heads * head_dim;
  shape.weight_bytes = front.weight_bytes();
  return shape;
} catch (const std::exception&) {
  return std::nullopt;
}

}  // namespace bench
