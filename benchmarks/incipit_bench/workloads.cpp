// SPDX-License-Identifier: Apache-2.0
#include "workloads.h"

#include <incipit/conversation.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "requests.h"

namespace bench {

namespace {

using incipit::GenerateParams;
using incipit::GenerateResult;
using incipit::TokenId;
using Ids = std::vector<TokenId>;

double seconds(std::chrono::microseconds time) {
  return std::chrono::duration<double>(time).count();
}

std::vector<Ids> make_prompts(const incipit::Engine& engine, std::size_t count, std::size_t tokens,
                              std::size_t salt) {
  std::vector<Ids> prompts(count);
  for (std::size_t i = 0; i < count; ++i) append_ids(engine, tokens, salt * count + i, prompts[i]);
  return prompts;
}

/// About `tokens` tokens of text that differs from turn to turn.
std::string message(const incipit::Engine& engine, std::size_t tokens, std::size_t salt) {
  std::string text = "Message " + std::to_string(salt) + ":";
  for (std::size_t order = 1; engine.tokenize(text).size() < tokens; ++order) {
    text += " order " + std::to_string(order * (salt + 7)) + " has arrived,";
  }
  return text;
}

/// One chat, its results in turn.
std::vector<GenerateResult> chat(incipit::Engine& engine, const Sizes& sizes, std::size_t salt,
                                 const GenerateParams& params) {
  incipit::Conversation conversation(engine, "This is chat " + std::to_string(salt) + ".");
  std::vector<GenerateResult> results;
  for (std::size_t turn = 0; turn < sizes.turns; ++turn) {
    results.push_back(conversation.send(message(engine, sizes.prompt_tokens, turn), params));
  }
  return results;
}

/// What a chat consists of.
struct ChatTimes {
  std::vector<double> first_token_ms = {};  // of each turn
  double text_seconds = 0;                  // all turns, behind their first tokens
  double kv_tokens = 0;                     // that those texts read
  double reused = 0, prompt = 0;            // tokens
};

ChatTimes times_of(const std::vector<GenerateResult>& turns) {
  ChatTimes times;
  for (const GenerateResult& turn : turns) {
    const double prompt = static_cast<double>(turn.prompt_ids.size());
    const double steps = static_cast<double>(turn.token_ids.size()) - 1;
    times.first_token_ms.push_back(1e3 * seconds(turn.time_to_first_token));
    times.text_seconds += seconds(turn.total_time - turn.time_to_first_token);
    times.kv_tokens += kv_tokens_read(steps, prompt, 1);
    times.reused += static_cast<double>(turn.reused_tokens);
    times.prompt += prompt;
  }
  return times;
}

}  // namespace

std::vector<Metric> measure_prefill(incipit::Engine& engine, const Yardstick& yardstick,
                                    const Sizes& sizes) {
  Metric speed{.name = "prefill_tok_s", .unit = "tok/s", .limit = "products"};
  Metric first{.name = "first_token_ms", .unit = "ms"};
  Metric total{.name = "total_ms", .unit = "ms"};
  const std::vector<Ids> fronts = make_prompts(engine, sizes.samples, sizes.cached_tokens, 0);
  for (const Ids& front : fronts) {
    if (!front.empty()) engine.generate_with_cache(front, {.max_tokens = 0});
  }
  // The times of the first round do not count: it touches memory that is new to the engine.
  for (std::size_t i = 0; i < sizes.repeat + 1; ++i) {
    std::vector<Ids> prompts = fronts;
    for (std::size_t j = 0; j < prompts.size(); ++j) {
      append_ids(engine, sizes.prompt_tokens - sizes.cached_tokens, (i + 1) * prompts.size() + j,
                 prompts[j]);
    }
    const Batch batch = run_at_once(sizes.samples, sizes.new_tokens,
                                    [&](std::size_t j, const GenerateParams& params) {
                                      return engine.generate_with_cache(prompts[j], params);
                                    });
    if (i == 0) continue;
    const double count = static_cast<double>(sizes.samples);
    const double cached = static_cast<double>(batch.results[0].reused_tokens);
    const double computed = static_cast<double>(sizes.prompt_tokens) - cached;
    const double time = batch.first_token_seconds();
    speed.add(count * computed / time, yardstick.prefill_fraction(count, computed, cached, time));
    first.add(1e3 * time);
    total.add(1e3 * batch.seconds);
  }
  return {speed, first, total};
}

/// Tokens per second of all texts together, each one's first token left out: the time for
/// `new_tokens` less the time for one, with the prompts in the cache for both.
std::vector<Metric> measure_decode(incipit::Engine& engine, const Yardstick& yardstick,
                                   const Sizes& sizes) {
  const auto prompts = make_prompts(engine, sizes.samples, sizes.prompt_tokens, 0);
  const auto text = [&](std::size_t new_tokens) {
    return run_at_once(sizes.samples, new_tokens, [&](std::size_t i, const GenerateParams& params) {
      return engine.generate_with_cache(prompts[i], params);
    });
  };
  const double steps = static_cast<double>(sizes.new_tokens - 1);
  const double samples = static_cast<double>(sizes.samples);
  const double prefix_tokens = static_cast<double>(sizes.samples * sizes.prompt_tokens);
  Metric speed{.name = "decode_tok_s", .unit = "tok/s", .limit = "memory"};
  Metric first{.name = "first_token_ms", .unit = "ms"};
  text(1);
  for (std::size_t i = 0; i < sizes.repeat; ++i) {
    const Batch one = text(1);
    const double time = text(sizes.new_tokens).seconds - one.seconds;
    speed.add(
        samples * steps / time,
        yardstick.decode_fraction(steps, kv_tokens_read(steps, prefix_tokens, samples), time));
    first.add(1e3 * one.first_token_seconds());
  }
  return {speed, first};
}

std::vector<Metric> measure_turns(incipit::Engine& engine, const Yardstick& yardstick,
                                  const Sizes& sizes) {
  Metric first{.name = "first_token_ms", .unit = "ms"};
  Metric later{.name = "later_first_token_ms", .unit = "ms"};
  Metric speed{.name = "decode_tok_s", .unit = "tok/s", .limit = "memory"};
  Metric reused{.name = "reused_share", .unit = "of the prompts' tokens"};
  Metric total{.name = "total_ms", .unit = "ms"};
  for (std::size_t i = 0; i < sizes.repeat; ++i) {
    std::vector<std::vector<GenerateResult>> chats(sizes.samples);
    const Batch batch = run_at_once(sizes.samples, sizes.new_tokens,
                                    [&](std::size_t j, const GenerateParams& params) {
                                      chats[j] = chat(engine, sizes, i * sizes.samples + j, params);
                                      return chats[j].back();
                                    });
    double text_seconds = 0, kv_tokens = 0, found = 0, wanted = 0;
    std::vector<double> first_ms, later_ms;
    for (const auto& turns : chats) {
      const ChatTimes times = times_of(turns);
      first_ms.push_back(times.first_token_ms.front());
      later_ms.insert(later_ms.end(), times.first_token_ms.begin() + 1, times.first_token_ms.end());
      text_seconds += times.text_seconds / static_cast<double>(sizes.samples);
      kv_tokens += times.kv_tokens;
      found += times.reused;
      wanted += times.prompt;
    }
    const double steps = static_cast<double>(sizes.turns * (sizes.new_tokens - 1));
    first.add(median(first_ms));
    later.add(median(later_ms));
    speed.add(static_cast<double>(sizes.samples) * steps / text_seconds,
              yardstick.decode_fraction(steps, kv_tokens, text_seconds));
    reused.add(found / wanted);
    total.add(1e3 * batch.seconds);
  }
  return {first, later, speed, reused, total};
}

}  // namespace bench
