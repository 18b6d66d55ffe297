// SPDX-License-Identifier: Apache-2.0
// The program `inspect` on tiny random models.
#include <string>
#include <vector>

#include "examples/run_program.h"
#include "support/catch.h"
#include "support/tiny_model.h"

using namespace incipit::test;
using nlohmann::json;

namespace {

Outcome inspect(const std::string& path) {
  return run_example("inspect", {"--model", path, "--json", "-", "--tensors"});
}

}  // namespace

TEST_CASE("inspect says what is in a model file") {
  const TinyModelOnDisk model;
  const Outcome outcome = inspect(model.path());
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, Catch::Contains("incipit runs this model"));
  CHECK_THAT(outcome.err, Catch::Contains("token_embd.weight  F32"));
  const json report = json::parse(outcome.out);
  CHECK(report.at("format") == "GGUF");
  CHECK(report.at("architecture") == "llama");
  CHECK(report.at("chat_format") == "ChatML");
  CHECK(report.at("problems").empty());
  const std::size_t values = report.at("layers").get<std::size_t>() * 2 *
                             report.at("kv_heads").get<std::size_t>() *
                             report.at("head_dim").get<std::size_t>();
  CHECK(report.at("kv_bytes_per_token").at("f32") == values * 4);
  CHECK(report.at("kv_bytes_per_token").at("bf16") == values * 2);
  CHECK(report.at("ends").at(0).at("text").get<std::string>().starts_with("<|"));
  CHECK(report.at("tensors").size() > 10);
}

TEST_CASE("inspect says what is not supported, and goes on") {
  const TemporaryDirectory directory;
  const std::string path = (directory.path() / "model.gguf").string();
  GgufWriter gguf = make_tiny_model({}).gguf();
  gguf.set_string("general.architecture", "mamba");
  gguf.set_string("tokenizer.chat_template", "{{ messages }}");
  gguf.write(path);
  const Outcome outcome = inspect(path);
  CHECK(outcome.exit_code == 1);
  const json report = json::parse(outcome.out);
  CHECK(report.at("architecture") == "mamba");
  CHECK(report.at("tensors").size() > 10);
  CHECK(report.at("tokenizer").get<std::string>().starts_with("gpt2"));
  REQUIRE(report.at("problems").size() == 1);
  CHECK_THAT(report.at("problems").at(0).get<std::string>(), Catch::Contains("mamba"));
  CHECK(inspect((directory.path() / "none").string()).exit_code == 1);
}

TEST_CASE("inspect names types that are computed as another") {
  const TemporaryDirectory directory;
  const std::string path = (directory.path() / "model.gguf").string();
  GgufWriter gguf = make_tiny_model({}).gguf();
  // One block of IQ4_NL for each 32 values of a matrix.
  for (GgufWriter::Tensor& tensor : gguf.tensors) {
    if (tensor.name != "blk.0.ffn_up.weight") continue;
    tensor.type = 20;
    tensor.data.assign(tensor.dims[0] * tensor.dims[1] / 32 * 18, '\0');
  }
  gguf.write(path);
  const Outcome outcome = inspect(path);
  INFO(outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, Catch::Contains("IQ4_NL as Q8_0"));
  CHECK(json::parse(outcome.out).at("converted") == "IQ4_NL as Q8_0");
}
