// SPDX-License-Identifier: Apache-2.0
#include "model/tensor_source.h"

#include <array>
#include <cstdint>
#include <limits>
#include <utility>

#include "support/catch.h"
#include "support/memory_file.h"
#include "support/unreadable.h"

namespace incipit::model {
namespace {

using test::check_unreadable;

TensorInfo tensor(std::string name, std::uint64_t offset, std::uint64_t bytes,
                  std::size_t file = 0) {
  return {.name = std::move(name),
          .type = tensor::DType::kF16,
          .shape = {bytes / 2},
          .offset = offset,
          .bytes = bytes,
          .file = file};
}

std::uint64_t bytes_of(tensor::DType type, std::vector<std::uint64_t> shape) {
  return tensor_bytes({.name = "t", .type = type, .shape = std::move(shape)}, "file");
}

TEST_CASE("The bytes of a tensor follow from its type and shape") {
  CHECK(bytes_of(tensor::DType::kF32, {1}) == 4);
  CHECK(bytes_of(tensor::DType::kF16, {3, 5}) == 30);
  CHECK(bytes_of(tensor::DType::kBF16, {2, 2, 2, 2}) == 32);
  CHECK(bytes_of(tensor::DType::kQ8_0, {2, 64}) == 2 * 2 * 34);
  CHECK(bytes_of(tensor::DType::kQ4_0, {1, 32}) == 18);
  CHECK(bytes_of(tensor::DType::kQ4_1, {3, 32}) == 60);
  CHECK(bytes_of(tensor::DType::kQ5_1, {3, 64}) == 3 * 2 * 24);
  CHECK(bytes_of(tensor::DType::kQ6_K, {3, 512}) == 3 * 2 * 210);
}

TEST_CASE("A shape that cannot be is refused") {
  const auto check_refused = [](tensor::DType type, const std::vector<std::uint64_t>& shape) {
    check_unreadable("tensor 't'", [&] { return bytes_of(type, shape); });
  };
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  check_refused(tensor::DType::kF32, {});
  check_refused(tensor::DType::kF32, {1, 1, 1, 1, 1});
  check_refused(tensor::DType::kF32, {0});
  check_refused(tensor::DType::kF32, {4, 0});
  check_refused(tensor::DType::kF32, {kMax});
  check_refused(tensor::DType::kF32, {std::uint64_t{1} << 62});
  check_refused(tensor::DType::kF16, {std::uint64_t{1} << 32, std::uint64_t{1} << 32});
  check_refused(tensor::DType::kQ8_0, {kMax - 31});
  check_refused(tensor::DType::kQ8_0, {32, 31});
  check_refused(tensor::DType::kQ4_0, {32, 1});
  check_refused(tensor::DType::kQ4_K, {256, 32});
  check_refused(tensor::DType::kQ4_K, {kMax - 255});
}

TEST_CASE("Tensors are found by name and read from their file") {
  const test::MemoryFile first("--abcd"), second("efgh--");
  std::vector<base::ReadFile> files;
  files.emplace_back(first.path());
  files.emplace_back(second.path());
  const TensorSource source(std::move(files), {tensor("z", 2, 4), tensor("a", 0, 4, 1)});
  CHECK(source.tensors().size() == 2);
  CHECK(source.tensors()[0].name == "a");
  CHECK(source.find("m") == nullptr);
  CHECK(source.find("") == nullptr);
  CHECK(source.find("zz") == nullptr);
  REQUIRE(source.find("a") != nullptr);
  CHECK(source.file_of(*source.find("a")) == second.path());
  CHECK(source.first_file() == first.path());

  std::array<char, 4> bytes{};
  source.read(*source.find("z"), 0, std::as_writable_bytes(std::span(bytes)));
  CHECK(bytes == std::array{'a', 'b', 'c', 'd'});
  source.read(*source.find("a"), 0, std::as_writable_bytes(std::span(bytes)));
  CHECK(bytes == std::array{'e', 'f', 'g', 'h'});
  source.read(*source.find("a"), 1, std::as_writable_bytes(std::span(bytes).first(2)));
  CHECK(bytes == std::array{'f', 'g', 'g', 'h'});
}

TEST_CASE("Two tensors of one name are refused") {
  const test::MemoryFile file("abcdefgh");
  check_unreadable("two tensors 'a'", [&] {
    std::vector<base::ReadFile> files;
    files.emplace_back(file.path());
    return TensorSource(std::move(files), {tensor("a", 0, 4), tensor("b", 0, 4), tensor("a", 4, 4)})
        .tensors()
        .size();
  });
}

TEST_CASE("A file that has become shorter is an error when it is read") {
  test::MemoryFile file("abcdefgh");
  std::vector<base::ReadFile> files;
  files.emplace_back(file.path());
  const TensorSource source(std::move(files), {tensor("a", 4, 4)});
  file.resize(6);
  std::array<std::byte, 4> bytes{};
  check_unreadable("shorter", [&] {
    source.read(*source.find("a"), 0, bytes);
    return 0;
  });
}

TEST_CASE("A shape is written as people write it") {
  CHECK(to_string(std::vector<std::uint64_t>{576, 49152}) == "[576, 49152]");
  CHECK(to_string(std::vector<std::uint64_t>{7}) == "[7]");
}

}  // namespace
}  // namespace incipit::model
