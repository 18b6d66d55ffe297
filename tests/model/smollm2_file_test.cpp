// SPDX-License-Identifier: Apache-2.0
#include <ctime>
#include <filesystem>
#include <map>
#include <string>

#include "model/gguf.h"
#include "model/model_file.h"
#include "support/catch.h"
#include "support/recording_device.h"

namespace incipit::model {
namespace {

const std::filesystem::path kModel = INCIPIT_TEST_MODEL;

bool have_model() {
  if (std::filesystem::exists(kModel)) return true;
  WARN("skipped: INCIPIT_TEST_MODEL does not name SmolLM2-135M-Instruct.Q4_1.gguf");
  return false;
}

TEST_CASE("SmolLM2 opens as what it is") {
  if (!have_model()) return;
  const std::clock_t begin = std::clock();
  const auto model = open_model(kModel);
  const auto elapsed = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  CHECK(elapsed < 0.150);  // seconds of this process

  const ModelConfig& config = model->config();
  CHECK(config.architecture == "llama");
  CHECK(config.name == "Smollm2 135M 8k Lc100K Mix1 Ep2");
  CHECK(config.vocabulary == 49152);
  CHECK(config.context == 8192);
  CHECK(config.layers == 30);
  CHECK(config.width == 576);
  CHECK(config.heads == 9);
  CHECK(config.kv_heads == 3);
  CHECK(config.head_dim == 64);
  CHECK(config.ffn_width == 1536);
  CHECK(config.norm_epsilon == 1e-5f);
  CHECK(config.tied_output);
  CHECK_FALSE(config.qkv_bias);
  CHECK_FALSE(config.qk_norm);
  CHECK(config.rope_pairs == device::RopePairs::kAdjacent);
  REQUIRE(config.rope_frequencies.size() == 32);
  CHECK(config.rope_frequencies[1] == 0x1.654a0cp-1f);

  const text::TokenizerSpec& tokenizer = model->tokenizer();
  CHECK(tokenizer.tokens.size() == 49152);
  CHECK(tokenizer.merges.size() == 48900);
  CHECK(tokenizer.pre == text::PreTokenizer::kSmolLm);
  CHECK_FALSE(tokenizer.add_bos);
  CHECK(tokenizer.bos == 1);
  CHECK(tokenizer.ends == std::vector<TokenId>{2, 0});
  CHECK(tokenizer.tokens[0] == "<|endoftext|>");
  CHECK(tokenizer.tokens[2] == "<|im_end|>");
  CHECK(model->chat_template().text.find("<|im_start|>") != std::string::npos);
}

TEST_CASE("SmolLM2's tensors have the types that were published") {
  if (!have_model()) return;
  const GgufHeader header = read_gguf_header(base::ReadFile(kModel));
  std::map<tensor::DType, int> types;
  for (const TensorInfo& tensor : header.tensors) ++types[tensor.type];
  CHECK(types == std::map<tensor::DType, int>{{tensor::DType::kF32, 61},
                                              {tensor::DType::kQ8_0, 1},
                                              {tensor::DType::kQ4_1, 210}});
}

TEST_CASE("SmolLM2's weights load") {
  if (!have_model()) return;
  test::RecordingDevice device;
  const ModelWeights weights = open_model(kModel)->load_weights(device, {});
  CHECK(weights.parameters == 134515008);
  CHECK(weights.output == nullptr);
  CHECK(weights.layers.size() == 30);
  CHECK(test::RecordingDevice::recorded(weights.embedding).type == tensor::DType::kQ8_0);
  CHECK(test::RecordingDevice::recorded(weights.layers[29].q).type == tensor::DType::kQ4_1);
}

}  // namespace
}  // namespace incipit::model
