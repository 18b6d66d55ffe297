// SPDX-License-Identifier: Apache-2.0
#include "model/safetensors.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "model/files.h"
#include "model/json_file.h"

namespace incipit::model {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // as the format's own library has it

struct Entry {
  std::string name;
  std::string type;
  std::vector<std::uint64_t> shape;
  std::vector<std::uint64_t> offsets;  // begin and end in the data
  bool has_type = false;
  bool has_shape = false;
  bool has_offsets = false;
};

// Receives the header as it is parsed, and allows nothing but
//     {"__metadata__": {text: text...}, name: {"dtype": text, "shape": [...],
//      "data_offsets": [begin, end]}...}
// Never builds a document, so a header of many megabytes takes little more than its own size.
class HeaderParser final : public json::json_sax_t {
 public:
  explicit HeaderParser(const std::filesystem::path& file) : file_(file) {}

  std::vector<Entry> take() { return std::move(entries_); }

  bool null() override { refuse("null"); }
  bool boolean(bool) override { refuse("true or false"); }
  bool number_integer(number_integer_t) override { refuse("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { refuse("a fraction"); }
  bool binary(binary_t&) override { refuse("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (!in_list_) refuse("a number");
    Entry& entry = entries_.back();
    std::vector<std::uint64_t>& list = where_ == Where::kShape ? entry.shape : entry.offsets;
    if (list.size() == kMaxDimensions) refuse("too many numbers");
    list.push_back(value);
    return true;
  }

  bool string(string_t& value) override {
    if (where_ == Where::kType) {
      entries_.back().type = std::move(value);
      where_ = Where::kTensor;
    } else if (where_ != Where::kMetadata) {
      refuse("text");
    }
    return true;
  }

  bool start_object(std::size_t) override {
    if (where_ == Where::kOutside) {
      where_ = Where::kTop;
    } else if (where_ == Where::kTop) {
      where_ = in_metadata_ ? Where::kMetadata : Where::kTensor;
    } else {
      refuse("an object");
    }
    return true;
  }

  bool key(string_t& name) override {
    if (where_ == Where::kTop) {
      if (!names_.insert(name).second) fail(file_, "there are two '" + name + "' in its header");
      in_metadata_ = name == "__metadata__";
      if (!in_metadata_) add_entry(name);
    } else if (where_ == Where::kTensor) {
      start_member(name);
    }
    return true;
  }

  bool end_object() override {
    if (where_ == Where::kTensor) {
      const Entry& entry = entries_.back();
      if (!entry.has_type || !entry.has_shape || entry.offsets.size() != 2) {
        fail(file_, "tensor '" + entry.name + "' lacks a dtype, shape or data_offsets");
      }
    }
    where_ = where_ == Where::kTop ? Where::kOutside : Where::kTop;
    return true;
  }

  bool start_array(std::size_t) override {
    if ((where_ != Where::kShape && where_ != Where::kOffsets) || in_list_) refuse("a list");
    in_list_ = true;
    return true;
  }

  bool end_array() override {
    in_list_ = false;
    where_ = Where::kTensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const json::exception& error) override {
    fail(file_, "its header is no valid JSON at byte " + std::to_string(position) + " (" +
                    error.what() + "); it is damaged");
  }

 private:
  enum class Where { kOutside, kTop, kMetadata, kTensor, kType, kShape, kOffsets };

  void add_entry(const std::string& name) {
    if (entries_.size() == kMaxTensors) fail(file_, "there are too many tensors");
    entries_.emplace_back().name = name;
  }

  void start_member(const std::string& name) {
    Entry& entry = entries_.back();
    bool* seen = nullptr;
    if (name == "dtype") {
      seen = &entry.has_type;
      where_ = Where::kType;
    } else if (name == "shape") {
      seen = &entry.has_shape;
      where_ = Where::kShape;
    } else if (name == "data_offsets") {
      seen = &entry.has_offsets;
      where_ = Where::kOffsets;
    }
    if (seen == nullptr || *seen) {
      fail(file_, "tensor '" + entry.name + "' has an unexpected '" + name + "' in the header");
    }
    *seen = true;
  }

  [[noreturn]] void refuse(const char* what) const {
    const std::string where =
        entries_.empty() ? "its header" : "the header at tensor '" + entries_.back().name + "'";
    fail(file_, where + " has " + what + " where it does not belong; it is damaged");
  }

  const std::filesystem::path& file_;
  std::vector<Entry> entries_;
  std::set<std::string> names_;
  Where where_ = Where::kOutside;
  bool in_metadata_ = false;
  bool in_list_ = false;
};

// Types that no weights have. Files carry masks and counters of such types, which the model's part
// of the tensors leaves out.
constexpr auto kUnreadTypes = std::to_array<UnreadType>({
    {"BOOL", 1},
    {"U8", 1},
    {"I8", 1},
    {"F8_E5M2", 1},
    {"F8_E4M3", 1},
    {"F8_E8M0", 1},
    {"U16", 2},
    {"I16", 2},
    {"U32", 4},
    {"I32", 4},
    {"U64", 8},
    {"I64", 8},
    {"F64", 8},
    {"C64", 8},
});

void set_type(TensorInfo& tensor, const std::string& type, const std::filesystem::path& file) {
  for (const tensor::DType read :
       {tensor::DType::kF32, tensor::DType::kF16, tensor::DType::kBF16}) {
    if (tensor::name(read) != type) continue;
    tensor.type = read;
    return;
  }
  for (const UnreadType& known : kUnreadTypes) {
    if (known.name != type) continue;
    tensor.unread = known;
    return;
  }
  fail(file, "the type of tensor '" + tensor.name + "' is " + type +
                 "; incipit reads F32, F16 and BF16 from safetensors");
}

// Entries as tensors of a data part that begins at `data` and ends with the file.
std::vector<TensorInfo> place_tensors(std::vector<Entry> entries, std::uint64_t data,
                                      const base::ReadFile& file, std::size_t index) {
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.offsets < b.offsets; });
  std::vector<TensorInfo> tensors;
  tensors.reserve(entries.size());
  std::uint64_t next = 0;
  for (Entry& entry : entries) {
    TensorInfo tensor;
    tensor.name = std::move(entry.name);
    set_type(tensor, entry.type, file.path());
    tensor.shape = std::move(entry.shape);
    if (tensor.shape.empty()) tensor.shape = {1};  // a scalar
    tensor.file = index;
    tensor.bytes = tensor_bytes(tensor, file.path());
    const std::string who = "tensor '" + tensor.name + "'";
    if (entry.offsets[0] != next) {
      fail(file.path(), who + " leaves a hole before it or overlaps another; the file is damaged");
    }
    tensor.offset = base::checked_add(data, next, file.path().string() + ": the begin of " + who);
    next = base::checked_add(next, tensor.bytes, file.path().string() + ": the end of " + who);
    if (entry.offsets[1] != next) {
      fail(file.path(), who + " is not as long as its shape and type; the file is damaged");
    }
    tensors.push_back(std::move(tensor));
  }
  if (next != file.size() - data) {
    fail(file.path(), "its tensors take " + std::to_string(next) + " bytes, but " +
                          std::to_string(file.size() - data) +
                          " follow the header; it is truncated or damaged, fetch it again");
  }
  return tensors;
}

constexpr std::size_t kMaxShards = 1024;

// The shards that an index names.
std::set<std::string> read_index(const std::filesystem::path& index) {
  const JsonFile file(index);
  const auto map = file.root().find_object("weight_map");
  if (!map) file.root().missing("weight_map");
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : map->members().items()) {
    // A name that leads out of the directory is none that a converter writes.
    const std::string name = shard.is_string() ? shard.get<std::string>() : "";
    if (name.empty() || name == ".." || name.find('/') != std::string::npos) {
      map->wrong(tensor, "is not in a file of this directory");
    }
    shards.insert(name);
  }
  if (shards.empty() || shards.size() > kMaxShards) {
    fail(index, "it names " + std::to_string(shards.size()) + " files, not 1 to " +
                    std::to_string(kMaxShards) + "; the file is damaged");
  }
  return shards;
}

bool has_checkpoint(const std::filesystem::path& directory) {
  return is_present(directory / "pytorch_model.bin") ||
         is_present(directory / "pytorch_model.bin.index.json");
}

}  // namespace

std::vector<TensorInfo> read_safetensors_header(const base::ReadFile& file, std::size_t index) {
  std::uint64_t length = 0;
  if (file.size() < sizeof length) fail(file.path(), "it is too short for a safetensors file");
  file.read(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > kMaxHeaderBytes || length > file.size() - sizeof length) {
    fail(file.path(), "its header claims " + std::to_string(length) +
                          " bytes; it is truncated, damaged or no safetensors file");
  }
  std::string text(length, '\0');
  file.read(sizeof length, std::as_writable_bytes(std::span(text)));
  if (!text.starts_with('{')) fail(file.path(), "its header does not begin with '{'");
  HeaderParser parser(file.path());
  json::sax_parse(text, &parser);
  return place_tensors(parser.take(), sizeof length + length, file, index);
}

TensorSource open_safetensors(const std::filesystem::path& directory) {
  const std::filesystem::path index = directory / "model.safetensors.index.json";
  std::set<std::string> names = {"model.safetensors"};
  if (!is_present(directory / *names.begin())) {
    if (!is_present(index)) {
      fail(directory, has_checkpoint(directory)
                          ? "it holds a PyTorch checkpoint (.bin), which incipit does not read, "
                            "since it may hold programs; convert it by " +
                                convert_command(directory)
                          : "there is no model.safetensors; incipit reads no other weights in a "
                            "directory, so convert the model to safetensors or GGUF");
    }
    names = read_index(index);
  }
  std::vector<base::ReadFile> files;
  std::vector<TensorInfo> tensors;
  for (const std::string& name : names) {
    base::ReadFile& file = files.emplace_back(directory / name);
    for (TensorInfo& tensor : read_safetensors_header(file, files.size() - 1)) {
      tensors.push_back(std::move(tensor));
    }
  }
  return TensorSource(std::move(files), std::move(tensors));
}

}  // namespace incipit::model
