// SPDX-License-Identifier: Apache-2.0
#include "model/model_file.h"

#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/recording_device.h"
#include "support/temporary_directory.h"
#include "support/tiny_model.h"
#include "support/unreadable.h"

namespace incipit::model {
namespace {

using tensor::DType;
using test::check_unreadable;
using test::Family;
using test::RecordingDevice;
using test::TemporaryDirectory;
using test::TinyModel;
using test::TinyModelOptions;

void check_equal(const ModelConfig& found, const ModelConfig& wanted) {
  CHECK(found.name == wanted.name);
  CHECK(found.architecture == wanted.architecture);
  CHECK(found.vocabulary == wanted.vocabulary);
  CHECK(found.context == wanted.context);
  CHECK(found.layers == wanted.layers);
  CHECK(found.width == wanted.width);
  CHECK(found.heads == wanted.heads);
  CHECK(found.kv_heads == wanted.kv_heads);
  CHECK(found.head_dim == wanted.head_dim);
  CHECK(found.ffn_width == wanted.ffn_width);
  CHECK(found.norm_epsilon == wanted.norm_epsilon);
  CHECK(found.qkv_bias == wanted.qkv_bias);
  CHECK(found.qk_norm == wanted.qk_norm);
  CHECK(found.tied_output == wanted.tied_output);
  REQUIRE(found.rope_frequencies.size() == wanted.rope_frequencies.size());
  for (std::size_t i = 0; i < wanted.rope_frequencies.size(); ++i) {
    CHECK(found.rope_frequencies[i] == Approx(wanted.rope_frequencies[i]).epsilon(1e-6));
  }
}

void check_equal(const text::TokenizerSpec& found, const text::TokenizerSpec& wanted) {
  CHECK(found.tokens == wanted.tokens);
  CHECK(found.kinds == wanted.kinds);
  CHECK(found.merges == wanted.merges);
  CHECK(found.pre == wanted.pre);
  CHECK(found.normalize_nfc == wanted.normalize_nfc);
  CHECK(found.ignore_merges == wanted.ignore_merges);
  CHECK(found.add_bos == wanted.add_bos);
  CHECK(found.bos == wanted.bos);
  CHECK(found.ends == wanted.ends);
}

// Row r of a matrix, by its bytes in the file.
std::string row(const std::unique_ptr<device::Weight>& weight, std::size_t r) {
  const RecordingDevice::Weight& recorded = RecordingDevice::recorded(weight);
  const std::size_t bytes = recorded.bytes.size() / recorded.rows();
  return recorded.bytes.substr(r * bytes, bytes);
}

TEST_CASE("Both forms of a model open as what was written") {
  TinyModelOptions options;
  options.family = GENERATE(Family::kLlama, Family::kQwen2, Family::kQwen3);
  options.type = GENERATE(DType::kF32, DType::kBF16, DType::kQ4_1);
  options.tied = options.type == DType::kBF16;
  options.llama3_rope = options.family == Family::kLlama;
  const TinyModel model = test::make_tiny_model(options);
  const TemporaryDirectory directory;
  model.write_gguf(directory.path() / "model.gguf");
  model.write_hugging_face(directory.path() / "one");
  model.write_hugging_face(directory.path() / "shards", 3);

  const auto gguf = open_model(directory.path() / "model.gguf");
  check_equal(gguf->config(), model.config);
  check_equal(gguf->tokenizer(), model.tokenizer);
  CHECK(gguf->chat_template().text == model.chat_template);
  CHECK(gguf->config().rope_pairs == (options.family == Family::kLlama
                                          ? device::RopePairs::kAdjacent
                                          : device::RopePairs::kHalves));
  const auto one = open_model(directory.path() / "one");
  check_equal(one->config(), model.config);
  check_equal(one->tokenizer(), model.tokenizer);
  CHECK(one->chat_template().text == model.chat_template);
  CHECK(one->config().rope_pairs == device::RopePairs::kHalves);

  RecordingDevice device;
  const ModelWeights from_one = one->load_weights(device, {});
  const ModelWeights from_shards =
      open_model(directory.path() / "shards")->load_weights(device, {});
  CHECK(from_one.digest == from_shards.digest);
  CHECK(from_one.parameters == from_shards.parameters);
  CHECK(from_one.parameters == gguf->load_weights(device, {}).parameters);
}

TEST_CASE("Rows of q and k turn in the pairs that each form of a LLaMA has") {
  const TinyModel model = test::make_tiny_model({.type = DType::kF16});
  const TemporaryDirectory directory;
  model.write_gguf(directory.path() / "model.gguf");
  model.write_hugging_face(directory.path() / "one");
  RecordingDevice device;
  const ModelWeights gguf = open_model(directory.path() / "model.gguf")->load_weights(device, {});
  const ModelWeights one = open_model(directory.path() / "one")->load_weights(device, {});
  for (std::size_t head = 0; head < 2; ++head) {
    for (std::size_t pair = 0; pair < 8; ++pair) {
      const std::size_t begin = head * 16;
      CHECK(row(gguf.layers[1].k, begin + 2 * pair) == row(one.layers[1].k, begin + pair));
      CHECK(row(gguf.layers[1].k, begin + 2 * pair + 1) == row(one.layers[1].k, begin + pair + 8));
    }
  }
  CHECK(row(gguf.layers[1].v, 3) == row(one.layers[1].v, 3));
}

TEST_CASE("What cannot be a model says what to give instead") {
  const TemporaryDirectory directory;
  const auto open = [&](const char* name) {
    return [path = directory.path() / name] { return open_model(path); };
  };
  check_unreadable("no such file or directory; give a .gguf file", open("absent.gguf"));
  check_unreadable("no such file or directory", [] { return open_model(""); });
  check_unreadable("there is no config.json; give a .gguf file", open(""));
  test::write_file(directory.path() / "pytorch_model.bin", "PK\3\4");
  check_unreadable("convert it by python3 -c", open("pytorch_model.bin"));
  test::write_file(directory.path() / "model.safetensors", "x");
  check_unreadable("give the directory", open("model.safetensors"));
  test::write_file(directory.path() / "empty.gguf", "");
  check_unreadable("no GGUF file", open("empty.gguf"));
  test::write_file(directory.path() / "notes.txt", "These are some notes.");
  check_unreadable("no GGUF file", open("notes.txt"));
  test::write_file(directory.path() / "config.json", "{}");
  check_unreadable("model.safetensors", open(""));
  check_unreadable("cannot read", [] { return open_model("/dev/null"); });
}

TEST_CASE("A directory with a checkpoint of PyTorch only is told to convert it") {
  const TemporaryDirectory directory;
  const auto check_told = [&](const char* name, const std::string& quoted) {
    const auto path = directory.path() / name;
    std::filesystem::create_directories(path);
    test::write_file(path / "config.json", "{}");
    test::write_file(path / "pytorch_model.bin", "PK\3\4");
    check_unreadable("save_pretrained(p)\" '" + directory.path().string() + "/" + quoted + "'",
                     [&] { return open_model(path); });
  };
  check_told("a model", "a model");
  // No name becomes a part of the command.
  check_told("it's $(x) \"y\"", "it'\\''s $(x) \"y\"");
}

TEST_CASE("A vocabulary of 150,000 tokens opens fast") {
  TinyModel model = test::make_tiny_model({.layers = 1, .tied = true});
  const std::size_t tokens = 150000;
  for (std::size_t i = model.tokenizer.tokens.size(); i < tokens; ++i) {
    model.tokenizer.tokens.push_back("token" + std::to_string(i));
    model.tokenizer.merges.push_back("tok en" + std::to_string(i));
  }
  model.tokenizer.kinds.resize(tokens, text::TokenKind::kNormal);
  test::TinyTensor& embedding = model.stored.at("model.embed_tokens.weight");
  embedding.shape[0] = tokens;
  embedding.bytes.resize(tokens * 64 * sizeof(float));
  const TemporaryDirectory directory;
  model.write_gguf(directory.path() / "large.gguf");
  const std::clock_t begin = std::clock();
  const auto opened = open_model(directory.path() / "large.gguf");
  const auto elapsed = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  CHECK(opened->tokenizer().tokens.size() == tokens);
  CHECK(opened->tokenizer().tokens.back() == "token149999");
  CHECK(elapsed < 1.0);  // seconds; a tenth of it without sanitizers
}

}  // namespace
}  // namespace incipit::model
