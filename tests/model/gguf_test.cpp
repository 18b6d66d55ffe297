// SPDX-License-Identifier: Apache-2.0
#include "model/gguf.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/gguf_writer.h"
#include "support/memory_file.h"
#include "support/unreadable.h"
#include "support/weight_types.h"

namespace incipit::model {
namespace {

using test::check_unreadable;
using test::ggml_type;
using test::gguf_array;
using test::gguf_string;
using test::GgufWriter;
using test::MemoryFile;
using test::raw_bytes;

constexpr std::uint64_t kMax64 = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint32_t kMax32 = std::numeric_limits<std::uint32_t>::max();

// Two tensors of 64 and 68 bytes.
GgufWriter small_file() {
  GgufWriter file;
  file.set_u32("answer", 42).set_string("name", "small").set_strings("words", {"a", "", "bc"});
  file.tensors.push_back({"first", {4, 4}, ggml_type(tensor::DType::kF32), std::string(64, 'x')});
  file.tensors.push_back(
      {"second", {32, 2}, ggml_type(tensor::DType::kQ8_0), std::string(68, 'y')});
  return file;
}

GgufHeader read(const std::string& bytes) {
  const MemoryFile file(bytes);
  return read_gguf_header(base::ReadFile(file.path()));
}
GgufHeader read(const GgufWriter& file) { return read(file.bytes()); }

void check_refused(const GgufWriter& file, const std::string& part) {
  check_unreadable(part, [&] { return read(file); });
}

TEST_CASE("A GGUF header is read in versions 2 and 3") {
  GgufWriter file = small_file();
  file.version = GENERATE(2u, 3u);
  const GgufHeader header = read(file);
  CHECK(header.metadata.get_count("answer") == 42);
  CHECK(header.metadata.get_text("name") == "small");
  CHECK(header.metadata.get_texts("words") == std::vector<std::string>{"a", "", "bc"});

  REQUIRE(header.tensors.size() == 2);
  const std::uint64_t end = file.bytes().size();
  CHECK(header.tensors[0].name == "first");
  CHECK(header.tensors[0].type == tensor::DType::kF32);
  CHECK(header.tensors[0].shape == std::vector<std::uint64_t>{4, 4});
  CHECK(header.tensors[0].bytes == 64);
  CHECK(header.tensors[0].offset == end - 68 - 64);
  CHECK(header.tensors[1].shape == std::vector<std::uint64_t>{2, 32});
  CHECK(header.tensors[1].bytes == 68);
  CHECK(header.tensors[1].offset == end - 68);
}

TEST_CASE("A GGUF file may hold nothing at all") {
  const GgufHeader header = read(GgufWriter());
  CHECK(header.tensors.empty());
  CHECK_FALSE(header.metadata.has("general.alignment"));
}

TEST_CASE("A header that is longer than a piece stays where it was read") {
  std::vector<std::string> words;
  for (int i = 0; i < 60000; ++i) words.push_back("word " + std::to_string(i));
  GgufWriter file;
  file.set_string("before", "here").set_strings("words", words).set_string("after", "there");
  const GgufHeader header = read(file);
  CHECK(header.metadata.get_text("before") == "here");
  CHECK(header.metadata.get_texts("words") == words);
  CHECK(header.metadata.get_text("after") == "there");
}

TEST_CASE("What is no little-endian GGUF of version 2 or 3 is refused") {
  check_unreadable("no GGUF file", [] { return read(std::string()); });
  check_unreadable("no GGUF file", [] { return read("GGU"); });
  check_unreadable("no GGUF file", [] { return read("PK\3\4 a zip archive"); });
  check_unreadable("does not end within 4 bytes", [] { return read("GGUF"); });
  GgufWriter file = small_file();
  for (const std::uint32_t version : {0u, 1u, 4u, kMax32}) {
    file.version = version;
    check_refused(file, "GGUF version " + std::to_string(version));
  }
  file.version = 0x03000000;
  check_refused(file, "big-endian");
}

TEST_CASE("Counts of a header are held against what is left of the file") {
  for (const std::uint64_t count : {std::uint64_t{9}, std::uint64_t{1} << 61, kMax64}) {
    GgufWriter tensors = small_file();
    tensors.claimed_tensors = count;
    check_refused(tensors, "claims " + std::to_string(count) + " tensors");
    GgufWriter entries = small_file();
    entries.claimed_entries = count;
    check_refused(entries,
                  count == 9 ? "it is truncated or damaged" : "claims " + std::to_string(count));
  }
  GgufWriter few = small_file();
  few.claimed_entries = 2;  // the third entry is read as a tensor
  check_refused(few, "");
}

TEST_CASE("The length of a string is held against what is left of the file") {
  for (const std::uint64_t length : {std::uint64_t{1} << 20, std::uint64_t{1} << 63, kMax64}) {
    GgufWriter value = small_file();
    value.set("long", test::GgufType::kString, raw_bytes(length));
    check_refused(value, "");
    GgufWriter element = small_file();
    element.set("long", test::GgufType::kArray,
                gguf_array(test::GgufType::kString, 1, raw_bytes(length)));
    check_refused(element, "");
  }
}

TEST_CASE("The length of a list cannot wrap around") {
  for (const std::uint64_t count :
       {std::uint64_t{1} << 61, (std::uint64_t{1} << 61) + 1, std::uint64_t{1} << 63, kMax64}) {
    for (const auto type : {test::GgufType::kU64, test::GgufType::kF32, test::GgufType::kU8,
                            test::GgufType::kString}) {
      GgufWriter file = small_file();
      file.set("list", test::GgufType::kArray, gguf_array(type, count, std::string(8, '\0')));
      check_refused(file, "");
    }
  }
}

TEST_CASE("Unknown types of values and lists of lists are refused") {
  for (const std::uint32_t type : {13u, 255u, kMax32}) {
    GgufWriter value = small_file();
    value.entries.push_back({"odd", type, std::string(8, '\0')});
    check_refused(value, "unknown type " + std::to_string(type));
    GgufWriter element = small_file();
    element.set("odd", test::GgufType::kArray, raw_bytes(type) + raw_bytes(std::uint64_t{0}));
    check_refused(element, "unknown type " + std::to_string(type));
  }
  GgufWriter nested = small_file();
  nested.set("nested", test::GgufType::kArray,
             gguf_array(test::GgufType::kArray, 1,
                        gguf_array(test::GgufType::kU8, 1, std::string(1, '\0'))));
  check_refused(nested, "list of lists");
}

TEST_CASE("A key that comes twice is refused") {
  GgufWriter file = small_file();
  file.entries.push_back(file.entries.front());
  check_refused(file, "two metadata entries 'answer'");
}

TEST_CASE("A tensor has one to four dimensions, none of them zero") {
  GgufWriter file = small_file();
  std::vector<std::uint64_t>& dims = file.tensors[0].dims;
  dims = {4, 1, 2, 2};
  CHECK(read(file).tensors[0].shape == std::vector<std::uint64_t>{2, 2, 1, 4});
  dims = {};
  check_refused(file, "0 dimensions");
  dims = {4, 1, 1, 2, 2};
  check_refused(file, "5 dimensions");
  dims = std::vector<std::uint64_t>(1000, 1);
  check_refused(file, "1000 dimensions");
  for (std::size_t i = 0; i < 2; ++i) {
    dims = {4, 4};
    dims[i] = 0;
    check_refused(file, "tensor 'first'");
  }
}

TEST_CASE("The size of a tensor cannot wrap around") {
  const std::uint64_t half = std::uint64_t{1} << 32;
  const std::vector<std::vector<std::uint64_t>> shapes = {
      {half, half},
      {half, half / 4},
      {kMax64},
      {std::uint64_t{1} << 62, 4},
      {16, kMax64},
      {half, 2, half, 2},
      {std::uint64_t{1} << 63, 1, 1, 2},
  };
  for (const auto& shape : shapes) {
    GgufWriter file = small_file();
    file.tensors[0].dims = shape;
    check_refused(file, "tensor 'first'");
    file.tensors[0].type = ggml_type(tensor::DType::kQ8_0);
    check_refused(file, "");
  }
}

TEST_CASE("A row of quantised elements is made of whole blocks") {
  GgufWriter file = small_file();
  file.tensors[1].dims = {31, 2};
  check_refused(file, "blocks of 32");
  file.tensors[1].dims = {2, 32};  // as many elements, cut otherwise
  check_refused(file, "blocks of 32");
}

TEST_CASE("Every element format of weights is read") {
  for (const tensor::DType type : test::kWeightTypes) {
    const std::size_t bytes = tensor::row_bytes(type, 256);
    GgufWriter file;
    file.tensors.push_back({"rows", {256, 3}, ggml_type(type), std::string(3 * bytes, 'x')});
    const TensorInfo tensor = read(file).tensors.at(0);
    CHECK(tensor.type == type);
    CHECK(tensor.bytes == 3 * bytes);
    file.tensors[0].data.pop_back();
    check_refused(file, "it is truncated");
    if (!tensor::is_quantized(type)) continue;
    file.tensors[0].dims = {24, 32};  // as many elements, cut otherwise
    check_refused(file, "blocks of " + std::to_string(tensor::block_elements(type)));
  }
}

TEST_CASE("A tensor lies in the file, aligned, and overlaps no other") {
  GgufWriter file = small_file();
  std::optional<std::uint64_t>& offset = file.tensors[1].offset;
  offset = 64 + 32;
  check_refused(file, "beyond the file's end");
  for (const std::uint64_t far : {std::uint64_t{1} << 40, kMax64 - 31}) {
    offset = far;
    check_refused(file, "tensor 'second'");
  }
  offset = 65;
  check_refused(file, "not aligned to 32 bytes");
  for (const std::uint64_t inside : {0u, 32u}) {
    offset = inside;
    check_refused(file, "overlap");
  }
  offset = {};
  file.tensors[1].data.pop_back();
  check_refused(file, "it is truncated");
}

TEST_CASE("Tensors may come in any order and leave room between them") {
  GgufWriter file = small_file();
  file.tensors[0].offset = 1024;
  file.tensors[1].offset = 128;
  file.tail.assign(2048, '\0');
  const GgufHeader header = read(file);
  CHECK(header.tensors[0].offset - header.tensors[1].offset == 1024 - 128);
}

TEST_CASE("The alignment is a power of two within reason") {
  for (const std::uint32_t alignment : {8u, 32u, 4096u}) {
    GgufWriter file = small_file();
    file.alignment = alignment;
    file.set_u32("general.alignment", alignment);
    const GgufHeader header = read(file);
    CHECK(header.tensors[0].offset % alignment == 0);
    CHECK(header.tensors[1].offset % alignment == 0);
  }
  for (const std::uint32_t alignment : {0u, 1u, 4u, 24u, 48u, 1u << 21, 1u << 31, kMax32}) {
    GgufWriter file = small_file();
    file.set_u32("general.alignment", alignment);
    check_refused(file, "general.alignment is " + std::to_string(alignment));
  }
  GgufWriter text = small_file();
  text.set_string("general.alignment", "32");
  check_refused(text, "general.alignment");
}

TEST_CASE("A format without kernels is read as one that has some") {
  struct Stored {
    std::uint32_t type;
    std::size_t elements, bytes;
    const char* name;
  };
  for (const Stored& stored : {Stored{10, 256, 84, "Q2_K"}, Stored{11, 256, 110, "Q3_K"},
                               Stored{15, 256, 292, "Q8_K"}, Stored{20, 32, 18, "IQ4_NL"}}) {
    CAPTURE(stored.name);
    GgufWriter file;
    const std::size_t rows = 3, blocks = 2;
    std::string data;
    for (std::size_t i = 0; i < rows * blocks * stored.bytes; ++i) {
      data += static_cast<char>(i * 37 % 120);  // finite scales
    }
    file.tensors.push_back({"first", {stored.elements * blocks, rows}, stored.type, data});
    file.tensors.push_back({"second", {1}, 0, "1234"});
    const test::MemoryFile memory(file.bytes());
    std::vector<base::ReadFile> files;
    files.emplace_back(memory.path());
    GgufHeader header = read_gguf_header(files.front());
    const TensorSource source(std::move(files), std::move(header.tensors));
    const TensorInfo& tensor = *source.find("first");
    CHECK(tensor.type == tensor::DType::kQ8_0);
    CHECK(tensor.bytes == rows * blocks * stored.elements / 32 * 34);
    CHECK(tensor.file_bytes() == data.size());
    CHECK(converted_types(source.tensors()) == std::string(stored.name) + " as Q8_0");
    // Row by row and as a whole, it is what the blocks become.
    std::vector<std::byte> whole(tensor.bytes), row(tensor.bytes / rows);
    source.read(tensor, 0, whole);
    std::vector<tensor::BlockQ8_0> expected(tensor.bytes / sizeof(tensor::BlockQ8_0));
    tensor::convert_blocks(*tensor.stored, base::as_bytes(data).data(), expected);
    CHECK(std::memcmp(whole.data(), expected.data(), whole.size()) == 0);
    source.read(tensor, row.size(), row);
    CHECK(std::memcmp(row.data(), whole.data() + row.size(), row.size()) == 0);

    file.tensors[0].dims[0] = stored.elements / 2;
    check_refused(
        file, std::string(stored.name) + " comes in blocks of " + std::to_string(stored.elements));
    file.tensors[0].dims[0] = stored.elements * blocks;
    file.tensors[0].dims[1] = 1u << 20;
    check_refused(file, "beyond the file's end");
  }
}

TEST_CASE("An element format that is not read is named with its tensor") {
  GgufWriter file = small_file();
  file.tensors[0].type = 23;
  check_refused(file,
                "type of tensor 'first' is IQ4_XS; incipit reads F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, "
                "Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, Q8_K, IQ4_NL, BF16, so take");
  for (const std::uint32_t type : {4u, 5u, 40u, 1000u, kMax32}) {
    file.tensors[0].type = type;
    check_refused(file, "type of tensor 'first' is unknown (" + std::to_string(type) + ")");
  }
}

}  // namespace
}  // namespace incipit::model
