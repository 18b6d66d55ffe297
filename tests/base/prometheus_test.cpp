// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "incipit/metrics.h"
#include "support/catch.h"

namespace incipit {
namespace {

// What a scraper reads: samples by name and labels. Fails where a line is none.
std::map<std::string, std::string> scrape(const std::string& text) {
  std::map<std::string, std::string> samples;
  std::set<std::string> typed;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# TYPE ")) {
      CHECK(typed.insert(line.substr(7, line.rfind(' ') - 7)).second);
    }
    if (line.starts_with('#')) continue;
    const std::size_t space = line.rfind(' ');
    REQUIRE(space != std::string::npos);
    const std::string name = line.substr(0, space);
    CHECK(typed.contains(name.substr(0, name.find('{'))));
    CHECK(samples.emplace(name, line.substr(space + 1)).second);
  }
  CHECK(text.ends_with('\n'));
  return samples;
}

TEST_CASE("Cache counters become Prometheus text, tiers by label", "[prometheus]") {
  CacheStats stats;
  stats.lookups = 7;
  stats.tokens_reused = 12345678901234567890u;
  stats.mismatches = 1;
  TierStats tier;
  tier.name = "my \"own\"\\\nstore";
  tier.read_microseconds = 1'000'001;
  tier.open = true;
  stats.tiers = {TierStats{.name = "directory", .bytes = 5}, tier};
  const auto samples = scrape(to_prometheus(stats));
  CHECK(samples.at("incipit_cache_lookups_total") == "7");
  CHECK(samples.at("incipit_cache_reused_tokens_total") == "12345678901234567890");
  CHECK(samples.at("incipit_cache_mismatches_total") == "1");
  CHECK(samples.at("incipit_cache_tier_bytes{tier=\"0\",store=\"directory\"}") == "5");
  const std::string second = "{tier=\"1\",store=\"my \\\"own\\\"\\\\\\nstore\"}";
  CHECK(samples.at("incipit_cache_tier_read_seconds_total" + second) == "1.000001");
  CHECK(samples.at("incipit_cache_tier_open" + second) == "1");
}

TEST_CASE("Engine counters become Prometheus text", "[prometheus]") {
  EngineStats stats;
  stats.requests = 3;
  stats.first_token_microseconds = 42;
  const auto samples = scrape(to_prometheus(stats));
  CHECK(samples.at("incipit_engine_requests_total") == "3");
  CHECK(samples.at("incipit_engine_first_token_seconds_total") == "0.000042");
  CHECK(scrape(to_prometheus(CacheStats{})).size() == 11);
}

}  // namespace
}  // namespace incipit
