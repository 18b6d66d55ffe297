// SPDX-License-Identifier: Apache-2.0
#include "model/hugging_face.h"

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "model/model_file.h"
#include "support/catch.h"
#include "support/temporary_directory.h"
#include "support/tiny_model.h"
#include "support/unreadable.h"

namespace incipit::model {
namespace {

using nlohmann::json;
using test::check_unreadable;
using test::TinyModel;
using test::write_file;

// A tiny model's directory, to be altered.
class Directory {
 public:
  Directory() { test::make_tiny_model({.layers = 1}).write_hugging_face(path()); }

  const std::filesystem::path& path() const { return directory_.path(); }
  json read(const char* name) const {
    return json::parse(base::read_text_file(path() / name, 1 << 20));
  }
  void write(const char* name, const json& value) const { write_file(path() / name, value.dump()); }
  std::unique_ptr<const ModelFile> open() const { return open_model(path()); }

 private:
  test::TemporaryDirectory directory_;
};

TEST_CASE("What a directory lacks is named") {
  for (const char* name : {"config.json", "tokenizer.json", "model.safetensors"}) {
    const Directory directory;
    std::filesystem::remove(directory.path() / name);
    check_unreadable("there is no " + std::string(name), [&] { return directory.open(); });
  }
}

TEST_CASE("Without tokenizer.json, vocab.json and merges.txt are read") {
  const Directory directory;
  const auto expected = directory.open()->tokenizer();
  const json tokenizer = directory.read("tokenizer.json");
  std::filesystem::remove(directory.path() / "tokenizer.json");
  check_unreadable("nor vocab.json with merges.txt", [&] { return directory.open(); });
  directory.write("vocab.json", tokenizer["model"]["vocab"]);
  std::string merges = "#version: 0.2\n";
  for (const json& merge : tokenizer["model"]["merges"]) merges += merge.get<std::string>() + "\n";
  write_file(directory.path() / "merges.txt", merges);
  directory.write("tokenizer_config.json", {{"tokenizer_class", "GPT2Tokenizer"},
                                            {"bos_token", "<|im_start|>"},
                                            {"eos_token", {{"content", "<|im_end|>"}}},
                                            {"additional_special_tokens", {"<|endoftext|>"}}});
  const auto model = directory.open();
  CHECK(model->tokenizer().tokens == expected.tokens);
  CHECK(model->tokenizer().kinds == expected.kinds);
  CHECK(model->tokenizer().merges == expected.merges);
  CHECK(model->tokenizer().pre == text::PreTokenizer::kGpt2);
  CHECK(model->tokenizer().bos == 1);
  CHECK(model->tokenizer().ends == std::vector<TokenId>{2, 0});
}

TEST_CASE("An adapter beside the model is not passed over") {
  const Directory directory;
  directory.write("adapter_config.json", json::object());
  check_unreadable("an adapter", [&] { return directory.open(); });
}

TEST_CASE("Files that are not needed may be absent") {
  const Directory directory;
  std::filesystem::remove(directory.path() / "generation_config.json");
  std::filesystem::remove(directory.path() / "tokenizer_config.json");
  const auto model = directory.open();
  CHECK(model->chat_template().text.empty());
  CHECK(model->tokenizer().bos == -1);
  CHECK(model->tokenizer().ends == std::vector<TokenId>{2, 0});
}

TEST_CASE("Texts end at the tokens that any of the files names") {
  const Directory directory;
  directory.write("generation_config.json", {{"eos_token_id", {9, 2}}});
  directory.write("tokenizer_config.json", {{"eos_token", {{"content", "<|im_start|>"}}}});
  CHECK(directory.open()->tokenizer().ends == std::vector<TokenId>{2, 9, 1, 0});
  directory.write("generation_config.json", {{"eos_token_id", 296}});
  check_unreadable("eos_token_id is 296", [&] { return directory.open(); });
  directory.write("generation_config.json", {{"eos_token_id", -1}});
  check_unreadable("'eos_token_id'", [&] { return directory.open(); });
  directory.write("generation_config.json", {{"eos_token_id", {-1}}});
  check_unreadable("'eos_token_id'", [&] { return directory.open(); });
}

TEST_CASE("Special tokens may be texts or objects, of the vocabulary") {
  const Directory directory;
  directory.write("tokenizer_config.json", {{"bos_token", "<|im_end|>"}, {"eos_token", nullptr}});
  CHECK(directory.open()->tokenizer().bos == 2);
  directory.write("tokenizer_config.json", {{"bos_token", {{"content", "<|im_start|>"}}}});
  CHECK(directory.open()->tokenizer().bos == 1);
  directory.write("tokenizer_config.json", {{"bos_token", "<s>"}});
  check_unreadable("'<s>', which is no token", [&] { return directory.open(); });
  directory.write("tokenizer_config.json", {{"bos_token", 1}});
  check_unreadable("'bos_token' is no text", [&] { return directory.open(); });
}

TEST_CASE("A chat template is a text, the default of a list, or a file of its own") {
  const Directory directory;
  directory.write("tokenizer_config.json", {{"chat_template", "text"}});
  CHECK(read_chat_template(directory.path()) == "text");
  const json other = {{"name", "tool_use"}, {"template", "other"}};
  const json named = {{"name", "default"}, {"template", "listed"}};
  directory.write("tokenizer_config.json", {{"chat_template", {other, named}}});
  CHECK(read_chat_template(directory.path()) == "listed");
  directory.write("tokenizer_config.json", {{"chat_template", json::array({other})}});
  CHECK(read_chat_template(directory.path()).empty());
  directory.write("tokenizer_config.json", {{"chat_template", json::array({1})}});
  check_unreadable("'chat_template'", [&] { return read_chat_template(directory.path()); });
  directory.write("tokenizer_config.json", {{"chat_template", 1}});
  check_unreadable("'chat_template'", [&] { return read_chat_template(directory.path()); });
  write_file(directory.path() / "chat_template.jinja", "jinja");
  CHECK(read_chat_template(directory.path()) == "jinja");
}

TEST_CASE("A chat template's tokens are those that tokenizer_config.json names") {
  const Directory directory;
  directory.write("tokenizer_config.json",
                  {{"bos_token", {{"content", "<|im_start|>"}}}, {"eos_token", "<|im_end|>"}});
  CHECK(directory.open()->chat_template().bos == "<|im_start|>");
  CHECK(directory.open()->chat_template().eos == "<|im_end|>");
}

TEST_CASE("Recommended sampling is that of generation_config.json") {
  const Directory directory;
  const auto sampling = [&](const json& generation) {
    directory.write("generation_config.json", generation);
    return directory.open()->sampling();
  };
  CHECK_FALSE(sampling({{"temperature", 0.6}}).temperature.has_value());
  const SamplingDefaults all = sampling({{"do_sample", true},
                                         {"temperature", 0.6},
                                         {"top_k", 20},
                                         {"top_p", 0.95},
                                         {"min_p", 0.01},
                                         {"repetition_penalty", 1.05},
                                         {"stop_strings", json::array({"a", "", "b"})}});
  CHECK(all.temperature == 0.6f);
  CHECK(all.top_k == 20);
  CHECK(all.top_p == 0.95f);
  CHECK(all.min_p == 0.01f);
  CHECK(all.repetition_penalty == 1.05f);
  CHECK(all.stop_strings == std::vector<std::string>{"a", "b"});
  const SamplingDefaults plain =
      sampling({{"do_sample", true}, {"top_k", -1}, {"top_p", 0}, {"stop_strings", "x"}});
  CHECK(plain.temperature == 1.0f);
  CHECK_FALSE(plain.top_k.has_value());
  CHECK_FALSE(plain.top_p.has_value());
  CHECK(plain.stop_strings == std::vector<std::string>{"x"});
  for (const json& wrong :
       {json{{"do_sample", true}, {"temperature", -1}}, json{{"do_sample", true}, {"top_k", 1e300}},
        json{{"repetition_penalty", 0}}}) {
    check_unreadable("has no meaning", [&] { return sampling(wrong); });
  }
  check_unreadable("'do_sample'", [&] { return sampling({{"do_sample", 1}}); });
}

TEST_CASE("A model without a name has that of its directory") {
  const Directory directory;
  CHECK(directory.open()->config().name == "tiny");
  json config = directory.read("config.json");
  config.erase("_name_or_path");
  directory.write("config.json", config);
  const std::string name = directory.path().filename().string();
  CHECK(directory.open()->config().name == name);
  CHECK(open_model(directory.path() / "")->config().name == name);
}

TEST_CASE("A vocabulary may be smaller than the embedding, never larger") {
  const Directory directory;
  json config = directory.read("config.json");
  json tokenizer = directory.read("tokenizer.json");
  REQUIRE(tokenizer["model"]["merges"].back() == "er e");
  tokenizer["model"]["merges"].erase(tokenizer["model"]["merges"].size() - 1);
  tokenizer["model"]["vocab"].erase("ere");
  directory.write("tokenizer.json", tokenizer);
  const auto model = directory.open();
  REQUIRE(model->tokenizer().tokens.size() == 296);
  CHECK(model->tokenizer().kinds[295] == text::TokenKind::kUnused);

  tokenizer["model"]["vocab"]["extra"] = 296;
  directory.write("tokenizer.json", tokenizer);
  check_unreadable("297 tokens", [&] { return directory.open(); });
}

}  // namespace
}  // namespace incipit::model
