// SPDX-License-Identifier: Apache-2.0
// The sampler over scripted samples, which end in any order.
#include "sampler/sampling_run.h"

#include <limits>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

#include "sampler/scripted_samples.h"
#include "support/catch.h"

using namespace incipit;
using namespace incipit::test;
using Kind = SampleEvent::Kind;

namespace {

SelfConsistencyOptions options_of(std::size_t samples, StopRule stop) {
  SelfConsistencyOptions options;
  options.samples = samples;
  options.stop = stop;
  options.extract = extract::last_line();
  options.key = keys::number_or_text();
  return options;
}

std::vector<Script> scripts_of(const std::vector<std::string>& texts) {
  std::vector<Script> scripts;
  for (const std::string& text : texts) {
    scripts.emplace_back();
    scripts.back().text = text;
  }
  return scripts;
}

SelfConsistencyResult run(ScriptedSamples& samples, const SelfConsistencyOptions& options,
                          const GenerateParams& params = {},
                          const SampleEventCallback& on_event = {}) {
  const auto submit = [&](GenerateParams own) { return samples.submit(std::move(own)); };
  return sampler::SamplingRun(options, params, submit, on_event).run();
}

/// What must not depend on the order in which samples end, nor on the waves.
std::string decision_of(const SelfConsistencyResult& result) {
  std::string out = result.answer.value_or("none") + " after " +
                    std::to_string(result.stopped_after) + ' ' + std::string(to_string(result.end));
  for (const Vote& vote : result.tally) {
    out += ' ' + vote.key + ':' + std::to_string(vote.count);
  }
  for (std::size_t i = 0; i < result.stopped_after; ++i) {
    out += ' ' + result.samples[i].key.value_or("none");
  }
  return out;
}

}  // namespace

TEST_CASE("all samples vote where no rule stops") {
  ScriptedSamples samples(scripts_of({"18", "7", "$18.00", "", "18."}));
  const auto result = run(samples, options_of(5, stop::None{}));
  CHECK(result.answer == "18");
  CHECK(result.winner == 0);
  CHECK(result.end == SamplingEnd::kAllTaken);
  CHECK(result.stopped_after == 5);
  REQUIRE(result.tally.size() == 2);
  CHECK(result.tally[0].key == "18");
  CHECK(result.tally[0].count == 3);
  CHECK(result.tally[1].key == "7");
  REQUIRE(result.samples.size() == 5);
  CHECK(result.samples[0].status == SampleStatus::kVoted);
  CHECK(result.samples[2].answer == "$18.00");
  CHECK(result.samples[2].key == "18");
  CHECK(result.samples[2].mean_logprob == -1.0);
  CHECK(result.samples[2].weight == 1.0);
  CHECK(result.samples[3].status == SampleStatus::kNoAnswer);
  CHECK_FALSE(result.samples[3].key);
  CHECK(samples.waits() == 1);  // all at once
  CHECK(samples.running() == 0);
  CHECK(result.samples[0].result.top.empty());  // were not asked for
  CHECK(result.usage.prefilled_tokens == 3 + 4 * 1);
  CHECK(result.usage.shared_tokens == 4 * 2);
  CHECK(result.usage.decoded_tokens == 5);
  CHECK(result.usage.cancelled_tokens == 0);
}

TEST_CASE("no answer at all, and a single sample") {
  ScriptedSamples none(scripts_of({"", " ", "."}));
  const auto nothing = run(none, options_of(3, stop::None{}));
  CHECK_FALSE(nothing.answer);
  CHECK_FALSE(nothing.winner);
  CHECK(nothing.tally.empty());
  for (const StopRule& rule : {StopRule(stop::None{}), StopRule(stop::Lossless{}),
                               StopRule(stop::Certified{}), StopRule(stop::Horizon{})}) {
    ScriptedSamples one(scripts_of({"18"}));
    const auto single = run(one, options_of(1, rule));
    CHECK(single.answer == "18");
    CHECK(single.stopped_after == 1);
    CHECK(single.end == SamplingEnd::kAllTaken);
  }
}

TEST_CASE("the first wave is what the rule needs, and unanimous samples need no other") {
  const std::vector<std::string> texts(40, "18");
  for (const auto& [rule, votes] : {std::pair{StopRule(stop::Lossless{}), 21},
                                    {StopRule(stop::Certified{0.05}), 9},
                                    {StopRule(stop::Certified{0.2}), 6},
                                    {StopRule(stop::Horizon{0.01}), 6}}) {
    ScriptedSamples samples(scripts_of(texts));
    const auto result = run(samples, options_of(40, rule));
    CHECK(result.stopped_after == static_cast<std::size_t>(votes));
    CHECK(result.end == SamplingEnd::kRule);
    CHECK(samples.submitted() == static_cast<std::size_t>(votes));
    CHECK(samples.cancelled() == 0);
    CHECK(result.samples.size() == static_cast<std::size_t>(votes));
  }
}

TEST_CASE("a wave does not grow with samples that will not be needed") {
  ScriptedSamples samples(scripts_of(std::vector<std::string>(4096, "18")));
  CHECK(run(samples, options_of(4096, stop::Certified{0.05})).stopped_after == 9);
  CHECK(samples.submitted() == 9);
}

TEST_CASE("neither the order in which samples end nor the waves decide anything") {
  std::mt19937 random(11);
  for (int trial = 0; trial < 300; ++trial) {
    const std::size_t count = 1 + random() % 24;
    std::vector<std::string> texts(count);
    for (std::string& text : texts) text = std::string(1, "aaaabbc "[random() % 8]);
    auto options = options_of(count, trial % 4 == 0   ? StopRule(stop::None{})
                                     : trial % 4 == 1 ? StopRule(stop::Lossless{})
                                     : trial % 4 == 2 ? StopRule(stop::Certified{0.2})
                                                      : StopRule(stop::Horizon{0.05}));
    std::string expected;
    for (int order = 0; order < 6; ++order) {
      auto scripts = scripts_of(texts);
      for (Script& script : scripts) script.steps = order == 0 ? 1 : 1 + random() % 9;
      options.first_wave = order == 1 ? 1 : order == 2 ? 64 : 0;
      options.wave = order == 1 ? 1 : order == 2 ? 64 : order == 3 ? 2 : 0;
      ScriptedSamples samples(scripts);
      const auto result = run(samples, options);
      if (order == 0) expected = decision_of(result);
      REQUIRE(decision_of(result) == expected);
      REQUIRE(samples.running() == 0);
      REQUIRE(samples.all_cancelled_before_first_end());
      // With nothing but what is known to be needed, nothing is begun for nothing.
      if (order == 1) REQUIRE(samples.submitted() == result.stopped_after);
    }
  }
}

TEST_CASE("samples that end early do not get in before their turn") {
  // The short ones say b. In the order of their numbers a has won after nine.
  std::vector<Script> scripts = scripts_of(std::vector<std::string>(16, "a"));
  for (std::size_t i = 0; i < 16; ++i) {
    scripts[i].steps = i < 9 ? 20 : 1;
    if (i >= 9) scripts[i].text = std::string(1, 'b');
  }
  auto options = options_of(16, stop::Lossless{});
  options.first_wave = 16;
  ScriptedSamples samples(scripts);
  const auto result = run(samples, options);
  CHECK(result.answer == "a");
  CHECK(result.stopped_after == 9);
  REQUIRE(result.tally.size() == 1);
  REQUIRE(result.samples.size() == 16);
  CHECK(result.samples[12].status == SampleStatus::kCancelled);
  CHECK(result.samples[12].result.text == "b");
  CHECK(result.usage.cancelled_tokens == 7);
}

TEST_CASE("what is under way when the rule is met is cancelled, and counted as waste") {
  std::vector<Script> scripts = scripts_of(std::vector<std::string>(16, "answer"));
  for (std::size_t i = 0; i < 16; ++i) scripts[i].steps = i < 9 ? 6 : 100;
  auto options = options_of(16, stop::Lossless{});
  options.first_wave = 12;
  ScriptedSamples samples(scripts);
  const auto result = run(samples, options);
  CHECK(result.stopped_after == 9);
  CHECK(samples.cancelled() == 3);
  CHECK(result.samples.size() == 12);
  CHECK(result.samples[11].status == SampleStatus::kCancelled);
  CHECK(result.usage.decoded_tokens == 9 * 6);
  CHECK(result.usage.cancelled_tokens == 3 * 6);
  CHECK(samples.waits() == 6);
}

TEST_CASE("a rule waits for min_samples") {
  auto options = options_of(16, stop::Horizon{0.5});
  options.min_samples = 7;
  ScriptedSamples samples(scripts_of(std::vector<std::string>(16, "a")));
  CHECK(run(samples, options).stopped_after == 7);
  options.min_samples = 40;
  ScriptedSamples all(scripts_of(std::vector<std::string>(16, "a")));
  CHECK(run(all, options).stopped_after == 16);
}

TEST_CASE("an error reaches the caller in its turn, when the others are cancelled") {
  for (const bool at_submit : {false, true}) {
    std::vector<Script> scripts = scripts_of(std::vector<std::string>(16, "a"));
    for (Script& script : scripts) script.steps = 5;
    const auto error = std::make_exception_ptr(std::runtime_error("sample 3"));
    scripts[3].steps = 1;
    (at_submit ? scripts[3].submit_error : scripts[3].error) = error;
    ScriptedSamples samples(scripts);
    CHECK_THROWS_WITH(run(samples, options_of(16, stop::None{})), "sample 3");
    CHECK(samples.running() == 0);
    CHECK(samples.all_cancelled_before_first_end());
  }
  // Behind one that could not be begun nothing can count, so nothing else is begun.
  std::vector<Script> refused = scripts_of(std::vector<std::string>(16, "a"));
  for (std::size_t i = 5; i < 16; ++i) {
    refused[i].submit_error = std::make_exception_ptr(std::runtime_error("refused"));
  }
  ScriptedSamples five(refused);
  CHECK_THROWS_WITH(run(five, options_of(16, stop::None{})), "refused");
  CHECK(five.submitted() == 6);
  CHECK(five.running() == 0);
  // A sample that is not needed may fail as it likes.
  std::vector<Script> scripts = scripts_of(std::vector<std::string>(16, "a"));
  scripts[12].error = std::make_exception_ptr(std::runtime_error("sample 12"));
  auto options = options_of(16, stop::Lossless{});
  options.first_wave = 16;
  ScriptedSamples samples(scripts);
  CHECK(run(samples, options).stopped_after == 9);
}

TEST_CASE("callbacks may throw: all is cancelled, and the exception passes through") {
  for (const Kind kind : {Kind::kText, Kind::kSampleDone, Kind::kVoteChanged, Kind::kStopped}) {
    std::vector<Script> scripts = scripts_of(std::vector<std::string>(8, "abc"));
    for (Script& script : scripts) script.steps = 3;
    ScriptedSamples samples(scripts);
    const auto on_event = [&](const SampleEvent& event) {
      if (event.kind == kind) throw std::runtime_error("no more");
      return true;
    };
    CHECK_THROWS_WITH(run(samples, options_of(8, stop::None{}), {}, on_event), "no more");
    CHECK(samples.running() == 0);
    CHECK(samples.all_cancelled_before_first_end());
  }
  auto options = options_of(8, stop::None{});
  options.extract = [](std::string_view) -> std::optional<std::string> {
    throw std::runtime_error("no extractor");
  };
  ScriptedSamples samples(scripts_of(std::vector<std::string>(8, "abc")));
  CHECK_THROWS_WITH(run(samples, options), "no extractor");
  CHECK(samples.running() == 0);
}

TEST_CASE("events: text of all samples, ends as they come, votes in order, one stop") {
  std::vector<Script> scripts = scripts_of({"one", "two", "two"});
  for (std::size_t i = 0; i < 3; ++i) scripts[i].steps = 5 - i;
  std::vector<std::string> texts(3), log;
  std::string leader;
  const auto on_event = [&](const SampleEvent& event) {
    switch (event.kind) {
      case Kind::kText:
        texts[event.sample] += event.text;
        break;
      case Kind::kSampleDone:
        log.push_back("done " + std::to_string(event.sample));
        CHECK(event.done->result.text == texts[event.sample]);
        break;
      case Kind::kVoteChanged:
        log.push_back("vote " + std::to_string(event.sample));
        CHECK(event.counted == event.sample + 1);
        leader = event.tally[0].key;
        break;
      case Kind::kStopped:
        log.push_back("stopped");
        CHECK(event.counted == 3);
        CHECK(event.tally.size() == 2);
        break;
    }
    return true;
  };
  ScriptedSamples samples(scripts);
  run(samples, options_of(3, stop::None{}), {}, on_event);
  CHECK(texts == std::vector<std::string>{"one", "two", "two"});
  CHECK(log == std::vector<std::string>{"done 2", "done 1", "done 0", "vote 0", "vote 1", "vote 2",
                                        "stopped"});
  CHECK(leader == "two");
}

TEST_CASE("a callback's false, the stop token and the timeout end it with what is counted") {
  const auto end_after = [](std::size_t votes) {
    return [votes](const SampleEvent& event) {
      return event.kind != Kind::kVoteChanged || event.counted < votes;
    };
  };
  std::vector<Script> scripts = scripts_of(std::vector<std::string>(8, "ab"));
  for (std::size_t i = 0; i < 8; ++i) scripts[i].steps = 2 + i;
  ScriptedSamples samples(scripts);
  auto result = run(samples, options_of(8, stop::None{}), {}, end_after(3));
  CHECK(result.end == SamplingEnd::kStopped);
  CHECK(result.stopped_after == 3);
  CHECK(result.answer == "ab");
  CHECK(samples.cancelled() == 5);
  CHECK(result.samples[3].status == SampleStatus::kCancelled);

  // In the middle of a text: the sample is a part, and does not vote.
  ScriptedSamples cut(scripts);
  result = run(cut, options_of(8, stop::None{}), {},
               [](const SampleEvent& event) { return event.kind != Kind::kText; });
  CHECK(result.end == SamplingEnd::kStopped);
  CHECK(result.stopped_after == 0);
  CHECK_FALSE(result.answer);

  std::stop_source source;
  GenerateParams params;
  params.stop = source.get_token();
  ScriptedSamples stopped(scripts);
  result = run(stopped, options_of(8, stop::None{}), params, [&](const SampleEvent& event) {
    if (event.kind == Kind::kVoteChanged && event.counted == 2) source.request_stop();
    return true;
  });
  CHECK(result.end == SamplingEnd::kStopped);
  CHECK(result.stopped_after == 2);
  // What has ended by then, but is not counted, does not count any more.
  source = {};
  params.stop = source.get_token();
  ScriptedSamples at_once(scripts_of(std::vector<std::string>(8, "a")));
  result = run(at_once, options_of(8, stop::None{}), params, [&](const SampleEvent&) {
    source.request_stop();
    return true;
  });
  CHECK(result.end == SamplingEnd::kStopped);
  CHECK(result.stopped_after == 0);
  CHECK(at_once.running() == 0);
  ScriptedSamples never(scripts);
  result = run(never, options_of(8, stop::None{}), params);
  CHECK(result.end == SamplingEnd::kStopped);
  CHECK(never.submitted() == 0);

  params = {};
  params.timeout = std::chrono::milliseconds(0);
  ScriptedSamples late(scripts);
  result = run(late, options_of(8, stop::None{}), params);
  CHECK(result.end == SamplingEnd::kTimeout);
  CHECK(late.submitted() == 0);
  params.timeout = std::chrono::hours(1);
  ScriptedSamples in_time(scripts);
  run(in_time, options_of(8, stop::None{}), params);
  CHECK(in_time.asked()[7].timeout <= std::chrono::hours(1));
  CHECK(in_time.asked()[7].timeout > std::chrono::minutes(59));
}

TEST_CASE("weights decide, and Lossless is not fooled by them") {
  // Two sure votes for a outweigh three unsure ones for b.
  std::vector<Script> scripts = scripts_of({"b", "b", "b", "a", "a"});
  for (std::size_t i = 0; i < 5; ++i) scripts[i].logprobs = {i < 3 ? -3.0f : -0.1f};
  auto options = options_of(5, stop::Lossless{});
  options.weighting = Weighting::kMeanLogprob;
  ScriptedSamples samples(scripts);
  const auto result = run(samples, options);
  CHECK(result.answer == "a");
  CHECK(result.samples[0].weight == Approx(0.0498).epsilon(1e-2));
  options.weighting = Weighting::kUniform;
  ScriptedSamples unweighted(scripts);
  CHECK(run(unweighted, options).answer == "b");
}

TEST_CASE("Lossless gives the answer of all samples, weighted or not") {
  std::mt19937 random(3);
  for (int trial = 0; trial < 500; ++trial) {
    const std::size_t count = 2 + random() % 20;
    std::vector<Script> scripts(count);
    for (Script& script : scripts) {
      script.text = std::string(1, "aaabbcd"[random() % 7]);
      script.logprobs = {-static_cast<float>(random() % 40) / 10.0f};
    }
    auto options = options_of(count, stop::Lossless{});
    options.weighting = trial % 2 == 0 ? Weighting::kUniform : Weighting::kMeanLogprob;
    ScriptedSamples early(scripts), all(scripts);
    const auto answer = run(early, options).answer;
    options.stop = stop::None{};
    REQUIRE(run(all, options).answer == answer);
  }
}

TEST_CASE("best of n: the highest score, then the lowest number; a NaN is none") {
  auto options = options_of(4, stop::None{});
  const std::vector<double> scores = {std::numeric_limits<double>::quiet_NaN(), 1.0, 2.0, 2.0};
  options.score = [&](const Sample& sample) { return scores.at(sample.result.text.size() - 1); };
  ScriptedSamples samples(scripts_of({"x", "xx", "xxx", "xxxx"}));
  auto result = run(samples, options);
  CHECK(result.winner == 2);
  CHECK(result.answer == "xxx");
  CHECK(result.samples[1].score == 1.0);
  // Where no answer can be extracted, the text is the answer.
  options.extract = extract::last_number();
  ScriptedSamples texts(scripts_of({"x", "xx", "xxx", "xxxx"}));
  result = run(texts, options);
  CHECK(result.answer == "xxx");
  CHECK(result.tally.empty());
  options.score = [](const Sample& sample) { return sample.mean_logprob; };
  std::vector<Script> scripts = scripts_of({"x", "xx"});
  scripts[0].logprobs = {-2.0f, -2.0f};
  ScriptedSamples by_logprob(scripts);
  options.samples = 2;
  CHECK(run(by_logprob, options).winner == 1);
}

TEST_CASE("each sample is asked for once, by its number, with its own stream of chance") {
  auto options = options_of(6, stop::None{});
  options.temperatures = {0.5f, 1.0f};
  GenerateParams params;
  params.seed = 9;
  int prefills = 0;
  params.on_prefill = [&](std::size_t, std::size_t) { ++prefills; };
  ScriptedSamples samples(scripts_of(std::vector<std::string>(6, "a")));
  run(samples, options, params);
  REQUIRE(samples.asked().size() == 6);
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(samples.asked()[i].sample == i);
    CHECK(samples.asked()[i].seed == 9);
    CHECK(samples.asked()[i].temperature == (i % 2 == 0 ? 0.5f : 1.0f));
    CHECK(static_cast<bool>(samples.asked()[i].on_prefill) == (i == 0));
    CHECK_FALSE(samples.asked()[i].on_text);  // nobody listens
  }
}

TEST_CASE("names of states") {
  CHECK(to_string(SampleStatus::kVoted) == "voted");
  CHECK(to_string(SampleStatus::kNoAnswer) == "no_answer");
  CHECK(to_string(SampleStatus::kCancelled) == "cancelled");
  CHECK(to_string(SamplingEnd::kAllTaken) == "all_taken");
  CHECK(to_string(SamplingEnd::kRule) == "rule");
  CHECK(to_string(SamplingEnd::kStopped) == "stopped");
  CHECK(to_string(SamplingEnd::kTimeout) == "timeout");
}
