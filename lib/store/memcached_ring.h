// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_STORE_MEMCACHED_RING_H_
#define INCIPIT_STORE_MEMCACHED_RING_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "store/server_socket.h"

namespace incipit::store {

/// Which of several memcached servers has a key: libmemcached's consistent hashing (ketama), so
/// that a server more or less moves its share of the keys only, and other clients agree.
/// Thread-safe.
class MemcachedRing {
 public:
  /// Of at least one server.
  explicit MemcachedRing(std::span<const Endpoint> servers);
  ~MemcachedRing();
  MemcachedRing(const MemcachedRing&) = delete;
  MemcachedRing& operator=(const MemcachedRing&) = delete;

  /// An index into the servers.
  std::size_t server_of(std::string_view name) const;

 private:
  struct Servers;  // of libmemcached

  std::unique_ptr<const Servers> servers_;
};

}  // namespace incipit::store

#endif  // INCIPIT_STORE_MEMCACHED_RING_H_
