// SPDX-License-Identifier: Apache-2.0
// A prompt's logits on the GPU, in both of its modes, and on the CPU, of a model file or of a
// random model that is written first.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "cuda/logits_difference.h"
#include "examples/option_names.h"
#include "examples/support.h"
#include "support/run_model.h"
#include "support/tiny_model.h"

namespace {

using namespace incipit;

/// SmolLM2-135M's.
test::TinyModelOptions smollm2_shape() {
  test::TinyModelOptions options;
  options.layers = 30;
  options.width = 576;
  options.heads = 9;
  options.kv_heads = 3;
  options.head_dim = 64;
  options.ffn_width = 1536;
  options.context = 8192;
  options.vocabulary = 49152;
  options.rope_base = 100000.0f;
  options.tied = true;
  options.type = tensor::DType::kQ4_1;
  return options;
}

std::vector<TokenId> random_prompt(std::size_t tokens, std::size_t vocabulary) {
  std::mt19937 random(1);
  std::vector<TokenId> ids(tokens);
  for (TokenId& id : ids) id = static_cast<TokenId>(random() % vocabulary);
  return ids;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("The logits of a random prompt on a GPU, against the CPU's in floats",
               "cuda_gpu_compare_logits");
  std::filesystem::path model;
  bool random = false;
  std::size_t tokens = 300;
  double tolerance = 0.03;  // 32 tokens through the emulator: 0.008 of the random model
  std::string device = "cuda", json;
  app.add_option("--model", model, "GGUF file or Hugging Face directory")->required();
  app.add_flag("--random", random,
               "Write a random model of SmolLM2-135M's shape to the file first: always the same");
  app.add_option("--tokens", tokens, "Of the prompt")->check(CLI::Range(1, 8192));
  app.add_option("--tolerance", tolerance,
                 "The largest difference that is allowed, as a share of the largest logit");
  app.add_option("--device", device, "What is compared; cpu: its default mode")
      ->check(CLI::IsMember({"cuda", "cpu"}));
  app.add_option("--json", json, "Write the result to this file; -: to standard output");
  return examples::run_main(app, argc, argv, [&] {
    if (random) test::make_tiny_model(smollm2_shape()).write_gguf(model);
    EngineOptions reference;
    reference.model = model;
    reference.device = DeviceKind::kCpu;
    reference.activations = Activations::kFloat;
    reference.kv_type = KvType::kF16;
    EngineOptions compared = reference;
    compared.device = device == "cuda" ? DeviceKind::kCuda : DeviceKind::kCpu;
    compared.activations = Activations::kMixed;

    test::ModelRunner floats(reference);
    const auto ids = random_prompt(tokens, floats.config().vocabulary);
    const auto expected = floats.logits(ids);

    nlohmann::ordered_json result = {{"tokens", tokens}, {"tolerance", tolerance}};
    bool within = true;
    for (const auto& [name, math] : examples::kGpuMath) {
      compared.gpu_math = math;
      test::LogitsDifference difference;
      test::ModelRunner(compared).run(ids, [&](std::size_t at, std::span<const float> logits) {
        difference.add(expected[at], logits);
      });
      examples::console(json) << name << ": the largest difference is " << difference.worst()
                              << " of the largest logit; another token is the likeliest at "
                              << difference.other_likeliest() << " of " << tokens << " positions\n";
      result[name] = {{"difference", difference.worst()},
                      {"other_likeliest", difference.other_likeliest()}};
      within = within && difference.worst() <= tolerance;
    }
    if (!json.empty()) examples::write_json(json, result, 2);
    return within ? 0 : examples::kFailure;
  });
}
