// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "incipit/compressor.h"
#include "model/model_file.h"
#include "support/catch.h"
#include "text/tokenizer.h"

// The rough counter against the real model's tokenizer, on public data.

namespace incipit {
namespace {

using nlohmann::json;

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// All texts of a JSON document that stand behind one of the names.
void append_texts(std::string& out, const json& value, std::string_view name, std::size_t most) {
  if (out.size() > most) return;
  for (const auto& [key, member] : value.items()) {
    if (member.is_structured()) append_texts(out, member, name, most);
    if (value.is_object() && key == name && member.is_string()) {
      out += member.get<std::string>() + "\n";
    }
  }
}

TEST_CASE("is within 15 % of the real tokenizer on prose, chats, tool output and code") {
  const std::filesystem::path model_path = INCIPIT_TEST_MODEL, data = INCIPIT_SHARED_DATA;
  if (model_path.empty() || !std::filesystem::exists(model_path) ||
      !std::filesystem::exists(data)) {
    WARN("skipped: there is no SmolLM2 model file, or no public data");
    return;
  }
  constexpr std::size_t kMost = 200000;
  struct Source {
    std::string file, name;
  };
  const auto file = model::open_model(model_path);
  const text::Tokenizer tokenizer(file->tokenizer());
  for (const Source& source : {Source{"qmsum/test.jsonl", "content"},
                               {"gsm8k/test.jsonl", "question"},
                               {"mtbench/mtbench101.jsonl", "bot"},
                               {"mtbench/mtbench101.jsonl", "user"},
                               {"taubench/gpt-4o-airline.json", "content"},
                               {"sweagent/katy.traj", "observation"},
                               {"sweagent/katy.traj", "thought"},
                               {"sweagent/i_got_id_demo.traj", "observation"}}) {
    std::string text;
    const std::string content = read(data / source.file);
    const bool is_lines = source.file.find(".jsonl") != std::string::npos;
    for (std::size_t begin = 0; begin < content.size() && text.size() < kMost;) {
      const std::size_t end =
          is_lines ? std::min(content.find('\n', begin), content.size()) : content.size();
      append_texts(text, json::parse(content.substr(begin, end - begin)), source.name, kMost);
      begin = end + 1;
    }
    REQUIRE(text.size() > 1000);
    const text::TextPiece piece{text, false};
    const std::size_t real = tokenizer.encode(std::span(&piece, 1)).size();
    const std::size_t rough = rough_token_counter().text(text);
    INFO(source.file << " " << source.name << ": " << rough << " instead of " << real);
    CHECK(rough * 100 <= real * 115);
    CHECK(rough * 100 >= real * 85);
  }
}

}  // namespace
}  // namespace incipit
