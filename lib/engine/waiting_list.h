// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_ENGINE_WAITING_LIST_H_
#define INCIPIT_ENGINE_WAITING_LIST_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "engine/request.h"

namespace incipit::engine {

/// Requests that wait to be admitted, and who is next.
///
/// The oldest request says which salt is next: what one tenant has in the cache never changes when
/// another is served. Within its salt, the request goes first of whose prompt the most is known, so
/// that it is used before it is evicted; but nobody is passed over more than kMostPassed times.
class WaitingList {
 public:
  static constexpr std::size_t kMostPassed = 8;
  /// Requests of a salt that are compared.
  static constexpr std::size_t kWindow = 32;

  /// How much of a request's prompt is known now, in tokens.
  using Known = std::function<std::size_t(const Request& request)>;

  bool empty() const noexcept { return entries_.empty(); }
  std::size_t size() const noexcept { return entries_.size(); }

  /// In its place by arrival.
  void add(std::shared_ptr<Request> request);

  /// Starts a new pass over the list: what was known may have changed, who was set aside is back.
  void begin_pass() noexcept;
  /// Who is next; null: nobody who is not set aside.
  Request* next(const Known& known);
  /// Leaves the one who is next out of this pass.
  void set_aside();
  /// Takes out the one who is next.
  std::shared_ptr<Request> take();

  /// Calls `leaves` for each, in order of arrival, and drops those for which it is true.
  void erase_if(const std::function<bool(Request& request)>& leaves);

 private:
  static constexpr std::size_t kNobody = std::numeric_limits<std::size_t>::max();

  struct Entry {
    std::shared_ptr<Request> request;
    std::size_t passed = 0;       // how often a younger one of its salt was taken first
    std::size_t known = kNobody;  // tokens, as of this pass; kNobody: not asked yet
    bool aside = false;
  };

  std::vector<Entry> entries_;  // by arrival
  std::size_t next_ = kNobody;
};

}  // namespace incipit::engine

#endif  // INCIPIT_ENGINE_WAITING_LIST_H_
