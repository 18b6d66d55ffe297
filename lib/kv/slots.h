// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_KV_SLOTS_H_
#define INCIPIT_KV_SLOTS_H_

#include <cstdint>
#include <vector>

namespace incipit::kv {

/// The index of an element that is not in use; it stays the last of `unused` until the caller takes
/// it. Makes one where there is none, and room for giving all of them back, which must not fail.
template <class Element>
std::uint32_t unused_slot(std::vector<Element>& elements, std::vector<std::uint32_t>& unused) {
  if (unused.empty()) {
    elements.emplace_back();
    unused.reserve(elements.capacity());
    unused.push_back(static_cast<std::uint32_t>(elements.size() - 1));
  }
  return unused.back();
}

}  // namespace incipit::kv

#endif  // INCIPIT_KV_SLOTS_H_
