// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "model/gguf.h"
#include "model/gguf_model.h"
#include "support/catch.h"
#include "support/memory_file.h"
#include "support/tiny_model.h"
#include "support/unreadable.h"

namespace incipit::model {
namespace {

using test::check_unreadable;
using test::Family;
using test::GgufWriter;
using test::MemoryFile;
using test::TinyModel;

ModelConfig read(const GgufWriter& writer) {
  const MemoryFile memory(writer.bytes());
  std::vector<base::ReadFile> files;
  files.emplace_back(memory.path());
  GgufHeader header = read_gguf_header(files.front());
  const TensorSource tensors(std::move(files), std::move(header.tensors));
  return read_gguf_config(header.metadata, tensors);
}

void check_refused(const GgufWriter& file, const std::string& part) {
  check_unreadable(part, [&] { return read(file); });
}

TEST_CASE("The config of each family is read") {
  const Family family = GENERATE(Family::kLlama, Family::kQwen2, Family::kQwen3);
  const bool tied = GENERATE(false, true);
  const TinyModel model =
      test::make_tiny_model({.family = family, .layers = 3, .head_dim = 32, .tied = tied});
  const ModelConfig config = read(model.gguf());
  CHECK(config.name == "tiny");
  CHECK(config.architecture == model.config.architecture);
  CHECK(config.vocabulary == model.config.vocabulary);
  CHECK(config.context == 512);
  CHECK(config.layers == 3);
  CHECK(config.width == 64);
  CHECK(config.heads == 4);
  CHECK(config.kv_heads == 2);
  CHECK(config.head_dim == 32);
  CHECK(config.ffn_width == 96);
  CHECK(config.norm_epsilon == 1e-5f);
  CHECK(config.qkv_bias == (family == Family::kQwen2));
  CHECK(config.qk_norm == (family == Family::kQwen3));
  CHECK(config.tied_output == tied);
  CHECK(config.rope_pairs ==
        (family == Family::kLlama ? device::RopePairs::kAdjacent : device::RopePairs::kHalves));
  CHECK(config.rope_frequencies.size() == 16);
}

TEST_CASE("What a GGUF file leaves out has the usual value") {
  GgufWriter file = test::make_tiny_model({.kv_heads = 4}).gguf();
  for (const char* key : {"llama.attention.head_count_kv", "llama.attention.key_length",
                          "llama.attention.value_length", "llama.rope.dimension_count",
                          "llama.rope.freq_base", "general.name"}) {
    file.erase(key);
  }
  const ModelConfig config = read(file);
  CHECK(config.kv_heads == 4);
  CHECK(config.head_dim == 16);
  CHECK(config.rope_frequencies[1] == Approx(0.31622777));
  CHECK(config.name.empty());
}

TEST_CASE("What a GGUF file cannot do without is an error to leave out") {
  for (const char* key : {"general.architecture", "llama.context_length", "llama.block_count",
                          "llama.embedding_length", "llama.feed_forward_length",
                          "llama.attention.head_count", "llama.attention.layer_norm_rms_epsilon"}) {
    GgufWriter file = test::make_tiny_model().gguf();
    file.erase(key);
    check_refused(file, std::string("'") + key + "' is missing");
  }
}

TEST_CASE("Sizes are checked, of whatever type they are") {
  const TinyModel model = test::make_tiny_model();
  for (const char* key : {"llama.context_length", "llama.block_count", "llama.embedding_length",
                          "llama.feed_forward_length", "llama.attention.head_count",
                          "llama.attention.head_count_kv", "llama.attention.key_length"}) {
    GgufWriter file = model.gguf();
    file.set_u32(key, 0);
    check_refused(file, "");
    file.set_u32(key, std::numeric_limits<std::uint32_t>::max());
    check_refused(file, "");
    file.set(key, test::GgufType::kI32, test::raw_bytes(std::int32_t{-1}));
    check_refused(file, "is negative");
    file.set(key, test::GgufType::kU64, test::raw_bytes(~std::uint64_t{0}));
    check_refused(file, "");
    file.set_i32s(key, {2, 2});
    check_refused(file, "is a list");
    file.set_string(key, "4");
    check_refused(file, "is no integer");
  }
}

TEST_CASE("Other architectures and options that change the model are named and refused") {
  GgufWriter file = test::make_tiny_model().gguf();
  file.set_string("general.architecture", "gemma2");
  check_refused(file, "architecture 'gemma2'");
  for (const char* option :
       {"expert_count", "attention.clamp_kqv", "attention.max_alibi_bias", "embedding_scale"}) {
    const std::string key = std::string("llama.") + option;
    file = test::make_tiny_model().gguf();
    file.set_u32(key, 0);
    CHECK_NOTHROW(read(file));
    file.set_f32(key, 2.0f);
    check_refused(file, "'" + key + "'");
  }
  file = test::make_tiny_model().gguf();
  file.set_string("general.type", "model");
  CHECK_NOTHROW(read(file));
  file.set_string("general.type", "adapter");
  check_refused(file, "no model but: adapter");
  file = test::make_tiny_model().gguf();
  file.set_bool("llama.attention.causal", false);
  check_refused(file, "attention.causal");
  file = test::make_tiny_model().gguf();
  file.set_u32("llama.attention.value_length", 32);
  check_refused(file, "values");
  file = test::make_tiny_model().gguf();
  file.set_u32("llama.rope.dimension_count", 8);
  check_refused(file, "RoPE over a part");
  file = test::make_tiny_model().gguf();
  file.set(std::string("split.count"), test::GgufType::kU16, test::raw_bytes(std::uint16_t{2}));
  check_refused(file, "merge the parts");
}

TEST_CASE("A LLaMA with a window is a Mistral") {
  GgufWriter file = test::make_tiny_model().gguf();
  file.set_u32("llama.attention.sliding_window", 0);
  CHECK(read(file).windowed_layers.empty());
  file.set_u32("llama.attention.sliding_window", 512);
  CHECK(read(file).windowed_layers.empty());
  file.set_u32("llama.attention.sliding_window", 100);
  const ModelConfig config = read(file);
  CHECK(config.window == 100);
  CHECK(config.windowed_layers == std::vector<std::uint8_t>{1, 1});
  file = test::make_tiny_model({.family = Family::kQwen2}).gguf();
  file.set_u32("qwen2.attention.sliding_window", 100);
  check_refused(file, "qwen2.attention.sliding_window");
}

GgufWriter gemma() {
  GgufWriter file = test::make_tiny_model().gguf();
  file.set_string("general.architecture", "gemma3");
  for (const char* key : {"context_length", "embedding_length", "feed_forward_length",
                          "attention.head_count", "attention.key_length"}) {
    file.set_u32(std::string("gemma3.") + key, key == std::string("context_length") ? 512 : 4);
  }
  file.set_u32("gemma3.block_count", 7)
      .set_f32("gemma3.attention.layer_norm_rms_epsilon", 1e-6f)
      .set_f32("gemma3.rope.freq_base", 1e6f)
      .set_u32("gemma3.attention.sliding_window", 100);
  return file;
}

TEST_CASE("A Gemma 3 has windows and two bases of RoPE") {
  GgufWriter file = gemma();
  ModelConfig config = read(file);
  CHECK(config.windowed_layers == std::vector<std::uint8_t>{1, 1, 1, 1, 1, 0, 1});
  CHECK(config.window == 100);
  CHECK(config.norm_place == NormPlace::kAround);
  CHECK(config.activation == device::Activation::kGeluTanh);
  CHECK(config.qk_norm);
  CHECK(config.rope_pairs == device::RopePairs::kHalves);
  CHECK(config.embedding_scale == 2.0f);
  CHECK(config.attention_scale == 0.0f);
  CHECK(config.rope_frequencies[1] == Approx(1e-3));
  CHECK(config.local_rope_frequencies[1] == Approx(1e-2));
  file.set_u32("gemma3.attention.sliding_window_pattern", 3)
      .set_f32("gemma3.rope.freq_base_swa", 100.0f)
      .set_string("gemma3.rope.scaling.type", "linear")
      .set_f32("gemma3.rope.scaling.factor", 8.0f)
      .set_f32("gemma3.attn_logit_softcapping", 50.0f)
      .set_f32("gemma3.final_logit_softcapping", 30.0f)
      .set_f32("gemma3.attention.scale", 0.25f);
  config = read(file);
  CHECK(config.windowed_layers == std::vector<std::uint8_t>{1, 1, 0, 1, 1, 0, 1});
  CHECK(config.rope_frequencies[0] == 0.125f);
  CHECK(config.local_rope_frequencies[0] == 1.0f);
  CHECK(config.local_rope_frequencies[1] == Approx(0.1));
  CHECK(config.attention_soft_cap == 50.0f);
  CHECK(config.logit_soft_cap == 30.0f);
  CHECK(config.attention_scale == 0.25f);
  file.set_u32("gemma3.attention.sliding_window_pattern", 0);
  check_refused(file, "sliding_window_pattern = 0");
  file.erase("gemma3.attention.sliding_window");
  check_refused(file, "'gemma3.attention.sliding_window' is missing");
  file = gemma();
  file.set_u32("gemma3.attention.sliding_window", 0);
  check_refused(file, "'gemma3.attention.sliding_window' is 0");
  file.set_u32("gemma3.attention.sliding_window", 512);  // of a context of 512
  CHECK(read(file).window == 512);
  CHECK(read(file).windowed_layers == std::vector<std::uint8_t>{1, 1, 1, 1, 1, 0, 1});
  file = gemma();  // the largest one, whose heads are narrower than their part of the width
  file.set_u32("gemma3.block_count", 62).set_u32("gemma3.embedding_length", 64);
  CHECK(read(file).attention_scale == 0.25f);
}

TEST_CASE("A bias on q, k and v is a matter of the tensors that are there") {
  GgufWriter file = test::make_tiny_model().gguf();
  file.tensors.push_back({"blk.0.attn_q.bias", {64}, 0, std::string(256, '\0')});
  CHECK(read(file).qkv_bias);
}

TEST_CASE("RoPE is scaled as the metadata says") {
  const TinyModel model = test::make_tiny_model();
  const std::vector<float> plain = read(model.gguf()).rope_frequencies;
  GgufWriter file = model.gguf();
  file.set_string("llama.rope.scaling.type", "none").set_f32("llama.rope.scaling.factor", 4.0f);
  CHECK(read(file).rope_frequencies == plain);
  file.set_string("llama.rope.scaling.type", "linear");
  CHECK(read(file).rope_frequencies[0] == 0.25f);
  file.erase("llama.rope.scaling.type").set_f32("llama.rope.scale_linear", 2.0f);
  CHECK(read(file).rope_frequencies[0] == 0.5f);
  file.set_string("llama.rope.scaling.type", "yarn");
  check_refused(file, "'yarn'");
  file = model.gguf();
  file.set_string("llama.rope.scaling.type", "linear");
  check_refused(file, "llama.rope.scaling.factor' is missing");
}

TEST_CASE("Factors of the frequencies are read from their tensor") {
  const TinyModel model = test::make_tiny_model({.llama3_rope = true});
  const std::vector<float> frequencies = read(model.gguf()).rope_frequencies;
  REQUIRE(frequencies.size() == 8);
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(frequencies[i] == Approx(model.config.rope_frequencies[i]).epsilon(1e-6));
  }
  CHECK(frequencies[7] == Approx(0.125 * std::pow(10000.0, -14.0 / 16.0)));

  GgufWriter shorter = model.gguf();
  shorter.tensor("rope_freqs.weight").dims = {7};
  check_refused(shorter, "'rope_freqs.weight' is not 8 F32 values");
  GgufWriter half = model.gguf();
  half.tensor("rope_freqs.weight").type = test::ggml_type(tensor::DType::kF16);
  check_refused(half, "'rope_freqs.weight' is not 8 F32 values");
  GgufWriter zero = model.gguf();
  zero.tensor("rope_freqs.weight").data.assign(32, '\0');
  check_refused(zero, "frequency factor");
}

}  // namespace
}  // namespace incipit::model
