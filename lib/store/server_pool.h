// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_STORE_SERVER_POOL_H_
#define INCIPIT_STORE_SERVER_POOL_H_

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/function_ref.h"
#include "store/server_socket.h"

namespace incipit::store {

/// The connections to one server: opened when needed, kept while they are well. Thread-safe.
class ServerPool {
 public:
  /// What a fresh connection starts with (a login); false: the server does not want us.
  using Greeting = std::function<bool(ServerSocket&, Deadline)>;

  /// At most `limit` >= 1 connections at a time.
  ServerPool(Endpoint endpoint, unsigned limit, Greeting greeting = {})
      : endpoint_(std::move(endpoint)), limit_(limit), greeting_(std::move(greeting)) {}

  const Endpoint& endpoint() const noexcept { return endpoint_; }

  /// Lends `call` a connection; true where it says that the server has answered. A connection that
  /// is not good() afterwards is never used again. Servers restart and close what rests: where a
  /// kept connection breaks, `call` runs once more on a fresh one, if there is time.
  bool run(Deadline deadline, base::FunctionRef<bool(ServerSocket&)> call);

 private:
  /// One of the `limit` connections, there or not; goes back to the pool in its destructor.
  struct Place;
  bool wait_for_place(Deadline deadline);
  std::unique_ptr<ServerSocket> take_resting();
  void give_back(std::unique_ptr<ServerSocket> socket);
  void drop_resting();
  std::unique_ptr<ServerSocket> open(Deadline deadline) const;

  const Endpoint endpoint_;
  const unsigned limit_;
  const Greeting greeting_;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::unique_ptr<ServerSocket>> resting_;  // the one used last is at the back
  unsigned lent_ = 0;                                   // places that have a caller now
};

}  // namespace incipit::store

#endif  // INCIPIT_STORE_SERVER_POOL_H_
