// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <ctime>
#include <iomanip>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "compression_eval/conversation.h"
#include "compression_eval/generate.h"
#include "examples/support.h"
#include "incipit/compressor.h"

// What the Compressor itself takes, on one core: a long conversation at once, and a turn behind a
// long history. Counting tokens costs next to nothing here.

namespace {

using incipit::Compressor;
using incipit::CompressorOptions;
using incipit::Message;
using incipit::Role;
using incipit::TokenCounter;
using Json = nlohmann::ordered_json;

struct Options {
  std::size_t tokens = 50'000, budget = 20'000, turns = 10'000, turn_budget = 4096, repeat = 5;
  std::string json;
};

void declare(CLI::App& app, Options& options) {
  app.add_option("--tokens", options.tokens, "Of the conversation that is compressed at once")
      ->check(CLI::Range(std::size_t{1000}, std::size_t{10'000'000}))
      ->capture_default_str();
  app.add_option("--budget", options.budget, "That it shall fit")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--turns", options.turns, "Of history; the tenth part of it more is measured")
      ->check(CLI::Range(std::size_t{10}, std::size_t{1'000'000}))
      ->capture_default_str();
  app.add_option("--turn-budget", options.turn_budget, "Of the prompts of these turns")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--repeat", options.repeat, "Each time is the least of so many")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1000}))
      ->capture_default_str();
  app.add_option("--json", options.json, "Write the results here; -: stdout, all else to stderr");
}

/// Of the CPU: what others do on it is nobody's business here.
double milliseconds_since(std::clock_t begin) {
  return 1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

/// By bytes: as many tokens as the rough counter finds in `text`, about.
TokenCounter cheap_counter(const std::string& text) {
  const double bytes_per_token = static_cast<double>(text.size()) /
                                 static_cast<double>(incipit::rough_token_counter().text(text));
  constexpr std::size_t kMessage = 5;
  const auto count = [bytes_per_token](std::size_t bytes) {
    return static_cast<std::size_t>(static_cast<double>(bytes) / bytes_per_token) + 1;
  };
  TokenCounter counter;
  counter.text = [count](std::string_view part) { return count(part.size()); };
  counter.message = [count](const Message& message) {
    return count(message.text.size()) + kMessage;
  };
  return counter;
}

std::vector<Message> some_chat(bool chinese, std::size_t turns) {
  bench::GeneratorOptions generator;
  generator.conversations = 2;
  generator.turns = turns;
  return bench::merge_turns(bench::generate(generator)[chinese ? 1 : 0].turns).messages;
}

TokenCounter counter_of(const std::vector<Message>& chat) {
  std::string text;
  for (const Message& message : chat) {
    text += message.text;
    if (text.size() > 100'000) break;
  }
  return cheap_counter(text);
}

/// All at once, in milliseconds.
double compress_time(const std::vector<Message>& chat, const Options& options,
                     const TokenCounter& counter) {
  std::size_t tokens = 0, end = 0;
  while (end < chat.size() && tokens < options.tokens) tokens += counter.message(chat[end++]);
  if (tokens < options.tokens) throw std::runtime_error("the conversation is too short");
  const std::span<const Message> conversation = std::span(chat).first(end);
  CompressorOptions compressor;
  compressor.token_budget = options.budget;
  double least = 1e9;
  for (std::size_t i = 0; i < options.repeat; ++i) {
    const std::clock_t begin = std::clock();
    const incipit::CompressedPrompt prompt =
        Compressor::compress(conversation, compressor, counter);
    least = std::min(least, milliseconds_since(begin));
    if (prompt.tokens_after > options.budget) throw std::runtime_error("over budget");
  }
  return least;
}

/// Of each turn behind the history, in milliseconds, ascending. Turns are the same in every
/// repetition, so that the least of a turn is what it takes where nobody interrupts.
std::vector<double> turn_times(const std::vector<Message>& chat, const Options& options,
                               const TokenCounter& counter) {
  std::vector<double> times;
  for (std::size_t i = 0; i < options.repeat; ++i) {
    CompressorOptions compressor_options;
    compressor_options.token_budget = options.turn_budget;
    Compressor compressor(compressor_options, counter);
    std::size_t turn = 0;
    double time = 0;
    for (const Message& message : chat) {
      const std::clock_t begin = std::clock();
      compressor.add(message);
      if (message.role == Role::kUser) compressor.apply();
      time += milliseconds_since(begin);
      if (message.role == Role::kUser) continue;
      if (turn >= options.turns) {
        const std::size_t at = turn - options.turns;
        if (at == times.size()) times.push_back(time);
        times[at] = std::min(times[at], time);
      }
      ++turn;
      time = 0;
    }
  }
  std::sort(times.begin(), times.end());
  return times;
}

Json measure(bool chinese, const Options& options, std::ostream& out) {
  const std::size_t turns = options.turns + options.turns / 10;
  // A turn has more than ten tokens.
  const std::vector<Message> chat = some_chat(chinese, std::max(turns, options.tokens / 10));
  const TokenCounter counter = counter_of(chat);
  const double whole = compress_time(chat, options, counter);
  std::vector<Message> first(chat);
  std::size_t replies = 0;
  const auto end = std::find_if(first.begin(), first.end(), [&](const Message& message) {
    return (replies += message.role == Role::kAssistant) == turns;
  });
  first.erase(end == first.end() ? end : end + 1, first.end());
  const std::vector<double> times = turn_times(first, options, counter);
  if (times.empty()) throw std::runtime_error("the conversation has too few turns");
  const double median = times[times.size() / 2], slowest = times.back();
  out << (chinese ? "Chinese: " : "English: ") << std::fixed << std::setprecision(3)
      << options.tokens << " tokens in " << whole << " ms; a turn behind " << options.turns
      << " in " << median << " ms, 99 % in " << times[times.size() * 99 / 100]
      << ", the slowest in " << slowest << "\n";
  return {{"language", chinese ? "zh" : "en"},
          {"tokens", options.tokens},
          {"compress_ms", whole},
          {"history_turns", options.turns},
          {"turn_ms_median", median},
          {"turn_ms_p99", times[times.size() * 99 / 100]},
          {"turn_ms_max", slowest}};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Measures the time that the Compressor itself takes.", "compressor_benchmark");
  Options options;
  declare(app, options);
  return examples::run_main(app, argc, argv, [&options] {
    std::ostream& out = examples::console(options.json);
    Json results = Json::array();
    for (const bool chinese : {false, true}) results.push_back(measure(chinese, options, out));
    if (!options.json.empty()) examples::write_json(options.json, results, 2);
    return 0;
  });
}
