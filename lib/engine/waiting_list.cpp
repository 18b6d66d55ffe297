// SPDX-License-Identifier: Apache-2.0
#include "engine/waiting_list.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace incipit::engine {

void WaitingList::add(std::shared_ptr<Request> request) {
  const auto place = std::upper_bound(
      entries_.begin(), entries_.end(), request->arrival,
      [](std::uint64_t arrival, const Entry& entry) { return arrival < entry.request->arrival; });
  entries_.insert(place, Entry{.request = std::move(request)});
  next_ = kNobody;
}

void WaitingList::begin_pass() noexcept {
  for (Entry& entry : entries_) {
    entry.known = kNobody;
    entry.aside = false;
  }
  next_ = kNobody;
}

Request* WaitingList::next(const Known& known) {
  const auto oldest = std::find_if(entries_.begin(), entries_.end(),
                                   [](const Entry& entry) { return !entry.aside; });
  if (oldest == entries_.end()) {
    next_ = kNobody;
    return nullptr;
  }
  auto best = oldest;
  if (oldest->passed < kMostPassed) {
    const std::string& salt = oldest->request->labels.salt;
    std::size_t seen = 0;
    for (auto entry = oldest; entry != entries_.end() && seen < kWindow; ++entry) {
      if (entry->aside || entry->request->labels.salt != salt) continue;
      ++seen;
      if (entry->known == kNobody) entry->known = known(*entry->request);
      if (entry->known > best->known) best = entry;
    }
  }
  next_ = static_cast<std::size_t>(best - entries_.begin());
  return best->request.get();
}

void WaitingList::set_aside() {
  INCIPIT_CHECK(next_ < entries_.size());
  entries_[next_].aside = true;
  next_ = kNobody;
}

std::shared_ptr<Request> WaitingList::take() {
  INCIPIT_CHECK(next_ < entries_.size());
  std::shared_ptr<Request> taken = std::move(entries_[next_].request);
  for (std::size_t i = 0; i < next_; ++i) {
    Entry& entry = entries_[i];
    if (!entry.aside && entry.request->labels.salt == taken->labels.salt) ++entry.passed;
  }
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(next_));
  next_ = kNobody;
  return taken;
}

void WaitingList::erase_if(const std::function<bool(Request& request)>& leaves) {
  std::erase_if(entries_, [&](const Entry& entry) { return leaves(*entry.request); });
  next_ = kNobody;
}

}  // namespace incipit::engine
