// SPDX-License-Identifier: Apache-2.0
#include "store/memcached_ring.h"

#include <libmemcached/memcached.h>

#include <string>

#include "base/check.h"

namespace incipit::store {

struct MemcachedRing::Servers {
  Servers() { INCIPIT_CHECK(memcached_create(&client) != nullptr); }
  ~Servers() { memcached_free(&client); }
  Servers(const Servers&) = delete;
  Servers& operator=(const Servers&) = delete;

  memcached_st client = {};
  std::size_t count = 0;
};

MemcachedRing::MemcachedRing(std::span<const Endpoint> servers) {
  auto made = std::make_unique<Servers>();
  memcached_st& client = made->client;
  made->count = servers.size();
  INCIPIT_CHECK(memcached_success(
      memcached_behavior_set_distribution(&client, MEMCACHED_DISTRIBUTION_CONSISTENT_KETAMA)));
  for (const Endpoint& server : servers) {
    INCIPIT_CHECK(
        memcached_success(memcached_server_add(&client, server.host.c_str(), server.port)));
  }
  servers_ = std::move(made);
}

MemcachedRing::~MemcachedRing() = default;

std::size_t MemcachedRing::server_of(std::string_view name) const {
  const std::size_t index = memcached_generate_hash(&servers_->client, name.data(), name.size());
  INCIPIT_CHECK(index < servers_->count);
  return index;
}

}  // namespace incipit::store
