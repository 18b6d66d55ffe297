// SPDX-License-Identifier: Apache-2.0
// Files that are cut off anywhere, and files with any byte changed: each gives an Error that says
// so, or a model that loads. Run under the sanitizers.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <utility>

#include "base/file.h"
#include "incipit/error.h"
#include "model/model_file.h"
#include "support/catch.h"
#include "support/largest_allocation.h"
#include "support/memory_file.h"
#include "support/recording_device.h"
#include "support/temporary_directory.h"
#include "support/tiny_model.h"
#include "text/tokenizer.h"

namespace incipit::model {
namespace {

using test::MemoryFile;
using test::TinyModel;

enum class Outcome { kLoaded, kRefused };

// Opens, makes the tokenizer and loads, as an Engine does. Any other exception than an
// Error{kModelUnreadable}, and a message that says nothing, fail the test.
Outcome try_to_load(const std::filesystem::path& path) {
  try {
    const auto model = open_model(path);
    const text::Tokenizer tokenizer(model->tokenizer());
    test::RecordingDevice device;
    const ModelWeights weights = model->load_weights(device, {});
    return Outcome::kLoaded;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kModelUnreadable || std::string(error.what()).size() < 20) throw;
    return Outcome::kRefused;
  }
}

// What a file of a few kilobytes may make us allocate at once.
constexpr std::size_t kMaxAllocation = std::size_t{1} << 20;
// What lies in front of the weights of a smallest model, at most.
constexpr std::size_t kMaxHeader = 4000;

void replace_bytes(std::string& bytes, std::mt19937& random) {
  const std::size_t count = 1 + random() % 3;
  for (std::size_t i = 0; i < count; ++i) {
    char& byte = bytes[random() % bytes.size()];
    switch (random() % 4) {
      case 0:
        byte = static_cast<char>(random());
        break;
      case 1:
        byte = static_cast<char>(byte ^ (1 << (random() % 8)));
        break;
      case 2:
        byte = '\xff';
        break;
      default:
        byte = '\0';
    }
  }
}

// The header is where a change can do harm, so it gets most of them.
void change_bytes(std::string& bytes, std::size_t header, std::mt19937& random) {
  if (random() % 8 == 0) return replace_bytes(bytes, random);
  std::string front = bytes.substr(0, header);
  replace_bytes(front, random);
  bytes.replace(0, header, front);
}

TEST_CASE("A GGUF file that is cut off anywhere is refused") {
  const auto type = GENERATE(tensor::DType::kQ4_1, tensor::DType::kQ5_0);
  const std::string bytes = test::make_smallest_model(type).gguf().bytes();
  MemoryFile file(bytes);
  REQUIRE(try_to_load(file.path()) == Outcome::kLoaded);
  test::forget_allocations();
  for (std::size_t size = bytes.size(); size-- > 0;) {
    file.resize(size);
    if (try_to_load(file.path()) != Outcome::kRefused) FAIL("loaded with " << size << " bytes");
  }
  CHECK(test::largest_allocation() < kMaxAllocation);
}

TEST_CASE("A GGUF file with changed bytes is refused or loads") {
  struct Damage {
    tensor::DType type;
    std::size_t changes;
  };
  const auto [type, changes] =
      GENERATE(Damage{tensor::DType::kQ8_0, 10000}, Damage{tensor::DType::kQ5_1, 3000},
               Damage{tensor::DType::kQ4_K, 1500}, Damage{tensor::DType::kQ6_K, 1500});
  const std::string original = test::make_smallest_model(type).gguf().bytes();
  const std::size_t header = std::min(original.size() - original.size() / 2, kMaxHeader);
  MemoryFile file(original);
  std::mt19937 random(20240229);
  std::size_t refused = 0;
  test::forget_allocations();
  for (std::size_t i = 0; i < changes; ++i) {
    std::string bytes = original;
    change_bytes(bytes, header, random);
    file.write(0, bytes);
    INFO("change " << i);
    if (try_to_load(file.path()) == Outcome::kRefused) ++refused;
  }
  CHECK(refused > changes / 10);
  CHECK(refused < changes - 1);
  CHECK(test::largest_allocation() < kMaxAllocation);
}

// A model's directory, to be damaged.
class Directory {
 public:
  explicit Directory(const TinyModel& model) { model.write_hugging_face(path()); }
  const std::filesystem::path& path() const { return directory_.path(); }
  std::string read(const char* name) const {
    return base::read_text_file(path() / name, std::uint64_t{1} << 20);
  }
  // In place: to cut a file off and write it anew makes some file systems wait for the disk.
  void overwrite(const char* name, const std::string& bytes) const {
    std::fstream stream(path() / name, std::ios::binary | std::ios::in | std::ios::out);
    stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    REQUIRE(stream.flush().good());
  }

 private:
  test::TemporaryDirectory directory_;
};

TEST_CASE("A file of a directory that is cut off anywhere is refused") {
  const Directory directory(test::make_smallest_model(tensor::DType::kBF16));
  REQUIRE(try_to_load(directory.path()) == Outcome::kLoaded);
  test::forget_allocations();
  for (const char* name : {"model.safetensors", "config.json", "tokenizer.json",
                           "generation_config.json", "tokenizer_config.json"}) {
    const std::string bytes = directory.read(name);
    for (std::size_t size = bytes.size(); size-- > 0;) {
      std::filesystem::resize_file(directory.path() / name, size);
      if (try_to_load(directory.path()) != Outcome::kRefused) {
        FAIL(name << " loaded with " << size << " bytes");
      }
    }
    directory.overwrite(name, bytes);
  }
  CHECK(test::largest_allocation() < kMaxAllocation);
}

TEST_CASE("A directory with changed bytes is refused or loads") {
  const Directory directory(test::make_smallest_model(tensor::DType::kF16));
  std::mt19937 random(4711);
  std::size_t refused = 0;
  test::forget_allocations();
  const std::pair<const char*, int> files[] = {
      {"model.safetensors", 6000}, {"config.json", 2000}, {"tokenizer.json", 2000}};
  for (const auto& [name, changes] : files) {
    const std::string original = directory.read(name);
    const std::size_t header = std::min(original.size(), std::size_t{1500});
    for (int i = 0; i < changes; ++i) {
      std::string bytes = original;
      change_bytes(bytes, header, random);
      directory.overwrite(name, bytes);
      INFO(name << ", change " << i);
      if (try_to_load(directory.path()) == Outcome::kRefused) ++refused;
    }
    directory.overwrite(name, original);
  }
  CHECK(refused > 1000);
  CHECK(refused < 9999);
  // A token may have an id so high that the list of tokens takes 64 MiB.
  CHECK(test::largest_allocation() < kMaxAllocation * 65);
}

}  // namespace
}  // namespace incipit::model
