// SPDX-License-Identifier: Apache-2.0
#include "store/server_pool.h"

#include <utility>

namespace incipit::store {

struct ServerPool::Place {
  explicit Place(ServerPool& of) : pool(of), socket(of.take_resting()) {}
  ~Place() { pool.give_back(std::move(socket)); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  ServerPool& pool;
  std::unique_ptr<ServerSocket> socket;
};

bool ServerPool::run(Deadline deadline, base::FunctionRef<bool(ServerSocket&)> call) {
  if (!wait_for_place(deadline)) return false;
  Place place(*this);
  if (place.socket != nullptr) {
    if (call(*place.socket)) return true;
    if (place.socket->good()) return false;
    drop_resting();  // They are as old, or older.
    if (place.socket->timed_out()) return false;
  }
  place.socket = open(deadline);
  return place.socket != nullptr && call(*place.socket);
}

bool ServerPool::wait_for_place(Deadline deadline) {
  std::unique_lock lock(mutex_);
  if (!returned_.wait_until(lock, deadline, [this] { return lent_ < limit_; })) return false;
  ++lent_;
  return true;
}

std::unique_ptr<ServerSocket> ServerPool::take_resting() {
  const std::lock_guard lock(mutex_);
  while (!resting_.empty()) {
    std::unique_ptr<ServerSocket> socket = std::move(resting_.back());
    resting_.pop_back();
    // What has arrived unasked is the end of the connection, or the answer to another question.
    if (socket->quiet()) return socket;
  }
  return nullptr;
}

void ServerPool::give_back(std::unique_ptr<ServerSocket> socket) {
  {
    const std::lock_guard lock(mutex_);
    --lent_;
    if (socket != nullptr && socket->good()) resting_.push_back(std::move(socket));
  }
  returned_.notify_one();
}

void ServerPool::drop_resting() {
  std::vector<std::unique_ptr<ServerSocket>> dropped;
  const std::lock_guard lock(mutex_);
  dropped.swap(resting_);
}

std::unique_ptr<ServerSocket> ServerPool::open(Deadline deadline) const {
  auto socket = std::make_unique<ServerSocket>(endpoint_, deadline);
  if (!socket->good() || (greeting_ && !greeting_(*socket, deadline))) return nullptr;
  return socket;
}

}  // namespace incipit::store
