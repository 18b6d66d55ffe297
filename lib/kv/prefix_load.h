// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_KV_PREFIX_LOAD_H_
#define INCIPIT_KV_PREFIX_LOAD_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "kv/cold_tier.h"

namespace incipit::kv {

/// Where the blocks of a prompt go.
struct LoadTarget {
  device::Device* device = nullptr;
  device::KvPoolView pool = {};
  std::vector<device::BlockId> blocks =
      {};  // of the prompt's whole blocks, private from `known` on
};

/// What one request takes from the cold tiers.
///
/// The prompt is computed from its front while extents arrive from its back, until they meet: a
/// tail cannot be computed before its head. So loading never makes a request wait for long, and
/// whatever a tier delivers in time is not computed.
///
///     blocks   known | claimed by compute | wanted, being fetched | uploaded
///                    ^ computed                                   ^ where compute stops
///
/// Each extent belongs to compute or to loading, and who comes first gets it; so no block is
/// written by both.
///
/// Thread-safe: loading threads call search() and fetch(), the scheduler's all else.
class PrefixLoad {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Options {
    std::string name_space = {};
    std::vector<TokenId> tokens = {};  // whole blocks of the prompt that may be loaded
    std::size_t known = 0;             // blocks that the pool has
    std::size_t known_tokens = 0;      // and a front of the next: does not count as loaded
    LoadTarget target = {};
    // Something has arrived, or nothing more will. Called with a lock held: it must not call back.
    std::function<void()> on_change = {};
    Time begin = {};
    std::chrono::milliseconds least_patience{2};  // that compute stays away in any case
  };
  PrefixLoad(std::vector<ColdTier*> tiers, Options options);

  /// Finds out what the tiers have. Called once, before any fetch(). Returns the extents to fetch.
  std::size_t search();
  /// Fetches until nothing is wanted any more. Several threads may do so at once.
  void fetch();

  /// Tokens whose KV is in the pool, `computed` of them by compute; blocks that arrived right
  /// behind those count.
  std::size_t advance(std::size_t computed) const;
  /// How many of the next `want` rows behind `computed` compute may take. They are compute's then.
  std::size_t claim(std::size_t computed, std::size_t want);
  /// Until when compute should stay away in favour of loading; a time that has passed: it need not.
  /// `rate`: prompt tokens per second that compute makes.
  Time wait_until(std::size_t computed, std::size_t prompt_tokens, double rate, Time now) const;
  Time begin() const noexcept { return options_.begin; }
  /// Nothing more will arrive or is needed, and nothing that has arrived lies behind `computed`.
  bool finished(std::size_t computed) const;
  /// Ends it; when it returns, nobody writes to the target or calls on_change any more.
  void cancel();

  /// A run of loaded blocks.
  struct Loaded {
    std::size_t first = 0, blocks = 0;
    std::size_t tokens = 0;   // that were not known before
    EntryLabels labels = {};  // of the entry
  };
  struct Result {
    ColdTier* tier = nullptr;  // where it came from
    std::vector<Loaded> loaded = {};
  };
  /// What has arrived in front of `computed`, each part once.
  Result take(std::size_t computed);

 private:
  enum class State { kWanted, kFetching, kUploading, kLoaded, kGone };  // kGone: compute's, or lost
  struct Part {
    std::size_t first = 0, blocks = 0;  // that are wanted
    std::size_t extent_first = 0;       // where the extent starts; <= first
    Digest256 extent = {};              // the prefix that ends with it
    State state = State::kWanted;
    EntryLabels labels = {};  // kLoaded: of the entry
    bool taken = false;       // take() has given it
    std::size_t end() const noexcept { return first + blocks; }
  };

  std::vector<Part> parts_of(const ColdTier::Found& found) const;
  void leave_out(std::size_t tokens);
  bool fetch_one(StoreBuffer& buffer);
  bool is_cancelled() const;
  void notify() const;
  void upload(const Part& part, base::Bytes payload) const;
  ExtentFacts wanted_of(const Part& part) const;
  std::size_t wanted_blocks() const;
  double seconds_left(Time now) const;

  const std::vector<ColdTier*> tiers_;
  const Options options_;
  const std::size_t extent_blocks_;
  std::vector<Digest256> chain_;  // written by search() alone, before there are parts

  mutable std::mutex mutex_;
  std::condition_variable uploaded_;  // an upload has ended
  bool searched_ = false;             // guarded by mutex_, as all below
  bool cancelled_ = false;
  std::size_t tier_ = 0;     // that the parts come from
  std::vector<Part> parts_;  // ascending
  std::size_t taken_ = 0;    // tokens up to which compute has claimed all that is not loaded
  std::size_t uploads_ = 0;  // under way
  std::size_t arrived_blocks_ = 0;
  Time last_arrival_ = {};
};

}  // namespace incipit::kv

#endif  // INCIPIT_KV_PREFIX_LOAD_H_
