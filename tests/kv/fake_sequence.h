// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_KV_FAKE_SEQUENCE_H_
#define INCIPIT_TESTS_KV_FAKE_SEQUENCE_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kv/kv_cache.h"
#include "support/fake_device.h"

namespace incipit::test {

using Tokens = std::vector<TokenId>;

/// `count` ids that follow each other from `first` on.
inline Tokens ids(std::size_t count, TokenId first = 0) {
  Tokens tokens(count);
  for (std::size_t i = 0; i < count; ++i) tokens[i] = first + static_cast<TokenId>(i);
  return tokens;
}

inline Tokens operator+(Tokens front, const Tokens& back) {
  front.insert(front.end(), back.begin(), back.end());
  return front;
}

/// One layer, one head of one value: 64 bytes of K and 64 of V in a block.
inline device::KvLayout tiny_layout() {
  return device::KvLayout(
      {.layers = 1, .kv_heads = 1, .head_dim = 1, .type = device::KvFormat::kF32});
}

/// What "computing" the KV of one token gives: 64 bits that depend on the namespace and on all
/// tokens up to it. The lower half is its K, the upper half its V.
inline std::uint64_t next_kv(std::uint64_t before, TokenId token) {
  std::uint64_t x = (before ^ static_cast<std::uint32_t>(token)) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
  return x ^ (x >> 32);
}

inline std::vector<std::uint64_t> expected_kv(const std::string& name_space,
                                              std::span<const TokenId> tokens) {
  std::uint64_t kv = 1;
  for (const char c : name_space) kv = next_kv(kv, c);
  std::vector<std::uint64_t> all;
  for (const TokenId token : tokens) all.push_back(kv = next_kv(kv, token));
  return all;
}

/// A sequence as an engine runs it, with next_kv() for a model.
class FakeSequence {
 public:
  FakeSequence(FakeDevice& device, kv::KvCache& cache, std::string name_space)
      : device_(&device), cache_(&cache), name_space_(std::move(name_space)) {}

  /// Looks up a prompt and reserves room for `more` tokens behind it.
  bool start(const Tokens& prompt, std::size_t more = 0, const CacheLabels& labels = {}) {
    kv::KvCache::Match match;
    if (!cache_->start(name_space_, labels, prompt, prompt.size() + more, match)) return false;
    table_ = std::move(match.table);
    tokens_ = prompt;
    reused_ = computed_ = match.tokens;
    return true;
  }

  /// Computes up to `count` of the tokens that have no KV yet.
  void compute(std::size_t count = SIZE_MAX) {
    const std::size_t end = computed_ + std::min(count, tokens_.size() - computed_);
    cache_->extend(table_, end);
    const std::vector<std::uint64_t> kv = expected_kv(name_space_, tokens_);
    for (; computed_ < end; ++computed_) write(computed_, kv[computed_]);
  }
  /// The KV up to there came from elsewhere.
  void arrived(std::size_t end) { computed_ = std::max(computed_, end); }
  void generate(TokenId token) { tokens_.push_back(token); }
  void commit() { cache_->commit(table_, std::span(tokens_).first(computed_)); }
  void drop() { table_ = {}; }

  /// A second sequence behind what is computed, with room for `more` tokens. False: no room.
  bool fork(FakeSequence& child, std::size_t more = 0) {
    commit();
    if (!cache_->fork(table_, computed_, computed_ + more, child.table_)) return false;
    child.name_space_ = name_space_;
    child.tokens_.assign(tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(computed_));
    child.computed_ = computed_;
    return true;
  }

  /// True where each computed position holds its KV.
  bool intact() const {
    const std::vector<std::uint64_t> kv = expected_kv(name_space_, tokens_);
    for (std::size_t i = 0; i < computed_; ++i) {
      if (read(i) != kv[i]) return false;
    }
    return true;
  }

  const std::string& name_space() const { return name_space_; }
  const Tokens& tokens() const { return tokens_; }
  std::size_t computed() const { return computed_; }
  std::size_t reused() const { return reused_; }
  const kv::BlockTable& table() const { return table_; }
  kv::BlockTable& table() { return table_; }

 private:
  std::byte* slot(std::size_t position) const {
    return cache_->pool().block(table_.blocks()[position / device::kBlockTokens]) +
           4 * (position % device::kBlockTokens);
  }
  void write(std::size_t position, std::uint64_t kv) {
    const auto halves = std::bit_cast<std::array<std::uint32_t, 2>>(kv);
    const device::KvLayout& layout = cache_->pool().layout;
    device_->upload(std::as_bytes(std::span(&halves[0], 1)),
                    slot(position) + layout.k_offset(0, 0));
    device_->upload(std::as_bytes(std::span(&halves[1], 1)),
                    slot(position) + layout.v_offset(0, 0));
  }
  std::uint64_t read(std::size_t position) const {
    std::array<std::uint32_t, 2> halves;
    const device::KvLayout& layout = cache_->pool().layout;
    device_->download(slot(position) + layout.k_offset(0, 0),
                      std::as_writable_bytes(std::span(&halves[0], 1)));
    device_->download(slot(position) + layout.v_offset(0, 0),
                      std::as_writable_bytes(std::span(&halves[1], 1)));
    return std::bit_cast<std::uint64_t>(halves);
  }

  FakeDevice* device_;
  kv::KvCache* cache_;
  std::string name_space_;
  Tokens tokens_;
  std::size_t computed_ = 0;
  std::size_t reused_ = 0;
  kv::BlockTable table_;
};

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_KV_FAKE_SEQUENCE_H_
