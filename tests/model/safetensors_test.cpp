// SPDX-License-Identifier: Apache-2.0
#include "model/safetensors.h"

#include <cstdint>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/gguf_writer.h"
#include "support/memory_file.h"
#include "support/safetensors_writer.h"
#include "support/temporary_directory.h"
#include "support/unreadable.h"

namespace incipit::model {
namespace {

using test::check_unreadable;
using test::MemoryFile;
using test::SafetensorsWriter;
using test::write_file;

std::vector<TensorInfo> read(const std::string& bytes) {
  const MemoryFile file(bytes);
  return read_safetensors_header(base::ReadFile(file.path()), 3);
}

// A file of the given header and eight bytes of data.
void check_refused(const std::string& header, const std::string& part) {
  check_unreadable(part, [&] { return read(SafetensorsWriter::join(header, "12345678")); });
}

// One entry that takes the eight bytes.
std::string entry(const std::string& name) {
  return '"' + name + R"(": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]})";
}

TEST_CASE("The tensors of a file are read") {
  SafetensorsWriter writer;
  writer.add("a", "F32", {2, 3}, std::string(24, 'a'));
  writer.add("b", "BF16", {5}, std::string(10, 'b'));
  writer.add("c", "F16", {1, 2, 1, 2}, std::string(8, 'c'));
  const std::vector<TensorInfo> tensors = read(writer.bytes());
  REQUIRE(tensors.size() == 3);
  const std::uint64_t data = 8 + writer.header().size();
  CHECK(tensors[0].name == "a");
  CHECK(tensors[0].type == tensor::DType::kF32);
  CHECK(tensors[0].shape == std::vector<std::uint64_t>{2, 3});
  CHECK(tensors[0].offset == data);
  CHECK(tensors[0].bytes == 24);
  CHECK(tensors[0].file == 3);
  CHECK(tensors[1].type == tensor::DType::kBF16);
  CHECK(tensors[1].offset == data + 24);
  CHECK(tensors[2].type == tensor::DType::kF16);
  CHECK(tensors[2].shape == std::vector<std::uint64_t>{1, 2, 1, 2});
}

TEST_CASE("A scalar is a list of one, and types that nothing computes with are listed") {
  SafetensorsWriter writer;
  writer.add("scalar", "F32", {}, "abcd");
  writer.add("mask", "BOOL", {1, 3}, "efg");
  writer.add("indices", "I64", {2}, std::string(16, 'h'));
  const std::vector<TensorInfo> tensors = read(writer.bytes());
  REQUIRE(tensors.size() == 3);
  CHECK(tensors[0].shape == std::vector<std::uint64_t>{1});
  CHECK(tensors[0].bytes == 4);
  CHECK_FALSE(tensors[0].unread);
  REQUIRE(tensors[1].unread);
  CHECK(tensors[1].unread->name == "BOOL");
  CHECK(tensors[1].shape == std::vector<std::uint64_t>{1, 3});
  CHECK(tensors[1].bytes == 3);
  REQUIRE(tensors[2].unread);
  CHECK(tensors[2].file_bytes() == 16);
}

TEST_CASE("A header may hold metadata, entries in any order and spaces at its end") {
  const std::string header =
      R"({"b": {"shape": [1], "data_offsets": [4, 8], "dtype": "F32"},
          "__metadata__": {"format": "pt", "dtype": "x"},
          "a": {"dtype": "F16", "shape": [2], "data_offsets": [0, 4]}}   )";
  const auto tensors = read(SafetensorsWriter::join(header, "12345678"));
  REQUIRE(tensors.size() == 2);
  CHECK(tensors[0].name == "a");
  CHECK(tensors[1].name == "b");
}

TEST_CASE("The length of the header is held against the file and a cap") {
  check_unreadable("too short", [] { return read(""); });
  check_unreadable("too short", [] { return read("1234567"); });
  for (const std::uint64_t length :
       {std::uint64_t{3}, std::uint64_t{100'000'001}, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    check_unreadable("header claims", [&] { return read(test::raw_bytes(length) + "{}"); });
  }
}

TEST_CASE("The header is one strict JSON object") {
  check_refused("", "does not begin with '{'");
  check_refused(" {}", "does not begin with '{'");
  check_refused("[]", "does not begin with '{'");
  for (const char* header : {"{", "{}}", "{} {}", "{\"a\"}", "{\"a\":}", "{\"\xff\": {}}"}) {
    check_refused(header, "no valid JSON");
  }
  check_refused("{\"a\": " + std::string(100000, '['), "has a list where it does not belong");
  check_refused("{\"a\": " + std::string(100000, '{'), "no valid JSON");
  for (const char* value : {"1", "-1", "0.5", "true", "null", "\"text\"", "[]"}) {
    check_refused("{\"a\": " + std::string(value) + "}", "where it does not belong");
  }
  check_refused(R"({"__metadata__": {"a": 1}})", "where it does not belong");
  check_refused(R"({"__metadata__": {"a": {"b": "c"}}})", "where it does not belong");
  check_refused(R"({"__metadata__": {"a": []}})", "where it does not belong");
}

TEST_CASE("An entry has a dtype, a shape and two offsets, each once") {
  const auto refuse = [](const std::string& members, const std::string& part) {
    check_refused("{\"a\": {" + members + "}}", part);
  };
  const std::string type = R"("dtype": "F32")", shape = R"("shape": [2])";
  const std::string offsets = R"("data_offsets": [0, 8])";
  refuse("", "lacks");
  refuse(type + "," + shape, "lacks");
  refuse(type + "," + offsets, "lacks");
  refuse(shape + "," + offsets, "lacks");
  refuse(type + "," + type, "unexpected 'dtype'");
  refuse(shape + "," + shape, "unexpected 'shape'");
  refuse(offsets + "," + offsets, "unexpected 'data_offsets'");
  refuse(R"("strides": [1])", "unexpected 'strides'");
  refuse(R"("dtype": 1)", "where it does not belong");
  refuse(R"("dtype": ["F32"])", "where it does not belong");
  refuse(R"("shape": 2)", "where it does not belong");
  refuse(R"("shape": {})", "where it does not belong");
  refuse(R"("shape": "2")", "where it does not belong");
  refuse(R"("shape": [[2]])", "where it does not belong");
  refuse(R"("shape": [2.0])", "where it does not belong");
  refuse(R"("shape": [-2])", "where it does not belong");
  refuse(R"("shape": [1e400])", "no valid JSON");
  refuse(R"("shape": [1, 1, 1, 1, 2])", "too many numbers");
  refuse(R"("data_offsets": [0, 4, 4, 4, 8])", "too many numbers");
  refuse(type + "," + shape + R"(, "data_offsets": [0, 4, 8])", "lacks");
  refuse(type + "," + shape + R"(, "data_offsets": [0])", "lacks");
}

TEST_CASE("A tensor that comes twice is refused") {
  check_refused("{" + entry("a") + "," + entry("a") + "}", "two 'a'");
  check_refused(R"({"__metadata__": {}, "__metadata__": {}})", "two '__metadata__'");
}

TEST_CASE("A file has a limited number of tensors and an index of files") {
  std::string header = "{";
  for (std::size_t i = 0; i <= kMaxTensors; ++i) {
    if (i > 0) header += ",";
    header += entry(std::to_string(i));
  }
  check_refused(header + "}", "too many tensors");

  const test::TemporaryDirectory directory;
  std::string map = R"({"weight_map": {"x": "x")";
  for (int i = 0; i < 1024; ++i) {
    const std::string name = std::to_string(i);
    map += ",\"" + name + "\":\"" + name + '"';
  }
  write_file(directory.path() / "model.safetensors.index.json", map + "}}");
  check_unreadable("names 1025 files", [&] { return open_safetensors(directory.path()); });
}

TEST_CASE("The data is covered without holes, overlaps or a rest") {
  const auto refuse = [](const std::string& offsets, const std::string& part) {
    check_refused(R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": )" + offsets + "}}",
                  part);
  };
  refuse("[0, 4]", "but 8 follow");
  refuse("[4, 8]", "leaves a hole");
  refuse("[0, 8]", "not as long");
  refuse("[0, 0]", "not as long");
  refuse("[4, 0]", "leaves a hole");
  refuse("[18446744073709551612, 18446744073709551615]", "leaves a hole");
  check_refused("{" + entry("a") + "," + entry("b") + "}", "overlaps");
  check_refused("{}", "but 8 follow");
  const std::string beyond = R"({"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}})";
  check_refused(beyond, "its tensors take 12 bytes");
}

TEST_CASE("Shapes that cannot be and types that are not known are refused") {
  const auto refuse = [](const std::string& type, const std::string& shape,
                         const std::string& part) {
    check_refused("{\"a\": {\"dtype\": \"" + type + "\", \"shape\": " + shape +
                      ", \"data_offsets\": [0, 8]}}",
                  part);
  };
  refuse("F32", "[]", "not as long");
  refuse("U8", "[7]", "not as long");
  refuse("I64", "[2305843009213693952]", "too large");
  refuse("F32", "[0]", "is empty");
  refuse("F32", "[4294967296, 4294967296]", "too large");
  refuse("F32", "[9223372036854775808, 2]", "too large");
  refuse("F32", "[18446744073709551616]", "where it does not belong");
  for (const char* type : {"F4", "Q8", "", "f32"}) {
    refuse(type, "[1]", "the type of tensor 'a' is " + std::string(type));
  }
}

TEST_CASE("A directory has one file, or shards that an index names") {
  const test::TemporaryDirectory directory;
  const auto index = directory.path() / "model.safetensors.index.json";
  const auto open = [&] { return open_safetensors(directory.path()).tensors().size(); };
  check_unreadable("no model.safetensors", open);

  SafetensorsWriter first, second;
  first.add("x", "F32", {1}, "1234");
  second.add("y", "F32", {1}, "5678");
  first.write(directory.path() / "one.safetensors");
  second.write(directory.path() / "two.safetensors");
  write_file(index, R"({"weight_map": {"x": "one.safetensors", "y": "two.safetensors"}})");
  const TensorSource source = open_safetensors(directory.path());
  REQUIRE(source.find("y") != nullptr);
  CHECK(source.file_of(*source.find("y")) == directory.path() / "two.safetensors");
  std::string bytes(4, '\0');
  source.read(*source.find("y"), 0, std::as_writable_bytes(std::span(bytes)));
  CHECK(bytes == "5678");

  first.write(directory.path() / "two.safetensors");
  check_unreadable("two tensors 'x'", open);
  write_file(index, R"({"weight_map": {"x": "one.safetensors", "y": "three.safetensors"}})");
  check_unreadable("three.safetensors", open);

  first.write(directory.path() / "model.safetensors");
  CHECK(open() == 1);
}

TEST_CASE("An index names files of its own directory only") {
  const test::TemporaryDirectory directory;
  const auto index = directory.path() / "model.safetensors.index.json";
  const auto open = [&] { return open_safetensors(directory.path()).tensors().size(); };
  for (const char* name : {"../x.safetensors", "/etc/passwd", "..", "", "a/b"}) {
    write_file(index, R"({"weight_map": {"x": ")" + std::string(name) + "\"}}");
    check_unreadable("is not in a file of this directory", open);
  }
  write_file(index, R"({"weight_map": {"x": 1}})");
  check_unreadable("is not in a file of this directory", open);
  write_file(index, R"({"weight_map": {}})");
  check_unreadable("names 0 files", open);
  write_file(index, "{}");
  check_unreadable("'weight_map' is missing", open);
}

}  // namespace
}  // namespace incipit::model
