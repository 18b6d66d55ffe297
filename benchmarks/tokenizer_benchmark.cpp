// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "base/file.h"
#include "examples/support.h"
#include "model/gguf.h"
#include "model/gguf_model.h"
#include "text/tokenizer.h"
#include "text/tokenizer_json.h"

// Bytes of text that a tokenizer encodes in a second, on one core: ordinary text, and texts of a
// megabyte in which it finds no place to stop.

namespace {

using namespace incipit;

constexpr std::size_t kBytes = 1'000'000;

text::Tokenizer open_tokenizer(const std::filesystem::path& file) {
  if (file.extension() != ".gguf") {
    return text::Tokenizer(
        text::parse_tokenizer_json(base::read_text_file(file, text::kMaxTokenizerJsonBytes)));
  }
  const model::GgufHeader header = model::read_gguf_header(base::ReadFile(file));
  return text::Tokenizer(model::read_gguf_tokenizer(header.metadata));
}

struct Text {
  std::string name;
  std::string bytes;
};

std::vector<Text> make_texts(const std::string& ordinary) {
  std::vector<Text> texts = {{"text", ordinary}};
  std::string letters;
  for (const char byte : ordinary) {
    if ((byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z')) letters += byte;
  }
  std::string unspaced;
  while (!letters.empty() && unspaced.size() < kBytes) unspaced += letters;
  std::mt19937 random(1);
  std::string noise(kBytes, ' ');
  std::generate(noise.begin(), noise.end(), [&] { return static_cast<char>('a' + random() % 26); });
  texts.push_back({"without_spaces", unspaced.substr(0, kBytes)});
  texts.push_back({"one_letter", std::string(kBytes, 'a')});
  texts.push_back({"spaces", std::string(kBytes, ' ')});
  texts.push_back({"random_letters", noise});
  return texts;
}

void report_speed(benchmark::State& state, std::size_t bytes) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}

void encode(benchmark::State& state, const text::Tokenizer& tokenizer, const std::string& text) {
  for (auto _ : state) benchmark::DoNotOptimize(tokenizer.encode(text));
  report_speed(state, text.size());
}

void decode(benchmark::State& state, const text::Tokenizer& tokenizer, const std::string& text) {
  const std::vector<TokenId> ids = tokenizer.encode(text);
  for (auto _ : state) benchmark::DoNotOptimize(tokenizer.decode(ids));
  report_speed(state, text.size());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What tokenizing takes", "tokenizer_benchmark");
  std::vector<std::string> files;
  std::string text_file;
  app.add_option("--tokenizer", files, "tokenizer.json or GGUF files")->required();
  app.add_option("--text", text_file, "A file of ordinary text")->required();
  return examples::run_main(app, argc, argv, [&] {
    constexpr std::uint64_t kMaxTextBytes = std::uint64_t{1} << 26;
    const std::vector<Text> texts = make_texts(base::read_text_file(text_file, kMaxTextBytes));
    std::vector<text::Tokenizer> tokenizers;
    for (const std::string& file : files) tokenizers.push_back(open_tokenizer(file));
    for (std::size_t i = 0; i < files.size(); ++i) {
      const std::string name = std::filesystem::path(files[i]).stem().string();
      const text::Tokenizer& tokenizer = tokenizers[i];
      for (const Text& text : texts) {
        benchmark::RegisterBenchmark(
            ("encode/" + name + "/" + text.name).c_str(),
            [&](benchmark::State& state) { encode(state, tokenizer, text.bytes); })
            ->Unit(benchmark::kMillisecond);
      }
      benchmark::RegisterBenchmark(("decode/" + name).c_str(), [&](benchmark::State& state) {
        decode(state, tokenizer, texts.front().bytes);
      })->Unit(benchmark::kMillisecond);
    }
    int count = 1;
    benchmark::Initialize(&count, argv);
    benchmark::RunSpecifiedBenchmarks();
    return 0;
  });
}
