// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>

#include "incipit/metrics.h"

namespace incipit::inline v0 {
namespace {

// Builds one document: https://prometheus.io/docs/instrumenting/exposition_formats/
class Document {
 public:
  explicit Document(std::string_view prefix) : prefix_(prefix) {}

  Document& counter(std::string_view name, std::string_view help, std::uint64_t value) {
    head(name, help, "counter");
    line(name, "", std::to_string(value));
    return *this;
  }
  Document& gauge(std::string_view name, std::string_view help, std::uint64_t value) {
    head(name, help, "gauge");
    line(name, "", std::to_string(value));
    return *this;
  }
  Document& seconds(std::string_view name, std::string_view help, std::uint64_t microseconds) {
    head(name, help, "counter");
    line(name, "", seconds_text(microseconds));
    return *this;
  }
  void head(std::string_view name, std::string_view help, std::string_view type) {
    text_.append("# HELP ").append(prefix_).append(name).append(" ").append(help).append("\n");
    text_.append("# TYPE ").append(prefix_).append(name).append(" ").append(type).append("\n");
  }
  void line(std::string_view name, std::string_view labels, std::string_view value) {
    text_.append(prefix_).append(name).append(labels).append(" ").append(value).append("\n");
  }
  // Exact, and the same in every locale.
  static std::string seconds_text(std::uint64_t microseconds) {
    const std::string fraction = std::to_string(1'000'000 + microseconds % 1'000'000).substr(1);
    return std::to_string(microseconds / 1'000'000) + "." + fraction;
  }
  std::string take() { return std::move(text_); }

 private:
  const std::string_view prefix_;
  std::string text_ = {};
};

// A label's value may hold anything; a store of the host names itself.
std::string tier_labels(std::size_t index, std::string_view name) {
  std::string labels = "{tier=\"" + std::to_string(index) + "\",store=\"";
  for (const char c : name) {
    if (c == '\n') {
      labels += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') labels += '\\';
    labels += c;
  }
  return labels + "\"}";
}

// A number of each tier.
struct TierMetric {
  std::string_view name, type, help;
  std::uint64_t TierStats::*value;
  bool is_time = false;
};
constexpr TierMetric kTierMetrics[] = {
    {"tier_bytes", "gauge", "Bytes that the store holds, where it knows.", &TierStats::bytes},
    {"tier_reused_tokens_total", "counter", "Prompt tokens whose KV came from the tier.",
     &TierStats::tokens_reused},
    {"tier_reads_total", "counter", "Records that were asked for.", &TierStats::reads},
    {"tier_read_hits_total", "counter", "Records that were found.", &TierStats::read_hits},
    {"tier_read_bytes_total", "counter", "Bytes of those.", &TierStats::read_bytes},
    {"tier_read_seconds_total", "counter", "Time in the store, of all reads.",
     &TierStats::read_microseconds, true},
    {"tier_writes_total", "counter", "Records that were to be kept.", &TierStats::writes},
    {"tier_written_bytes_total", "counter", "Bytes of those that were.", &TierStats::written_bytes},
    {"tier_write_seconds_total", "counter", "Time in the store, of all writes.",
     &TierStats::write_microseconds, true},
    {"tier_rejected_total", "counter", "Records that did not prove themselves.",
     &TierStats::rejected},
    {"tier_failures_total", "counter", "Calls that the store did not serve in time.",
     &TierStats::failures},
};

}  // namespace

std::string to_prometheus(const CacheStats& stats) {
  Document document("incipit_cache_");
  document.counter("lookups_total", "Prompts that were looked up.", stats.lookups)
      .counter("wanted_tokens_total", "Prompt tokens of those.", stats.tokens_wanted)
      .counter("reused_tokens_total", "The part of them that was found.", stats.tokens_reused)
      .counter("evictions_total", "Blocks forgotten to make room.", stats.evictions)
      .counter("invalidations_total", "Calls to forget something.", stats.invalidations)
      .counter("validations_total", "Hits that were computed again.", stats.validations)
      .counter("mismatches_total", "Of them, those that differed.", stats.mismatches)
      .gauge("blocks", "Size of the pools, in blocks of 16 tokens.", stats.blocks_total)
      .gauge("cached_blocks", "Blocks that a prompt can find.", stats.blocks_cached)
      .gauge("used_blocks", "Blocks that requests hold.", stats.blocks_in_use)
      .gauge("bytes", "Memory of the pools.", stats.bytes);
  if (stats.tiers.empty()) return document.take();
  const auto each = [&](std::string_view name, auto value) {
    for (std::size_t i = 0; i < stats.tiers.size(); ++i) {
      document.line(name, tier_labels(i, stats.tiers[i].name), value(stats.tiers[i]));
    }
  };
  for (const TierMetric& metric : kTierMetrics) {
    document.head(metric.name, metric.help, metric.type);
    each(metric.name, [&](const TierStats& tier) {
      const std::uint64_t value = tier.*metric.value;
      return metric.is_time ? Document::seconds_text(value) : std::to_string(value);
    });
  }
  document.head("tier_open", "1: nothing is asked of the tier for now, since it failed.", "gauge");
  each("tier_open", [](const TierStats& tier) { return std::string(tier.open ? "1" : "0"); });
  return document.take();
}

std::string to_prometheus(const EngineStats& stats) {
  return Document("incipit_engine_")
      .counter("requests_total", "Requests that have begun.", stats.requests)
      .counter("prompt_tokens_total", "Of all requests.", stats.prompt_tokens)
      .counter("reused_tokens_total", "Prompt tokens that were not computed.", stats.reused_tokens)
      .counter("loaded_tokens_total", "Of them, those from cold tiers.", stats.loaded_tokens)
      .counter("new_tokens_total", "Generated tokens.", stats.new_tokens)
      .counter("steps_total", "Forward passes.", stats.steps)
      .seconds("step_seconds_total", "Time of the steps.", stats.step_microseconds)
      .seconds("forward_seconds_total", "Of that, computing and sampling.",
               stats.forward_microseconds)
      .counter("preemptions_total", "Requests that gave up their blocks.", stats.preemptions)
      .counter("first_tokens_total", "Requests that have got a first token.", stats.first_tokens)
      .seconds("first_token_seconds_total", "Time to those, in all.",
               stats.first_token_microseconds)
      .seconds("load_seconds_total", "Time in which KV came from cold tiers.",
               stats.load_microseconds)
      .seconds("saved_seconds_total", "What reused tokens would have taken to compute, about.",
               stats.saved_microseconds)
      .take();
}

}  // namespace incipit::inline v0
