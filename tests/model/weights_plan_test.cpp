// SPDX-License-Identifier: Apache-2.0
#include "model/weights_plan.h"

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "incipit/inspect.h"
#include "model/model_file.h"
#include "model/safetensors.h"
#include "support/catch.h"
#include "support/gguf_writer.h"
#include "support/recording_device.h"
#include "support/safetensors_writer.h"
#include "support/temporary_directory.h"
#include "support/unreadable.h"

namespace incipit::model {
namespace {

using test::RecordingDevice;
using test::SafetensorsWriter;

std::filesystem::path fixture(const std::string& name) {
  return std::filesystem::path(INCIPIT_TEST_DATA) / "reference" / name;
}

// Each weight's bytes, in an order of its own.
std::vector<std::string> parts_of(const ModelWeights& weights) {
  std::vector<std::string> parts;
  const auto matrix = [&](const std::unique_ptr<device::Weight>& weight) {
    parts.push_back(weight ? RecordingDevice::recorded(weight).bytes : "");
  };
  const auto vector = [&](const device::Buffer& buffer) {
    parts.emplace_back(reinterpret_cast<const char*>(buffer.data()), buffer.bytes());
  };
  const auto norm = [&](const NormWeights& both) {
    vector(both.weight);
    vector(both.bias);
  };
  for (const auto* weight : {&weights.embedding, &weights.positions, &weights.output}) {
    matrix(*weight);
  }
  norm(weights.embedding_norm);
  norm(weights.final_norm);
  for (const LayerWeights& layer : weights.layers) {
    for (const auto* weight :
         {&layer.q, &layer.k, &layer.v, &layer.output, &layer.gate, &layer.up, &layer.down}) {
      matrix(*weight);
    }
    for (const auto* bias : {&layer.q_bias, &layer.k_bias, &layer.v_bias, &layer.output_bias,
                             &layer.up_bias, &layer.down_bias}) {
      vector(*bias);
    }
    for (const auto* both : {&layer.attention_norm, &layer.after_attention_norm, &layer.ffn_norm,
                             &layer.after_ffn_norm, &layer.q_norm, &layer.k_norm}) {
      norm(*both);
    }
  }
  return parts;
}

ModelWeights load(const std::filesystem::path& path) {
  RecordingDevice device;
  return open_model(path)->load_weights(device, {});
}

struct Extra {
  std::string name;
  std::string type = "F32";
  std::vector<std::size_t> shape = {1, 1, 2, 2};
  std::size_t bytes = 16;
};

// A directory's tensors under other names, with its other files as they are.
void rename_tensors(const std::filesystem::path& from, const std::filesystem::path& to,
                    const std::function<std::string(const std::string&)>& rename,
                    const std::vector<Extra>& extra = {}) {
  std::filesystem::create_directories(to);
  for (const char* file : {"config.json", "tokenizer.json"}) {
    std::filesystem::copy_file(from / file, to / file);
  }
  const TensorSource source = open_safetensors(from);
  SafetensorsWriter writer;
  for (const TensorInfo& tensor : source.tensors()) {
    std::string bytes(tensor.bytes, '\0');
    source.read(tensor, 0, std::as_writable_bytes(std::span(bytes)));
    writer.add(rename(tensor.name), test::safetensors_type(tensor.type),
               {tensor.shape.begin(), tensor.shape.end()}, bytes);
  }
  for (const Extra& tensor : extra) {
    writer.add(tensor.name, tensor.type, tensor.shape, std::string(tensor.bytes, '\0'));
  }
  writer.write(to / "model.safetensors");
}

// Writes a GPT-2 as wide as 3/4 of the fixture, whose tensors are of that type, and returns their
// bytes: numbers that are finite and other than their neighbours.
std::map<std::string, std::string> write_narrow_gpt2(const std::filesystem::path& to,
                                                     const std::string& type) {
  const std::filesystem::path from = fixture("tiny-gpt2");
  std::filesystem::copy_file(from / "tokenizer.json", to / "tokenizer.json");
  auto config = nlohmann::json::parse(base::read_text_file(from / "config.json", 1 << 20));
  config["n_embd"] = 24;
  test::write_file(to / "config.json", config.dump());
  std::map<std::string, std::string> stored;
  SafetensorsWriter writer;
  const TensorSource source = open_safetensors(from);
  for (const TensorInfo& tensor : source.tensors()) {
    std::vector<std::size_t> shape(tensor.shape.begin(), tensor.shape.end());
    std::size_t elements = 1;
    for (std::size_t& dimension : shape) {
      if (dimension == 32 || dimension == 96 || dimension == 128) dimension = dimension / 4 * 3;
      elements *= dimension;
    }
    std::string& bytes = stored[tensor.name];
    for (std::size_t i = 0; i < elements; ++i) {
      if (type == "F32") bytes += {static_cast<char>(i % 256), static_cast<char>(i / 256)};
      bytes += {static_cast<char>(i % 251), static_cast<char>(i % 61)};
    }
    writer.add(tensor.name, type, shape, bytes);
  }
  writer.write(to / "model.safetensors");
  return stored;
}

TEST_CASE("Both files of a model give the same parts, however they lie in its tensors") {
  // GPT-2's are transposed in one of them, BLOOM's lie head by head, Gemma's norms count from one.
  const std::string name = GENERATE(as<std::string>(), "tiny-gpt2", "tiny-bloom", "tiny-gemma3");
  const ModelWeights directory = load(fixture(name));
  const ModelWeights gguf = load(fixture(name + "-gguf/model.gguf"));
  CHECK(parts_of(directory) == parts_of(gguf));
  CHECK(directory.parameters == gguf.parameters);
}

TEST_CASE("An OPT of 350 million has matrices around it and no norm behind") {
  const ModelWeights weights = load(fixture("tiny-opt-post"));
  REQUIRE(weights.project_in != nullptr);
  REQUIRE(weights.project_out != nullptr);
  CHECK(weights.project_in->rows() == 32);
  CHECK(weights.project_in->columns() == 16);
  CHECK(weights.project_out->rows() == 16);
  CHECK(weights.embedding->columns() == 16);
  CHECK(weights.positions->rows() == 514);
  CHECK(weights.final_norm.weight.bytes() == 0);
  CHECK(load(fixture("tiny-opt")).project_in == nullptr);
}

TEST_CASE("A prefix that all tensors lack is not needed, and masks are not either") {
  const test::TemporaryDirectory directory;
  const auto without = [](const std::string& name) { return name.substr(name.find(".") + 1); };
  rename_tensors(fixture("tiny-gpt2"), directory.path() / "plain", without,
                 {{"h.0.attn.bias", "BOOL", {1, 1, 2, 2}, 4},
                  {"h.0.attn.masked_bias", "F32", {}, 4},
                  {"h.1.attn.bias"},
                  {"h.1.attn.masked_bias", "U8", {}, 1}});
  CHECK(parts_of(load(directory.path() / "plain")) == parts_of(load(fixture("tiny-gpt2"))));
  const ModelReport report = inspect_model(directory.path() / "plain");
  CHECK(report.problems.empty());
  CHECK(report.tensors.at(0).name == "h.0.attn.bias");
  CHECK(report.tensors.at(0).type == "BOOL");

  const auto some = [&](const std::string& name) {
    return name.ends_with("bias") ? name : without(name);
  };
  rename_tensors(fixture("tiny-gpt2"), directory.path() / "mixed", some);
  test::check_unreadable("bias', which a gpt2 model needs, is missing",
                         [&] { return load(directory.path() / "mixed").parameters; });
  const auto same = [](const std::string& name) { return name; };
  rename_tensors(fixture("tiny-gpt2"), directory.path() / "more", same,
                 {{"transformer.h.0.adapter", "I8", {16}, 16}});
  test::check_unreadable("'transformer.h.0.adapter' has no place",
                         [&] { return load(directory.path() / "more").parameters; });
}

TEST_CASE("A type that nothing computes with is refused where the model needs the tensor") {
  const test::TemporaryDirectory directory;
  const auto moved = [](const std::string& name) {
    return name == "model.norm.weight" ? "x" : name;
  };
  rename_tensors(fixture("tiny-llama"), directory.path() / "f64", moved,
                 {{"model.norm.weight", "F64", {32}, 256}});
  test::check_unreadable("the type of tensor 'model.norm.weight' is F64; incipit computes with",
                         [&] { return load(directory.path() / "f64").parameters; });
}

TEST_CASE("A transposed tensor is turned, whatever its type and however long its rows") {
  const std::string type = GENERATE(as<std::string>(), "F32", "F16", "BF16");
  const std::size_t element = type == "F32" ? 4 : 2;
  const test::TemporaryDirectory directory;
  const auto stored = write_narrow_gpt2(directory.path(), type);
  const ModelWeights weights = load(directory.path());
  const auto check = [&](const std::unique_ptr<device::Weight>& weight, const std::string& name,
                         std::size_t first, std::size_t outputs) {
    const RecordingDevice::Weight& turned = RecordingDevice::recorded(weight);
    const std::string& tensor = stored.at("transformer.h.1." + name + ".weight");
    std::string expected;
    for (std::size_t row = 0; row < turned.rows(); ++row) {
      for (std::size_t column = 0; column < turned.columns(); ++column) {
        expected += tensor.substr((column * outputs + first + row) * element, element);
      }
    }
    CHECK(turned.bytes == expected);
  };
  const LayerWeights& layer = weights.layers.at(1);
  check(layer.q, "attn.c_attn", 0, 72);
  check(layer.k, "attn.c_attn", 24, 72);
  check(layer.v, "attn.c_attn", 48, 72);
  check(layer.up, "mlp.c_fc", 0, 96);
  check(layer.down, "mlp.c_proj", 0, 24);
}

TEST_CASE("Rows are chosen in runs") {
  const RowChoice heads = {.first = 4, .count = 6, .run = 2, .stride = 10};
  const std::vector<std::uint64_t> expected = {4, 5, 14, 15, 24, 25};
  for (std::size_t r = 0; r < expected.size(); ++r) CHECK(heads.row(r) == expected[r]);
}

}  // namespace
}  // namespace incipit::model
