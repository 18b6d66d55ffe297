// SPDX-License-Identifier: Apache-2.0
#include "model/weights_loader.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "model/model_file.h"
#include "support/catch.h"
#include "support/quantize.h"
#include "support/recording_device.h"
#include "support/temporary_directory.h"
#include "support/tiny_model.h"
#include "support/unreadable.h"
#include "support/weight_types.h"

namespace incipit::model {
namespace {

using tensor::DType;
using test::check_unreadable;
using test::Family;
using test::GgufWriter;
using test::RecordingDevice;
using test::TinyModel;

// A model's file, opened and loaded.
struct Loaded {
  explicit Loaded(const GgufWriter& file) {
    file.write(directory.path() / "model.gguf");
    opened = open_model(directory.path() / "model.gguf");
    weights = opened->load_weights(device, {});
  }

  test::TemporaryDirectory directory;
  RecordingDevice device;
  std::unique_ptr<const ModelFile> opened;
  ModelWeights weights;
};

std::vector<float> floats(const device::Buffer& buffer) {
  const auto values = buffer.as<const float>();
  return {values.begin(), values.end()};
}

std::vector<float> dequantized(const std::unique_ptr<device::Weight>& weight) {
  const RecordingDevice::Weight& recorded = RecordingDevice::recorded(weight);
  std::vector<float> values(recorded.rows() * recorded.columns());
  const auto bytes = std::as_bytes(std::span(recorded.bytes));
  const std::size_t row = tensor::row_bytes(recorded.type, recorded.columns());
  for (std::size_t i = 0; i < recorded.rows(); ++i) {
    tensor::dequantize_row(recorded.type, bytes.subspan(i * row, row).data(),
                           std::span(values).subspan(i * recorded.columns(), recorded.columns()));
  }
  return values;
}

TEST_CASE("Every tensor of a model arrives where it belongs") {
  const Family family = GENERATE(Family::kQwen2, Family::kQwen3);
  const TinyModel model = test::make_tiny_model({.family = family, .head_dim = 32});
  const Loaded loaded(model.gguf());
  const ModelWeights& weights = loaded.weights;
  CHECK(dequantized(weights.embedding) == model.values("model.embed_tokens.weight"));
  CHECK(dequantized(weights.output) == model.values("lm_head.weight"));
  CHECK(floats(weights.final_norm.weight) == model.values("model.norm.weight"));
  REQUIRE(weights.layers.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const LayerWeights& layer = weights.layers[i];
    const auto values = [&](const std::string& name) {
      return model.values("model.layers." + std::to_string(i) + '.' + name);
    };
    CHECK(floats(layer.attention_norm.weight) == values("input_layernorm.weight"));
    CHECK(dequantized(layer.q) == values("self_attn.q_proj.weight"));
    CHECK(dequantized(layer.k) == values("self_attn.k_proj.weight"));
    CHECK(dequantized(layer.v) == values("self_attn.v_proj.weight"));
    CHECK(dequantized(layer.output) == values("self_attn.o_proj.weight"));
    CHECK(floats(layer.ffn_norm.weight) == values("post_attention_layernorm.weight"));
    CHECK(dequantized(layer.gate) == values("mlp.gate_proj.weight"));
    CHECK(dequantized(layer.up) == values("mlp.up_proj.weight"));
    CHECK(dequantized(layer.down) == values("mlp.down_proj.weight"));
    if (family == Family::kQwen2) {
      CHECK(floats(layer.q_bias) == values("self_attn.q_proj.bias"));
      CHECK(floats(layer.k_bias) == values("self_attn.k_proj.bias"));
      CHECK(floats(layer.v_bias) == values("self_attn.v_proj.bias"));
      CHECK(layer.q_norm.weight.bytes() == 0);
    } else {
      CHECK(floats(layer.q_norm.weight) == values("self_attn.q_norm.weight"));
      CHECK(floats(layer.k_norm.weight) == values("self_attn.k_norm.weight"));
      CHECK(layer.q_bias.bytes() == 0);
    }
  }
}

TEST_CASE("Matrices keep the file's type, vectors become f32") {
  const DType type =
      GENERATE(from_range(std::begin(test::kWeightTypes), std::end(test::kWeightTypes)));
  const TinyModel model = test::make_tiny_model({.type = type, .embedding_type = DType::kQ8_0});
  GgufWriter file = model.gguf();
  const std::vector<float>& norm = model.values("model.norm.weight");
  file.tensor("output_norm.weight").type = test::ggml_type(type);
  file.tensor("output_norm.weight").data = test::encode(type, norm);
  const Loaded loaded(file);
  const RecordingDevice::Weight& down = RecordingDevice::recorded(loaded.weights.layers[1].down);
  CHECK(down.type == type);
  CHECK(down.bytes == model.stored.at("model.layers.1.mlp.down_proj.weight").bytes);
  CHECK(RecordingDevice::recorded(loaded.weights.embedding).type == DType::kQ8_0);
  const std::vector<float> found = floats(loaded.weights.final_norm.weight);
  REQUIRE(found.size() == norm.size());
  for (std::size_t i = 0; i < norm.size(); ++i) CHECK(found[i] == Approx(norm[i]).margin(0.2));
}

TEST_CASE("A tied model has no output matrix of its own") {
  const TinyModel model = test::make_tiny_model({.tied = true});
  CHECK(Loaded(model.gguf()).weights.output == nullptr);
}

TEST_CASE("Parameters are counted") {
  const TinyModel model = test::make_tiny_model();
  std::size_t count = 0;
  for (const auto& [name, values] : model.tensors) count += values.size();
  CHECK(Loaded(model.gguf()).weights.parameters == count);
}

TEST_CASE("Progress grows to one") {
  const test::TemporaryDirectory directory;
  test::make_tiny_model().write_gguf(directory.path() / "model.gguf");
  RecordingDevice device;
  std::vector<double> fractions;
  const auto opened = open_model(directory.path() / "model.gguf");
  const ModelWeights weights =
      opened->load_weights(device, [&](double fraction) { fractions.push_back(fraction); });
  REQUIRE(fractions.size() == 5 + 2 * 16);  // vectors, and matrices that are read in two parts
  CHECK(fractions.front() > 0.0);
  CHECK(std::is_sorted(fractions.begin(), fractions.end()));
  CHECK(fractions.back() == 1.0);
}

TEST_CASE("An exception of the progress callback passes through") {
  const test::TemporaryDirectory directory;
  test::make_tiny_model().write_gguf(directory.path() / "model.gguf");
  RecordingDevice device;
  const auto opened = open_model(directory.path() / "model.gguf");
  CHECK_THROWS_AS(opened->load_weights(device, [](double) { throw 7; }), int);
}

TEST_CASE("F16 matrices are rounded to BF16 on request, and nothing else is") {
  const test::TemporaryDirectory directory;
  const std::vector<std::pair<tensor::DType, bool>> types = {
      {tensor::DType::kF16, true}, {tensor::DType::kF32, false}, {tensor::DType::kQ8_0, false}};
  for (const auto& [type, changes] : types) {
    const TinyModel model = test::make_tiny_model({.layers = 1, .type = type});
    model.write_gguf(directory.path() / "model.gguf");
    RecordingDevice plain_device, rounded_device;
    const auto opened = open_model(directory.path() / "model.gguf");
    const ModelWeights plain = opened->load_weights(plain_device, {});
    const ModelWeights rounded = opened->load_weights(rounded_device, {}, true);
    CHECK((rounded.digest != plain.digest) == changes);
    const auto& before = RecordingDevice::recorded(plain.layers[0].q);
    const auto& after = RecordingDevice::recorded(rounded.layers[0].q);
    CHECK((after.type == tensor::DType::kBF16) == changes);
    REQUIRE(after.bytes.size() == before.bytes.size());
    for (std::size_t i = 0; changes && i < before.bytes.size(); i += 2) {
      std::uint16_t f16, bf16;
      std::memcpy(&f16, before.bytes.data() + i, 2);
      std::memcpy(&bf16, after.bytes.data() + i, 2);
      REQUIRE(bf16 == tensor::f32_to_bf16(tensor::f16_to_f32(f16)));
    }
  }
}

TEST_CASE("The digest changes with any tensor's name, type or bytes and with nothing else") {
  const TinyModel model = test::make_tiny_model({.layers = 1});
  const auto digest = [](const GgufWriter& file) { return Loaded(file).weights.digest; };
  const base::Digest128 original = digest(model.gguf());
  CHECK(digest(model.gguf()) == original);

  GgufWriter metadata = model.gguf();
  metadata.set_string("general.name", "another");
  std::rotate(metadata.tensors.begin(), metadata.tensors.begin() + 1, metadata.tensors.end());
  CHECK(digest(metadata) == original);

  GgufWriter bit = model.gguf();
  bit.tensor("output_norm.weight").data[0] ^= 1;
  CHECK(digest(bit) != original);

  GgufWriter swapped = model.gguf();
  std::swap(swapped.tensor("blk.0.ffn_gate.weight").data,
            swapped.tensor("blk.0.ffn_up.weight").data);
  CHECK(digest(swapped) != original);

  GgufWriter type = model.gguf();
  type.tensor("output_norm.weight").type = test::ggml_type(DType::kF16);
  type.tensor("output_norm.weight").data =
      test::encode(DType::kF16, model.values("model.norm.weight"));
  CHECK(digest(type) != original);
}

TEST_CASE("A missing tensor is named when the model is opened") {
  const TinyModel model = test::make_tiny_model({.family = Family::kQwen2});
  for (const char* name : {"token_embd.weight", "output_norm.weight", "blk.0.attn_q.weight",
                           "blk.1.attn_k.bias", "blk.1.ffn_down.weight"}) {
    GgufWriter file = model.gguf();
    std::erase_if(file.tensors, [&](const GgufWriter::Tensor& t) { return t.name == name; });
    check_unreadable(name, [&] { return Loaded(file).weights.parameters; });
  }
}

TEST_CASE("A tensor of another shape is named when the model is opened") {
  const TinyModel model = test::make_tiny_model();
  GgufWriter file = model.gguf();
  file.tensor("blk.0.ffn_up.weight").dims = {96, 64};
  check_unreadable("'blk.0.ffn_up.weight' has the shape [64, 96]",
                   [&] { return Loaded(file).weights.parameters; });
  file = model.gguf();
  file.tensor("blk.0.attn_norm.weight").dims = {64, 1};
  check_unreadable("'blk.0.attn_norm.weight'", [&] { return Loaded(file).weights.parameters; });
  file = model.gguf();
  file.set_u32("llama.feed_forward_length", 64);
  check_unreadable("ffn_", [&] { return Loaded(file).weights.parameters; });
}

TEST_CASE("A tensor that the model has no place for is refused") {
  const TinyModel model = test::make_tiny_model();
  for (const char* name :
       {"blk.0.attn_output.bias", "blk.0.attn_q_norm.weight", "blk.2.attn_q.weight", "zzz", "a"}) {
    GgufWriter file = model.gguf();
    file.tensors.push_back({name, {64}, 0, std::string(256, '\0')});
    check_unreadable(std::string("'") + name + "' has no place",
                     [&] { return Loaded(file).weights.parameters; });
  }
  GgufWriter harmless = model.gguf();
  harmless.tensors.push_back({"blk.0.attn_rot_embd.weight", {8}, 0, std::string(32, '\0')});
  CHECK(Loaded(harmless).weights.parameters > 0);
}

TEST_CASE("Infinities and NaN are refused when the weights are read") {
  const TinyModel model = test::make_tiny_model({.type = DType::kQ4_1});
  GgufWriter norm = model.gguf();
  norm.tensor("output_norm.weight").data.replace(252, 4, test::raw_bytes(0x7F800000));
  check_unreadable("'output_norm.weight' holds infinities",
                   [&] { return Loaded(norm).weights.parameters; });
  GgufWriter scale = model.gguf();
  scale.tensor("blk.1.ffn_down.weight").data[23] = '\x7e';  // the second block's minimum
  check_unreadable("'blk.1.ffn_down.weight' holds infinities",
                   [&] { return Loaded(scale).weights.parameters; });
}

// A GPT-2 or BLOOM of one layer, as GGUF files have it: two heads of 32, quantised matrices.
GgufWriter fused_file(const std::string& architecture, DType type) {
  const TinyModel model =
      test::make_tiny_model({.layers = 1, .heads = 2, .kv_heads = 2, .head_dim = 32, .type = type});
  GgufWriter file = model.gguf(), result = file;
  result.tensors.clear();
  const std::size_t width = model.config.width, ffn = model.config.ffn_width;
  result.set_string("general.architecture", architecture);
  const auto set = [&](const char* key, std::size_t value) {
    result.set_u32(architecture + '.' + key, static_cast<std::uint32_t>(value));
  };
  set("block_count", 1);
  set("context_length", 20);
  set("embedding_length", width);
  set("feed_forward_length", ffn);
  set("attention.head_count", 2);
  result.set_f32(architecture + ".attention.layer_norm_epsilon", 1e-5f);
  const auto vector = [&](const std::string& name, std::size_t elements) {
    std::vector<float> values(elements);
    for (std::size_t i = 0; i < elements; ++i) {
      values[i] = static_cast<float>(i + 1) + static_cast<float>(name.size());
    }
    result.tensors.push_back(
        {name, {elements}, test::ggml_type(DType::kF32), test::encode(DType::kF32, values)});
  };
  const auto keep = [&](const char* name) { result.tensors.push_back(file.tensor(name)); };
  keep("token_embd.weight");
  for (const char* name :
       {"blk.0.attn_output.weight", "blk.0.ffn_up.weight", "blk.0.ffn_down.weight"}) {
    keep(name);
  }
  GgufWriter::Tensor qkv = file.tensor("blk.0.attn_q.weight");
  qkv.name = "blk.0.attn_qkv.weight";
  qkv.dims = {width, 3 * width};
  qkv.data += file.tensor("blk.0.attn_k.weight").data + file.tensor("blk.0.attn_v.weight").data;
  result.tensors.push_back(qkv);
  for (const char* norm : {"output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"}) {
    vector(std::string(norm) + ".weight", width);
    vector(std::string(norm) + ".bias", width);
  }
  vector("blk.0.attn_qkv.bias", 3 * width);
  vector("blk.0.attn_output.bias", width);
  vector("blk.0.ffn_up.bias", ffn);
  vector("blk.0.ffn_down.bias", width);
  if (architecture == "bloom") {
    vector("token_embd_norm.weight", width);
    vector("token_embd_norm.bias", width);
  } else {
    result.tensors.push_back({"position_embd.weight",
                              {width, 20},
                              test::ggml_type(DType::kF32),
                              test::encode(DType::kF32, std::vector<float>(20 * width, 0.5f))});
  }
  return result;
}

TEST_CASE("The rows of a fused tensor become q, k and v, of whatever type they are") {
  const std::string architecture = GENERATE(as<std::string>(), "gpt2", "bloom");
  const DType type = GENERATE(DType::kF32, DType::kQ8_0, DType::kQ4_K);
  GgufWriter file = fused_file(architecture, type);
  const Loaded loaded(file);
  const LayerWeights& layer = loaded.weights.layers[0];
  const std::string& rows = file.tensor("blk.0.attn_qkv.weight").data;
  CHECK(RecordingDevice::recorded(layer.q).bytes + RecordingDevice::recorded(layer.k).bytes +
            RecordingDevice::recorded(layer.v).bytes ==
        rows);
  CHECK(RecordingDevice::recorded(layer.k).type == type);
  const auto width = static_cast<float>(layer.q->columns());
  CHECK(floats(layer.q_bias).front() == 20.0f);
  CHECK(floats(layer.k_bias).front() == 20.0f + width);
  CHECK(floats(layer.v_bias).back() == 19.0f + 3.0f * width);
  CHECK(layer.gate == nullptr);
  CHECK(floats(layer.up_bias).size() == layer.up->rows());
  CHECK((loaded.weights.positions != nullptr) == (architecture == "gpt2"));
  CHECK((loaded.weights.embedding_norm.bias.bytes() > 0) == (architecture == "bloom"));

  GgufWriter changed = file;
  changed.tensor("blk.0.attn_qkv.weight").data[rows.size() / 2] ^= 1;
  CHECK(Loaded(changed).weights.digest != loaded.weights.digest);
  GgufWriter missing = file;
  std::erase_if(missing.tensors, [](const auto& t) { return t.name == "blk.0.attn_qkv.bias"; });
  check_unreadable("'blk.0.attn_qkv.bias'", [&] { return Loaded(missing).weights.parameters; });
}

TEST_CASE("Every place where an infinity or NaN can be is looked at") {
  struct Place {
    DType type;
    std::size_t byte;  // the upper one of a number's exponent
    char bits;
  };
  const Place places[] = {
      {DType::kF32, 4 * 63 + 3, '\x7f'},  {DType::kF16, 2 * 63 + 1, '\xfc'},
      {DType::kBF16, 2 * 63 + 1, '\x7f'}, {DType::kQ8_0, 34 + 1, '\x7c'},
      {DType::kQ4_0, 18 + 1, '\xfe'},     {DType::kQ4_1, 20 + 1, '\x7c'},
      {DType::kQ4_1, 20 + 3, '\x7f'},     {DType::kQ5_0, 22 + 1, '\x7c'},
      {DType::kQ5_1, 24 + 1, '\xff'},     {DType::kQ5_1, 24 + 3, '\x7c'},
      {DType::kQ4_K, 144 + 1, '\x7c'},    {DType::kQ4_K, 144 + 3, '\xfc'},
      {DType::kQ5_K, 176 + 1, '\x7f'},    {DType::kQ5_K, 176 + 3, '\x7c'},
      {DType::kQ6_K, 210 + 209, '\x7c'},
  };
  for (const Place& place : places) {
    const std::size_t elements = std::max<std::size_t>(64, 2 * tensor::block_elements(place.type));
    std::string bytes = test::encode(place.type, std::vector<float>(elements, 0.25f));
    CHECK(all_finite(place.type, base::as_bytes(bytes)));
    bytes[place.byte] = place.bits;
    bytes[place.byte - 1] = '\xff';
    CHECK_FALSE(all_finite(place.type, base::as_bytes(bytes)));
  }
  // Codes and factors of any value are finite.
  std::string codes = test::encode(DType::kQ8_0, std::vector<float>(32, 1.0f));
  std::fill(codes.begin() + 2, codes.end(), '\xff');
  CHECK(all_finite(DType::kQ8_0, base::as_bytes(codes)));
  codes = test::encode(DType::kQ5_K, std::vector<float>(256, 1.0f));
  std::fill(codes.begin() + 4, codes.end(), '\xff');
  CHECK(all_finite(DType::kQ5_K, base::as_bytes(codes)));
  codes = test::encode(DType::kQ6_K, std::vector<float>(256, 1.0f));
  std::fill(codes.begin(), codes.begin() + 208, '\xff');
  CHECK(all_finite(DType::kQ6_K, base::as_bytes(codes)));
}

}  // namespace
}  // namespace incipit::model
