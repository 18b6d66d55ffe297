// SPDX-License-Identifier: Apache-2.0
#include <incipit/engine.h>
#include <incipit/self_consistency.h>
#include <unistd.h>

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "orders.h"
#include "support.h"

// Takes many samples over one shared prompt and lets them vote: on the orders of the quickstart, or
// on a document and a question of your own.

namespace {

using Json = nlohmann::ordered_json;

const std::map<std::string, incipit::StopRule> kStopRules = {
    {"none", incipit::stop::None{}},
    {"lossless", incipit::stop::Lossless{}},
    {"certified", incipit::stop::Certified{}},
    {"horizon", incipit::stop::Horizon{}}};

struct Options {
  std::string model, document, question, json, data = INCIPIT_EXAMPLES_DATA;
  std::string stop = "none", extract = "last_line";
  std::size_t samples = 16;
  unsigned threads = 0;
  bool chat = false;
  incipit::GenerateParams params = {};
};

incipit::Extractor extractor_of(const std::string& name) {
  const auto argument = [&](const std::string& kind) -> const char* {
    return name.compare(0, kind.size(), kind) == 0 ? name.c_str() + kind.size() : nullptr;
  };
  if (name == "number") return incipit::extract::last_number();
  if (name == "last_line") return incipit::extract::last_line();
  if (name == "letter") return incipit::extract::letter();
  if (const char* field = argument("json:")) return incipit::extract::json_field(field);
  if (const char* pattern = argument("regex:")) return incipit::extract::regex(pattern);
  throw std::runtime_error(
      "--extract takes number, last_line, letter, json:FIELD or regex:R, not " + name);
}

incipit::SelfConsistencyOptions sampler_options(const Options& options) {
  incipit::SelfConsistencyOptions sampler;
  sampler.samples = options.samples;
  sampler.stop = kStopRules.at(options.stop);
  sampler.extract = extractor_of(options.extract);
  sampler.temperatures = {options.params.temperature};  // 0 is what was asked for, too
  return sampler;
}

/// One line of a terminal that always shows the newest vote; nothing where nobody looks.
class ProgressLine {
 public:
  explicit ProgressLine(std::size_t samples) : samples_(samples) {}

  bool operator()(const incipit::SampleEvent& event) {
    using Kind = incipit::SampleEvent::Kind;
    if (!terminal_) return true;
    pieces_ += event.kind == Kind::kText;
    if (event.kind == Kind::kStopped) {
      std::cerr << "\r\x1b[K" << std::flush;
    } else if (event.kind != Kind::kText || pieces_ % 16 == 0) {
      std::cerr << "\r\x1b[K" << event.counted << " of " << samples_ << " votes";
      if (!event.tally.empty()) {
        const incipit::Vote& leader = event.tally.front();
        std::cerr << ", " << leader.count << " for " << leader.answer.substr(0, 50);
      }
      std::cerr << ", " << pieces_ << " pieces of text" << std::flush;
    }
    return true;
  }

 private:
  const std::size_t samples_;
  const bool terminal_ = isatty(STDERR_FILENO) == 1;
  std::size_t pieces_ = 0;
};

double seconds(std::chrono::microseconds time) { return examples::milliseconds(time) / 1000.0; }

void print_chart(std::ostream& out, const std::vector<incipit::Vote>& tally) {
  constexpr std::size_t kWidth = 40, kRows = 8;
  for (std::size_t i = 0; i < std::min(tally.size(), kRows); ++i) {
    const incipit::Vote& vote = tally[i];
    const std::size_t bar = std::max<std::size_t>(1, vote.count * kWidth / tally[0].count);
    out << std::setw(5) << vote.count << " " << std::left << std::setw(kWidth + 1)
        << std::string(bar, '#') << std::right << vote.answer << "\n";
  }
  if (tally.size() > kRows) out << "      and " << tally.size() - kRows << " others\n";
}

void print_usage(std::ostream& out, const Options& options,
                 const incipit::SelfConsistencyResult& result) {
  const incipit::SamplingUsage& usage = result.usage;
  out << std::fixed << std::setprecision(1) << seconds(usage.time)
      << " s: " << usage.prefilled_tokens << " prompt tokens computed, " << usage.shared_tokens
      << " saved by sharing; " << usage.decoded_tokens << " tokens generated, "
      << usage.cancelled_tokens << " of them in vain";
  if (result.stopped_after > 0 && result.stopped_after < options.samples) {
    const std::size_t spared =
        (options.samples - result.stopped_after) * usage.decoded_tokens / result.stopped_after;
    const std::size_t saved = spared - std::min(spared, usage.cancelled_tokens);
    out << ", about " << saved << " saved by stopping after " << result.stopped_after << " of "
        << options.samples << " samples";
  }
  out << "\n" << std::flush;
}

Json to_json(const incipit::SelfConsistencyResult& result) {
  Json tally = Json::array(), samples = Json::array();
  for (const incipit::Vote& vote : result.tally) {
    tally.push_back({{"key", vote.key}, {"count", vote.count}});
  }
  for (const incipit::Sample& sample : result.samples) {
    samples.push_back({{"text", sample.result.text},
                       {"output_ids", sample.result.token_ids},
                       {"key", sample.key ? Json(*sample.key) : Json(nullptr)},
                       {"mean_logprob", sample.mean_logprob},
                       {"status", std::string(to_string(sample.status))}});
  }
  const incipit::SamplingUsage& usage = result.usage;
  return {{"answer", result.answer ? Json(*result.answer) : Json(nullptr)},
          {"tally", tally},
          {"samples", samples},
          {"stopped_after", result.stopped_after},
          {"usage",
           {{"prefilled_tokens", usage.prefilled_tokens},
            {"shared_tokens", usage.shared_tokens},
            {"decoded_tokens", usage.decoded_tokens},
            {"cancelled_tokens", usage.cancelled_tokens},
            {"seconds", seconds(usage.time)}}}};
}

int ask_document(const Options& options, incipit::Engine& engine, std::ostream& out) {
  const std::string document = examples::read_file(options.document);
  const incipit::SelfConsistencySampler sampler(engine, sampler_options(options));
  ProgressLine progress(options.samples);
  const auto on_event = [&](const incipit::SampleEvent& event) { return progress(event); };
  incipit::SelfConsistencyResult result;
  if (options.chat) {
    const std::vector<incipit::Message> messages = {{incipit::Role::kSystem, document},
                                                    {incipit::Role::kUser, options.question}};
    result = sampler.sample(messages, options.params, on_event);
  } else {
    result = sampler.sample(document, options.question, options.params, on_event);
  }
  print_chart(out, result.tally);
  out << "Answer: " << result.answer.value_or("none") << "\n";
  print_usage(out, options, result);
  if (!options.json.empty()) examples::write_json(options.json, to_json(result), -1);
  return 0;
}

/// How many answers were right, over all orders.
struct Score {
  std::size_t vote = 0, greedy = 0;
  double single = 0.0;  // mean over the samples of each order
  double seconds = 0.0;
};

void ask_order(const Options& options, incipit::Engine& engine, const std::string& static_text,
               const examples::Question& question, std::ostream& out, Score& score) {
  const incipit::SelfConsistencySampler sampler(engine, sampler_options(options));
  ProgressLine progress(options.samples);
  incipit::GenerateParams params = options.params;
  const auto result =
      sampler.sample(static_text, examples::prompt_of(question), params,
                     [&](const incipit::SampleEvent& event) { return progress(event); });
  params.temperature = 0.0f;
  const auto greedy =
      engine.generate_with_cache(static_text, examples::prompt_of(question), params);

  std::size_t right = 0;
  for (std::size_t i = 0; i < result.stopped_after; ++i) {
    right += examples::answer_of(result.samples[i].result.text) == question.expected;
  }
  const bool vote_right = result.answer == question.expected;
  score.vote += vote_right;
  score.single += static_cast<double>(right) / static_cast<double>(result.stopped_after);
  score.greedy += examples::answer_of(greedy.text) == question.expected;
  score.seconds += seconds(result.usage.time);
  out << std::setw(3) << right << " of " << result.stopped_after << " right; the vote is "
      << (vote_right ? "right: " : "wrong: ") << result.answer.value_or("none") << "\n"
      << std::flush;
  if (!vote_right) print_chart(out, result.tally);
}

int ask_orders(const Options& options, incipit::Engine& engine, std::ostream& out) {
  const std::string static_text = examples::read_file(options.data + "/orders_prompt.txt");
  const auto questions = examples::read_questions(options.data + "/orders_vote.tsv");
  Options one = options;
  one.params.max_tokens = 48;
  one.params.stop_strings = {"\n"};
  Score score;
  for (const examples::Question& question : questions) {
    ask_order(one, engine, static_text, question, out, score);
    ++one.params.seed;
  }
  out << std::fixed << std::setprecision(1) << "\nRight of " << questions.size()
      << " orders: " << score.vote << " by the vote of " << options.samples << " samples, "
      << score.single << " by a single sample, " << score.greedy << " by the likeliest tokens; "
      << score.seconds / static_cast<double>(questions.size()) << " s for each vote.\n";
  if (!options.json.empty()) {
    examples::write_json(options.json,
                         {{"orders", questions.size()},
                          {"right_by_vote", score.vote},
                          {"right_by_single_sample", score.single},
                          {"right_greedy", score.greedy}},
                         1);
  }
  return 0;
}

int run(Options options) {
  std::ostream& out = examples::console(options.json);
  incipit::EngineOptions engine_options;
  engine_options.model = options.model;
  engine_options.threads = options.threads;
  incipit::Engine engine(engine_options);
  return options.document.empty() ? ask_orders(options, engine, out)
                                  : ask_document(options, engine, out);
}

void declare(CLI::App& app, Options& options) {
  incipit::GenerateParams& params = options.params;
  app.add_option("--model", options.model, "GGUF file or Hugging Face directory")->required();
  auto* document = app.add_option("--document", options.document,
                                  "Ask about this text instead of the built-in orders");
  auto* question = app.add_option("--question", options.question, "What to ask; follows the text");
  document->needs(question);
  question->needs(document);
  app.add_flag("--chat", options.chat,
               "The document is the system message, the question a user message")
      ->needs(document);
  app.add_option("--samples", options.samples, "Samples to take at most")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--seed", params.seed, "The same seed gives the same samples")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--temperature", params.temperature, "Of all samples")->capture_default_str();
  app.add_option("--max-tokens", params.max_tokens, "Tokens of a sample at most")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--stop", options.stop, "none, lossless, certified or horizon")
      ->check(CLI::IsMember(&kStopRules))
      ->capture_default_str();
  app.add_option("--extract", options.extract,
                 "Where the answer is: number, last_line, letter, json:FIELD or regex:R")
      ->capture_default_str();
  app.add_option("--threads", options.threads, "0: the CPUs that this process may use")
      ->capture_default_str();
  app.add_option("--data", options.data, "Folder of the orders")->capture_default_str();
  app.add_option("--json", options.json, "Write the result here as JSON; -: stdout");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Takes many samples over one shared prompt and lets them vote.", "self_consistency");
  Options options;
  options.params.temperature = 1.0f;
  declare(app, options);
  return examples::run_main(app, argc, argv, [&] { return run(options); });
}
