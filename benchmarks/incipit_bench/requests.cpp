// SPDX-License-Identifier: Apache-2.0
#include "requests.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <future>
#include <stdexcept>
#include <string>

namespace bench {

namespace {

using Clock = std::chrono::steady_clock;

incipit::GenerateParams params_of(std::size_t sample, std::size_t samples, std::size_t new_tokens) {
  incipit::GenerateParams params;
  params.max_tokens = new_tokens;
  params.ignore_eos = true;
  if (samples > 1) {
    params.temperature = 0.8f;
    params.top_p = 0.95f;
    params.seed = 1;
    params.sample = sample;
  }
  return params;
}

/// The time of a text that ended early means nothing.
void check_length(const incipit::GenerateResult& result, std::size_t new_tokens) {
  if (result.token_ids.size() == new_tokens) return;
  throw std::runtime_error(std::to_string(result.token_ids.size()) + " of " +
                           std::to_string(new_tokens) + " tokens were generated (" +
                           std::string(to_string(result.finish)) +
                           "); ask for fewer, or for shorter prompts");
}

}  // namespace

double Batch::first_token_seconds() const {
  std::chrono::microseconds latest{};
  for (const incipit::GenerateResult& result : results) {
    latest = std::max(latest, result.time_to_first_token);
  }
  return std::chrono::duration<double>(latest).count();
}

void append_ids(const incipit::Engine& engine, std::size_t count, std::size_t salt,
                std::vector<incipit::TokenId>& ids) {
  std::uint64_t state = salt + 1;
  for (std::size_t i = 0; i < count; ++i) {
    state = (state + i + 1) * 6364136223846793005u;
    const std::uint64_t id = (state >> 33) % engine.model().vocabulary;
    ids.push_back(static_cast<incipit::TokenId>(id));
  }
}

Batch run_at_once(
    std::size_t count, std::size_t new_tokens,
    const std::function<incipit::GenerateResult(std::size_t, const incipit::GenerateParams&)>&
        request) {
  Batch batch;
  std::vector<std::future<incipit::GenerateResult>> running;
  const Clock::time_point start = Clock::now();
  // The first one on this thread, so that a single request starts none.
  for (std::size_t i = 1; i < count; ++i) {
    running.push_back(std::async(std::launch::async, request, i, params_of(i, count, new_tokens)));
  }
  batch.results.push_back(request(0, params_of(0, count, new_tokens)));
  for (auto& future : running) batch.results.push_back(future.get());
  batch.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  for (const incipit::GenerateResult& result : batch.results) check_length(result, new_tokens);
  return batch;
}

}  // namespace bench
