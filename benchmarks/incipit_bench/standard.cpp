// SPDX-License-Identifier: Apache-2.0
#include "standard.h"

#include <cstddef>

#include "requests.h"

namespace bench {

namespace {

using incipit::GenerateParams;

/// The first `count` characters of UTF-8.
std::string_view first_characters(std::string_view text, std::size_t count) {
  std::size_t end = 0;
  for (; end < text.size(); ++end) {
    const bool begins = (static_cast<unsigned char>(text[end]) & 0xC0) != 0x80;
    if (begins && count-- == 0) break;
  }
  return text.substr(0, end);
}

/// Runs the workload's calls and keeps what they took.
class Runner {
 public:
  Runner(incipit::Engine& engine, const Yardstick& yardstick, const StandardTexts& texts)
      : engine_(engine), yardstick_(yardstick), texts_(texts) {}

  /// `samples` texts of `new_tokens` each, behind `front` and `rest`.
  Batch run(const std::string& front, const std::string& rest, std::size_t samples,
            std::size_t new_tokens) {
    return run_at_once(samples, new_tokens, [&](std::size_t, const GenerateParams& params) {
      return engine_.generate_with_cache(front, rest, params);
    });
  }

  Metric prefill_512() {
    Metric metric{.name = "prefill_512_tok_s", .unit = "tok/s", .limit = "products"};
    const double tokens = static_cast<double>(engine_.tokenize(texts_.short_prompts[0]).size());
    for (const std::string& prompt : texts_.short_prompts) {
      const Batch batch = run({}, prompt, 1, 1);
      metric.add(tokens / batch.seconds, prefill_fraction(batch));
    }
    return metric;
  }

  Metric prefill_4096() {
    Metric metric{.name = "prefill_4096_s", .unit = "s", .limit = "products"};
    for (const std::string& opening : texts_.openings) {
      const Batch batch = run({}, opening + texts_.document + texts_.long_questions[0], 1, 1);
      metric.add(batch.seconds, prefill_fraction(batch));
    }
    return metric;
  }

  /// Time to first token of each question but the first `skipped`; the document is in the cache.
  Metric first_token(const std::string& name, const std::vector<std::string>& questions,
                     std::size_t skipped) {
    Metric metric{.name = name, .unit = "ms", .limit = "products"};
    for (std::size_t i = skipped; i < questions.size(); ++i) {
      const Batch batch = run(texts_.document, questions[i], 1, 1);
      metric.add(1e3 * batch.seconds, prefill_fraction(batch));
    }
    return metric;
  }

  /// Adds the tokens per second of all samples together: the time for `tokens` each less the time
  /// for one, with the prompt in the cache.
  void add_decode(Metric& metric, const std::string& front, const std::string& rest,
                  std::size_t samples, std::size_t tokens) {
    run(front, rest, 1, 1);
    const double first = run(front, rest, 1, 1).seconds;
    const Batch batch = run(front, rest, samples, tokens);
    const double time = batch.seconds - first;
    const double steps = static_cast<double>(tokens - 1), count = static_cast<double>(samples);
    const double prompt = static_cast<double>(batch.results[0].prompt_ids.size());
    metric.add(count * steps / time,
               yardstick_.decode_fraction(steps, kv_tokens_read(steps, prompt, count), time));
  }

  Metric decode_short() {
    Metric metric{.name = "decode_1_tok_s", .unit = "tok/s", .limit = "memory"};
    for (int i = 0; i < 3; ++i) add_decode(metric, {}, texts_.story, 1, 129);
    return metric;
  }

  Metric decode_document(std::size_t samples) {
    const std::string name = "decode_" + std::to_string(samples) + "_at_4096";
    Metric metric{.name = name, .unit = "tok/s", .limit = "memory"};
    for (std::size_t i = 0; i < 3; ++i) {
      add_decode(metric, texts_.document, texts_.long_questions[i], samples, 64);
    }
    return metric;
  }

 private:
  std::optional<double> prefill_fraction(const Batch& batch) const {
    const double cached = static_cast<double>(batch.results[0].reused_tokens);
    const double prompt = static_cast<double>(batch.results[0].prompt_ids.size());
    return yardstick_.prefill_fraction(1, prompt - cached, cached, batch.seconds);
  }

  incipit::Engine& engine_;
  const Yardstick& yardstick_;
  const StandardTexts& texts_;
};

}  // namespace

StandardTexts standard_texts(std::string_view document) {
  constexpr std::size_t kShortPrompt = 2150;  // characters: about 471 tokens
  StandardTexts texts;
  texts.document = document;
  texts.warm_up = "Warm up text.";
  texts.story = "Once upon a time";
  for (int i = 0; i < 5; ++i) {
    texts.short_prompts.push_back(std::to_string(i) + "# ");
    texts.short_prompts.back() += first_characters(document, kShortPrompt);
  }
  for (int i = 0; i < 3; ++i) texts.openings.push_back(std::to_string(i) + ". ");
  int number = 0;
  for (const char* role :
       {"manager", "designer", "expert", "engineer", "marketing", "user", "leader", "team"}) {
    texts.long_questions.push_back(
        "Question " + std::to_string(number) + ": what did the " + role +
        " say about the budget, the remote control, the design of the buttons and the plan for "
        "the next meeting, and who was asked to prepare the report on materials before that "
        "meeting takes place, and why was it needed at that time by the other people? Answer in "
        "one number.\nAnswer:");
    texts.short_questions.push_back(" Then " + std::to_string(7 * number) +
                                    " is next. What is the total here? It is");
    ++number;
  }
  return texts;
}

Json to_json(const StandardTexts& texts) {
  return {{"document", texts.document},
          {"warm_up", texts.warm_up},
          {"story", texts.story},
          {"short_prompts", texts.short_prompts},
          {"openings", texts.openings},
          {"long_questions", texts.long_questions},
          {"short_questions", texts.short_questions}};
}

std::vector<Metric> measure_standard(incipit::Engine& engine, const Yardstick& yardstick,
                                     const StandardTexts& texts) {
  Runner runner(engine, yardstick, texts);
  runner.run({}, texts.warm_up, 1, 4);
  std::vector<Metric> metrics = {runner.prefill_512(), runner.prefill_4096()};
  runner.run(texts.document, texts.long_questions[0], 1, 1);
  metrics.push_back(runner.first_token("ttft_64_ms", texts.long_questions, 1));
  metrics.push_back(runner.first_token("ttft_16_ms", texts.short_questions, 0));
  metrics.push_back(runner.decode_short());
  for (const std::size_t samples : {1u, 8u, 16u})
    metrics.push_back(runner.decode_document(samples));
  return metrics;
}

}  // namespace bench
