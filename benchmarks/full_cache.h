// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BENCHMARKS_FULL_CACHE_H_
#define INCIPIT_BENCHMARKS_FULL_CACHE_H_

#include <cstddef>
#include <stdexcept>
#include <vector>

#include "kv/kv_cache.h"

namespace bench {

/// A full cache, of the default policy, that has indexed prompts which share nothing.
class FullCache {
 public:
  FullCache(incipit::device::Device& device, std::size_t prompt_tokens, std::size_t blocks)
      : cache_(device, incipit::device::KvLayout({1, 1, 1, incipit::device::KvFormat::kF32}),
               {.blocks = blocks, .eviction = incipit::PrefixCacheOptions{}.eviction}),
        ids_(prompt_tokens + 1) {
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      ids_[i] = static_cast<incipit::TokenId>(i * 7919 % 49152);
    }
    const std::size_t prompt_blocks = (ids_.size() - 1) / incipit::device::kBlockTokens + 1;
    for (std::size_t i = 0; i < blocks / prompt_blocks; ++i) insert();
  }

  /// Indexes another prompt; the first block is enough to tell it from all others.
  void insert() {
    ++ids_[0];
    incipit::kv::KvCache::Match match;
    if (!cache_.start("benchmark", ids_, ids_.size(), match) || match.tokens != 0) {
      throw std::runtime_error("the prompt was known, or had no room");
    }
    cache_.extend(match.table, ids_.size());
    cache_.commit(match.table, ids_);
  }

  /// Finds and pins all of the last prompt, and lets it go.
  void look_up() {
    incipit::kv::KvCache::Match match;
    if (!cache_.start("benchmark", ids_, ids_.size(), match) ||
        match.tokens !=
            (ids_.size() - 1) / incipit::device::kBlockTokens * incipit::device::kBlockTokens) {
      throw std::runtime_error("the prefix was not found");
    }
  }

  double blocks_indexed() const { return static_cast<double>(cache_.stats().blocks_cached); }

 private:
  incipit::kv::KvCache cache_;
  std::vector<incipit::TokenId> ids_;
};

}  // namespace bench

#endif  // INCIPIT_BENCHMARKS_FULL_CACHE_H_
