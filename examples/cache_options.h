// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_EXAMPLES_CACHE_OPTIONS_H_
#define INCIPIT_EXAMPLES_CACHE_OPTIONS_H_

#include <incipit/prefix_cache.h>
#include <incipit/store.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

// Where KV is kept besides memory, as command line options.

namespace examples {

struct CacheOptions {
  std::string directory, redis, redis_cluster, memcached;
};

inline void declare(CLI::App& app, CacheOptions& options) {
  app.add_option("--cache-dir", options.directory, "Keep KV in this folder, too");
  app.add_option("--redis", options.redis, "Keep KV in this Redis server, HOST:PORT");
  app.add_option("--redis-cluster", options.redis_cluster,
                 "Keep KV in the Redis Cluster that this node belongs to, HOST:PORT");
  app.add_option("--memcached", options.memcached, "Keep KV in this memcached server, HOST:PORT");
}

inline incipit::RedisStoreOptions redis_at(const std::string& address, bool cluster) {
  incipit::RedisStoreOptions redis;
  redis.cluster = cluster;
  const std::size_t colon = address.rfind(':');
  redis.host = address.substr(0, colon);
  const std::string port = colon == std::string::npos ? "" : address.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), redis.port);
  if (error != std::errc{} || end != port.data() + port.size()) {
    throw std::runtime_error("'" + address + "' is not HOST:PORT");
  }
  return redis;
}

/// The cache that the options describe, fastest tier first.
inline std::shared_ptr<incipit::PrefixCache> make_cache(const CacheOptions& options) {
  incipit::PrefixCacheOptions cache;
  if (!options.directory.empty()) {
    incipit::DirectoryStoreOptions directory;
    directory.directory = options.directory;
    cache.tiers.push_back({incipit::make_directory_store(directory)});
  }
  if (!options.redis.empty()) {
    cache.tiers.push_back({incipit::make_redis_store(redis_at(options.redis, false))});
  }
  if (!options.redis_cluster.empty()) {
    cache.tiers.push_back({incipit::make_redis_store(redis_at(options.redis_cluster, true))});
  }
  if (!options.memcached.empty()) {
    incipit::MemcachedStoreOptions memcached;
    memcached.servers = {options.memcached};
    cache.tiers.push_back({incipit::make_memcached_store(memcached)});
  }
  return std::make_shared<incipit::PrefixCache>(std::move(cache));
}

}  // namespace examples

#endif  // INCIPIT_EXAMPLES_CACHE_OPTIONS_H_
