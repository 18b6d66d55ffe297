// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_STORE_H_
#define INCIPIT_STORE_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "incipit/export.h"

namespace incipit::inline v0 {

/// The name of a value: 256 bits that say nothing about it.
struct StoreKey {
  std::array<std::byte, 32> bytes = {};  ///< A digest; equally likely to be any.
  friend bool operator==(const StoreKey&, const StoreKey&) = default;  ///< All bits.
};

/// How a call of a Store went.
enum class StoreStatus {
  kOk,
  kMiss,         ///< Not there: never stored, expired, evicted, erased.
  kTooLarge,     ///< The store cannot hold a value of this size.
  kUnavailable,  ///< Down, slow or full: the caller goes on without it.
};

/// The enumerator's name without its `k`, in lower case with underscores: "too_large".
INCIPIT_API std::string_view to_string(StoreStatus status) noexcept;

/// Bytes that a store hands out. Keeps its memory from call to call and does not zero it.
class StoreBuffer {
 public:
  /// What it holds now.
  std::span<std::byte> bytes() noexcept { return {data_.get(), size_}; }
  /// The same.
  std::span<const std::byte> bytes() const noexcept { return {data_.get(), size_}; }
  /// Holds `size` bytes from now on: the front of what it held where that was more, else any
  /// content. Throws std::bad_alloc.
  std::span<std::byte> resize(std::size_t size) {
    if (size > capacity_) {
      data_.reset(new std::byte[size]);
      capacity_ = size;
    }
    size_ = size;
    return bytes();
  }

 private:
  std::unique_ptr<std::byte[]> data_ = nullptr;
  std::size_t size_ = 0, capacity_ = 0;
};

/// A place for sealed bytes: memory, a directory, Redis, memcached, or the host program's own.
///
/// A store may lose, cut or mix up values: PrefixCache seals each with its key and a checksum, and
/// what does not prove itself counts as not there. So a store cannot make an answer wrong by
/// accident; with PrefixCacheOptions::encryption_key not on purpose either.
///
/// Implementations are thread-safe, return by the deadline, and do not throw; what escapes all the
/// same counts as kUnavailable.
class INCIPIT_API Store {
 public:
  /// When a call must have returned.
  using Deadline = std::chrono::steady_clock::time_point;

  Store() = default;
  virtual ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// Fills `value` on kOk; leaves anything in it otherwise.
  virtual StoreStatus get(const StoreKey& key, Deadline deadline, StoreBuffer& value) = 0;
  /// A reader sees the old value or all of the new one. `time_to_live` 0: until evicted.
  virtual StoreStatus put(const StoreKey& key, std::span<const std::byte> value,
                          std::chrono::seconds time_to_live, Deadline deadline) = 0;
  /// kOk also where it was not there.
  virtual StoreStatus erase(const StoreKey& key, Deadline deadline) = 0;

  /// For metrics and messages: "directory".
  virtual std::string_view name() const noexcept = 0;
  /// Bytes that it holds, where it knows; else 0.
  virtual std::uint64_t size_bytes() const noexcept { return 0; }
};

/// A store in this process' memory; what is least recently used makes room. The capacity counts 256
/// bytes beside each value. Throws Error{kInvalidArgument} for no capacity.
INCIPIT_API std::shared_ptr<Store> make_memory_store(std::uint64_t capacity_bytes);

/// Of make_directory_store().
struct DirectoryStoreOptions {
  std::filesystem::path directory = {};         ///< Made, for its owner only, where missing.
  std::uint64_t capacity_bytes = 8ull << 30;    ///< Of the disk, folders too; see below.
  std::uint64_t max_value_bytes = 64ull << 20;  ///< Larger values are refused.
  bool sync_writes = false;                     ///< Each value survives a power failure; slower.
};
/// A store of files: one for each value, and one for all values of up to 440 bytes. Survives
/// restarts; any number of processes may share the folder. What is least recently used makes room,
/// before the capacity is reached; the files of eight processes that write at the same time are
/// within it. Names are the keys in hex. A value whose time is over is a miss, and goes when it is
/// asked for or makes room. A full, removed or read-only folder is kUnavailable until it is better.
/// A local file system is expected (flock, atomic rename). Throws Error{kInvalidArgument} where the
/// folder can be neither opened nor made.
INCIPIT_API std::shared_ptr<Store> make_directory_store(DirectoryStoreOptions options);

/// Of make_redis_store().
struct RedisStoreOptions {
  std::string host = "127.0.0.1";  ///< A name or an address. With `cluster`: of any node.
  std::uint16_t port = 6379;       ///< The same.
  bool cluster = false;            ///< A Redis Cluster: keys are found by their slots.
  /// Read for about a second after the master did not answer, never written. They may lag behind
  /// it. Not with `cluster`.
  std::vector<std::pair<std::string, std::uint16_t>> replicas = {};
  std::string user = {};                ///< Empty: the default user.
  std::string password = {};            ///< Empty: no AUTH. Sent to every node and replica.
  int database = 0;                     ///< Not with `cluster`.
  std::string key_prefix = "incipit:";  ///< In front of every key; at most 128 bytes.
  unsigned connections = 4;             ///< At most, per node.
  /// Of one string in the server, whose own limit (proto-max-bulk-len) is 512 MiB by default.
  /// Larger values are split, up to 1 GiB. Replies that promise more are not read. At least 1024.
  std::uint64_t max_value_bytes = 64ull << 20;
};
/// A store in a Redis server (6 or later), its replicas, or a Redis Cluster. It connects when it is
/// first used, and anew after a failure: an unreachable server is no error, and each call costs its
/// deadline at most, save that resolving a `host` that is a name takes what the system takes.
/// Nothing is encrypted on the way: see SECURITY.md.
/// Throws Error{kInvalidArgument} where this build has no hiredis, or options contradict.
INCIPIT_API std::shared_ptr<Store> make_redis_store(RedisStoreOptions options);

/// Of make_memcached_store().
struct MemcachedStoreOptions {
  /// "host:port" or "[IPv6 address]:port" each. Keys are spread over them by libmemcached's
  /// consistent hashing; the keys of one that is down are unavailable.
  std::vector<std::string> servers = {"127.0.0.1:11211"};
  std::string key_prefix = "incipit:";  ///< In front of every key; at most 128 visible characters.
  unsigned connections = 4;             ///< At most, to each server.
  /// The servers' item limit (memcached -I). Larger values are split, up to 1 GiB. At least 1024.
  std::uint64_t max_value_bytes = 1ull << 20;
};
/// A store in memcached servers. Connections, failures and deadlines are as make_redis_store()'s.
/// Throws Error{kInvalidArgument} where this build has no libmemcached, or options make no sense.
INCIPIT_API std::shared_ptr<Store> make_memcached_store(MemcachedStoreOptions options);

}  // namespace incipit::inline v0

#endif  // INCIPIT_STORE_H_
