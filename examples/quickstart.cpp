// SPDX-License-Identifier: Apache-2.0
#include <incipit/engine.h>
#include <incipit/version.h>

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "orders.h"
#include "support.h"

// A long prompt of worked examples, computed once, answers one order after the other.

namespace {

using Json = nlohmann::ordered_json;
using examples::Question;

constexpr std::size_t kVerified = 3;     // questions that are also answered without a cache
constexpr std::size_t kFewExamples = 4;  // of the short prompt

struct Options {
  std::string model, json, data = INCIPIT_EXAMPLES_DATA;
  unsigned threads = 0;
  bool verify_all = false;
};

struct Row {
  incipit::GenerateResult cached = {};
  std::optional<incipit::GenerateResult> uncached = {};
};

incipit::GenerateParams params() {
  incipit::GenerateParams params;
  params.max_tokens = 32;
  params.stop_strings = {"\n"};
  params.logprobs = 1;  // compared with those of the uncached run, to the last bit
  return params;
}

std::string answer_of(const incipit::GenerateResult& result) {
  return examples::answer_of(result.text);
}

bool is_right(const incipit::GenerateResult& result, const Question& question) {
  return answer_of(result) == question.expected;
}

bool same(const incipit::GenerateResult& a, const incipit::GenerateResult& b) {
  return a.token_ids == b.token_ids && a.text == b.text && a.logprobs == b.logprobs;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// Times to first token without a cache, and of the questions that followed the first one.
struct Times {
  double cold = 0, warm = 0;  // medians, in milliseconds
  double speedup() const { return cold / warm; }
};

Times times_of(const std::vector<Row>& rows) {
  std::vector<double> cold, warm;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i > 0) warm.push_back(examples::milliseconds(rows[i].cached.time_to_first_token));
    if (rows[i].uncached)
      cold.push_back(examples::milliseconds(rows[i].uncached->time_to_first_token));
  }
  return {median(cold), median(warm)};
}

void print_row(std::ostream& out, const std::string& label, const incipit::GenerateResult& result,
               const std::string& remark) {
  out << std::setw(3) << label << std::setw(9) << result.prompt_ids.size() << std::setw(9)
      << result.reused_tokens << std::setw(14) << std::fixed << std::setprecision(1)
      << examples::milliseconds(result.time_to_first_token) << "   " << std::left << std::setw(44)
      << answer_of(result) << std::right << remark << std::endl;
}

Json to_json(const std::vector<Question>& questions, const std::vector<Row>& rows) {
  Json array = Json::array();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    array.push_back(
        {{"prompt_tokens", row.cached.prompt_ids.size()},
         {"reused_tokens", row.cached.reused_tokens},
         {"time_to_first_token_ms", examples::milliseconds(row.cached.time_to_first_token)},
         {"answer", answer_of(row.cached)},
         {"answer_without_cache", row.uncached ? Json(answer_of(*row.uncached)) : Json(nullptr)},
         {"expected", questions[i].expected}});
  }
  return array;
}

int run(const Options& options) {
  std::ostream& out = examples::console(options.json);
  const std::string static_text = examples::read_file(options.data + "/orders_prompt.txt");
  const auto questions = examples::read_questions(options.data + "/orders_questions.tsv");

  incipit::EngineOptions engine_options;
  engine_options.model = options.model;
  engine_options.threads = options.threads;
  incipit::Engine engine(engine_options);
  const incipit::ModelInfo& model = engine.model();
  out << "incipit " << INCIPIT_VERSION_MAJOR << "." << INCIPIT_VERSION_MINOR << "."
      << INCIPIT_VERSION_PATCH << ": " << model.name << ", " << model.parameters / 1'000'000
      << "M parameters, " << model.threads << " threads, " << model.numerics << "\n\n"
      << "With the cache: one static text of instruction and worked examples, then an order.\n"
      << "  #   prompt   reused  1st token ms   answer\n";

  std::vector<Row> rows;
  std::size_t right = 0;
  for (const Question& question : questions) {
    Row& row = rows.emplace_back();
    row.cached = engine.generate_with_cache(static_text, examples::prompt_of(question), params());
    right += is_right(row.cached, question);
    print_row(out, std::to_string(rows.size()), row.cached,
              is_right(row.cached, question) ? "right" : "wrong");
  }

  out << "\nThe same without a cache:\n";
  bool all_same = true;
  const std::size_t verified = options.verify_all ? rows.size() : std::min(kVerified, rows.size());
  for (std::size_t i = 0; i < verified; ++i) {
    rows[i].uncached = engine.generate(static_text + examples::prompt_of(questions[i]), params());
    const bool equal = same(rows[i].cached, *rows[i].uncached);
    all_same = all_same && equal;
    print_row(out, std::to_string(i + 1), *rows[i].uncached, equal ? "same" : "DIFFERENT");
  }

  const std::string short_text = examples::first_examples(static_text, kFewExamples);
  std::size_t right_with_few = 0;
  for (const Question& question : questions) {
    right_with_few += is_right(
        engine.generate_with_cache(short_text, examples::prompt_of(question), params()), question);
  }

  const Times times = times_of(rows);
  out << "\nTime to first token, median: " << times.cold << " ms without the cache, " << times.warm
      << " ms with it: " << times.speedup() << "x sooner.\n"
      << "Right: " << right << " of " << rows.size() << " with all examples, " << right_with_few
      << " with " << kFewExamples << " examples only.\n";
  if (!all_same) std::cerr << "quickstart: an answer differs from that without a cache\n";
  if (!options.json.empty()) {
    examples::write_json(options.json,
                         {{"questions", to_json(questions, rows)},
                          {"speedup", times.speedup()},
                          {"right", right},
                          {"right_with_4_examples", right_with_few}},
                         1);
  }
  return all_same ? 0 : examples::kFailure;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Reads a long prompt of worked examples once and answers ten orders over it.",
               "quickstart");
  Options options;
  app.add_option("--model", options.model, "GGUF file or Hugging Face directory")->required();
  app.add_option("--threads", options.threads, "0: the CPUs that this process may use");
  app.add_option("--data", options.data, "Folder of the orders")->capture_default_str();
  app.add_option("--json", options.json, "Write the table here as JSON; -: stdout");
  app.add_flag("--verify-all", options.verify_all,
               "Answer all questions without a cache too, not just the first three");
  return examples::run_main(app, argc, argv, [&] { return run(options); });
}
