// SPDX-License-Identifier: Apache-2.0
// Requests that share what stands in front of them.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "requests.h"
#include "workloads.h"

namespace bench {

namespace {

using incipit::GenerateParams;
using Ids = std::vector<incipit::TokenId>;

/// Samples behind one prompt.
class Samples {
 public:
  Samples(incipit::Engine& engine, std::size_t prompt_tokens) : engine_(engine) {
    append_ids(engine, prompt_tokens, 0, prompt_);
    run(1, 1);
  }

  Batch run(std::size_t samples, std::size_t new_tokens) {
    return run_at_once(samples, new_tokens, [&](std::size_t, const GenerateParams& params) {
      return engine_.generate_with_cache(prompt_, params);
    });
  }
  /// Of their texts from the second token on: the time for `new_tokens` less the time for one.
  double seconds(std::size_t samples, std::size_t new_tokens, double first_token_seconds) {
    return run(samples, new_tokens).seconds - first_token_seconds;
  }

 private:
  incipit::Engine& engine_;
  Ids prompt_;
};

/// The largest KV that running requests hold while `work` runs, in bytes.
template <class Work>
double most_kv_bytes(incipit::Engine& engine, Work&& work) {
  std::atomic<bool> done = false;
  std::uint64_t most = 0;
  std::thread watcher([&] {
    while (!done) {
      most = std::max(most, engine.cache().stats().blocks_in_use);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  work();
  done = true;
  watcher.join();
  return static_cast<double>(most * 16 * engine.model().kv_bytes_per_token);
}

/// The part of the steps between two looks at the statistics that was not computing or sampling.
double scheduler_share(const incipit::EngineStats& before, const incipit::EngineStats& after) {
  const auto steps = static_cast<double>(after.step_microseconds - before.step_microseconds);
  const auto forward =
      static_cast<double>(after.forward_microseconds - before.forward_microseconds);
  return 1.0 - forward / steps;
}

}  // namespace

std::vector<Metric> measure_shared(incipit::Engine& engine, const Yardstick& yardstick,
                                   const Sizes& sizes) {
  Samples samples(engine, sizes.prompt_tokens);
  const double count = static_cast<double>(sizes.samples);
  const double steps = static_cast<double>(sizes.new_tokens - 1);
  const double prefix = static_cast<double>(sizes.prompt_tokens);
  Metric speed{.name = "tokens_per_s", .unit = "tok/s", .limit = "memory"};
  Metric alone{.name = "one_sample_tokens_per_s", .unit = "tok/s", .limit = "memory"};
  Metric first{.name = "first_token_ms", .unit = "ms"};
  Metric share{.name = "scheduler_share", .unit = "of a step"};
  Metric kv{.name = "kv_bytes", .unit = "bytes"};
  kv.add(most_kv_bytes(engine, [&] { samples.run(sizes.samples, sizes.new_tokens); }));
  for (std::size_t i = 0; i < sizes.repeat; ++i) {
    const double one = samples.run(1, 1).seconds;
    const double single = samples.seconds(1, sizes.new_tokens, one);
    const Batch begun = samples.run(sizes.samples, 1);
    const incipit::EngineStats before = engine.stats();
    const double all = samples.seconds(sizes.samples, sizes.new_tokens, begun.seconds);
    share.add(scheduler_share(before, engine.stats()));
    speed.add(count * steps / all,
              yardstick.decode_fraction(steps, kv_tokens_read(steps, prefix, count), all));
    alone.add(steps / single,
              yardstick.decode_fraction(steps, kv_tokens_read(steps, prefix, 1), single));
    first.add(1e3 * begun.first_token_seconds());
  }
  return {speed, alone, first, share, kv};
}

std::vector<Metric> measure_users(incipit::Engine& engine, const Yardstick& yardstick,
                                  const Sizes& sizes) {
  static_cast<void>(yardstick);
  Metric together{.name = "tokens_per_s", .unit = "tok/s"};
  Metric apart{.name = "one_after_another_tokens_per_s", .unit = "tok/s"};
  const double tokens = static_cast<double>(sizes.users * sizes.new_tokens);
  for (std::size_t i = 0; i < sizes.repeat; ++i) {
    std::vector<Ids> prompts(sizes.users);
    for (std::size_t user = 0; user < sizes.users; ++user) {
      append_ids(engine, sizes.system_tokens, i, prompts[user]);
      append_ids(engine, sizes.prompt_tokens, 1000 + i * sizes.users + user, prompts[user]);
    }
    const Batch batch = run_at_once(sizes.users, sizes.new_tokens,
                                    [&](std::size_t user, const GenerateParams& params) {
                                      return engine.generate_with_cache(prompts[user], params);
                                    });
    together.add(tokens / batch.seconds);
    double seconds = 0;
    for (const Ids& prompt : prompts) {
      seconds += run_at_once(1, sizes.new_tokens, [&](std::size_t, const GenerateParams& params) {
                   return engine.generate(prompt, params);
                 }).seconds;
    }
    apart.add(tokens / seconds);
  }
  return {together, apart};
}

}  // namespace bench
