// SPDX-License-Identifier: Apache-2.0
#include "compress/near_duplicates.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "compress/guard.h"
#include "retrieve/terms.h"

namespace incipit::compress {
namespace {

constexpr std::size_t kHashes = 64;
constexpr std::size_t kRows = kHashes / Sketch::kBands;
constexpr std::uint64_t kOne = 65536;  // a similarity of 1

constexpr std::uint64_t mixed(std::uint64_t x) {  // the finaliser of SplitMix64
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

using Hashes = std::array<std::int32_t, kHashes>;

/// The least of the terms under each of 64 hashes. Hash i of a term with the halves (a, b) is
/// a + i b, so that two of them are independent (Kirsch, Mitzenmacher, "Less hashing, same
/// performance", 2006), and one costs no multiplication.
Hashes min_hashes(const std::vector<std::uint32_t>& terms) {
  constexpr std::size_t kLanes = 8;
  Hashes least;
  least.fill(std::numeric_limits<std::int32_t>::max());
  for (const std::uint32_t term : terms) {
    const std::uint64_t spread = mixed(term);
    const auto a = static_cast<std::uint32_t>(spread);
    const std::uint32_t b = static_cast<std::uint32_t>(spread >> 32) | 1;
    std::array<std::uint32_t, kLanes> hashes;
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) hashes[lane] = a + lane * b;
    for (std::size_t i = 0; i < kHashes; i += kLanes) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const auto hash = static_cast<std::int32_t>(hashes[lane]);
        least[i + lane] = hash < least[i + lane] ? hash : least[i + lane];
        hashes[lane] += static_cast<std::uint32_t>(kLanes) * b;
      }
    }
  }
  return least;
}

std::size_t common(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b) {
  std::size_t count = 0;
  for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end();) {
    if (*i == *j) ++count;
    const bool step_i = *i <= *j, step_j = *j <= *i;
    i += step_i ? 1 : 0;
    j += step_j ? 1 : 0;
  }
  return count;
}

}  // namespace

Sketch make_sketch(std::string_view text) { return make_sketch(text, retrieve::terms_of(text)); }

Sketch make_sketch(std::string_view text, std::span<const std::uint64_t> terms) {
  Sketch sketch;
  sketch.terms.reserve(terms.size());
  for (const std::uint64_t term : terms) {
    sketch.terms.push_back(static_cast<std::uint32_t>(term ^ (term >> 32)));
  }
  std::sort(sketch.terms.begin(), sketch.terms.end());
  sketch.terms.erase(std::unique(sketch.terms.begin(), sketch.terms.end()), sketch.terms.end());
  if (sketch.terms.size() < NearDuplicates::kMinTerms) return sketch;

  sketch.critical = critical_tokens(text);
  const std::uint64_t seed = base::xxh3_64(base::as_bytes(sketch.critical));
  const auto least = min_hashes(sketch.terms);
  for (std::size_t band = 0; band < Sketch::kBands; ++band) {
    const auto rows = std::as_bytes(std::span(least).subspan(band * kRows, kRows));
    sketch.bands[band] = base::xxh3_64(rows, seed + band);
  }
  return sketch;
}

NearDuplicates::NearDuplicates(double threshold) {
  if (!(threshold > 0 && threshold <= 1)) {
    base::throw_error(ErrorCode::kInvalidArgument,
                      "the similarity of duplicates must be above 0 and at most 1");
  }
  threshold_ = static_cast<std::uint64_t>(threshold * double{kOne});
}

std::optional<std::size_t> NearDuplicates::find(const Sketch& sketch) const {
  if (sketch.terms.size() < kMinTerms) return std::nullopt;
  std::array<std::uint32_t, Sketch::kBands * kPerBand> candidates;
  std::size_t count = 0;
  for (const std::uint64_t band : sketch.bands) bands_.prefetch(band);
  for (const std::uint64_t band : sketch.bands) {
    const Alike* alike = bands_.find(band);
    if (alike == nullptr) continue;
    candidates[count++] = alike->first - 1;
    if (alike->others == 0) continue;
    const Others& others = others_[alike->others - 1];
    for (std::size_t i = 0; i < others.count; ++i) candidates[count++] = others.texts[i];
  }
  const auto end = candidates.begin() + static_cast<std::ptrdiff_t>(count);
  std::sort(candidates.begin(), end);
  for (auto at = candidates.begin(); at != end; ++at) {
    if (at != candidates.begin() && *at == *(at - 1)) continue;
    if (is_duplicate(sketch, texts_[*at])) return *at;
  }
  return std::nullopt;
}

void NearDuplicates::add(const Sketch& sketch) {
  Text& text = texts_.emplace_back();
  if (sketch.terms.size() < kMinTerms) return;  // is never compared
  text.terms = terms_.add(sketch.terms);
  text.critical = critical_.add(sketch.critical);
  const auto number = static_cast<std::uint32_t>(texts_.size() - 1);
  for (const std::uint64_t band : sketch.bands) bands_.prefetch(band);
  for (const std::uint64_t band : sketch.bands) add_to_band(band, number);
}

void NearDuplicates::add_to_band(std::uint64_t band, std::uint32_t text) {
  Alike& alike = bands_.find_or_add(band);
  if (alike.first == 0) {
    alike.first = text + 1;
    return;
  }
  if (alike.others == 0) {
    others_.emplace_back();
    alike.others = static_cast<std::uint32_t>(others_.size());
  }
  Others& others = others_[alike.others - 1];
  if (others.count < others.texts.size()) others.texts[others.count++] = text;
}

bool NearDuplicates::is_duplicate(const Sketch& sketch, const Text& text) const {
  const std::span<const char> critical = critical_[text.critical];
  if (sketch.critical != std::string_view(critical.data(), critical.size())) return false;
  const std::uint64_t a = sketch.terms.size(), b = text.terms.size;
  if (std::min(a, b) * kOne < threshold_ * std::max(a, b)) return false;
  const std::uint64_t both = common(sketch.terms, terms_[text.terms]);
  return both * kOne >= threshold_ * (a + b - both);
}

}  // namespace incipit::compress
