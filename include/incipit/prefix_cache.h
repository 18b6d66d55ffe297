// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_PREFIX_CACHE_H_
#define INCIPIT_PREFIX_CACHE_H_

#include <memory>

#include "incipit/export.h"
#include "incipit/metrics.h"

namespace incipit::inline v0 {

/// Keeps the KV blocks of prompt prefixes for one or several engines.
///
/// A prefix is found by the token ids of the prompt, in blocks of 16; the front of one more block
/// is reused too. A hash only finds an entry, the token ids prove it. What is least recently used
/// makes room for what is new, leaves of the prefix tree first.
///
/// Each Engine registers its block pool here and withdraws it when it is destroyed: on the CPU that
/// pool is where the blocks live, so a cache without an engine holds nothing.
///
/// Thread safety: all member functions may be called concurrently.
class INCIPIT_API PrefixCache {
 public:
  PrefixCache();
  ~PrefixCache();
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;

  /// Forgets everything; done when it returns. Running requests keep the blocks that they hold, and
  /// leave none behind. Cost: O(blocks of the pools).
  void clear();

  /// A snapshot, consistent per engine. Includes what engines that are gone have counted.
  /// Cost: O(engines).
  CacheStats stats() const;

 private:
  friend class Engine;
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace incipit::inline v0

#endif  // INCIPIT_PREFIX_CACHE_H_
