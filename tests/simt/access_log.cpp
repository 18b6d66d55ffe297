// SPDX-License-Identifier: Apache-2.0
#include "simt/access_log.h"

#include <algorithm>

#include "simt/sanitizers.h"

namespace incipit::simt {
namespace {

constexpr std::size_t kFirstBuckets = 1024;
constexpr unsigned kBanks = 32;
constexpr unsigned kBankBytes = 4;
constexpr unsigned kSectorBytes = 32;

bool is_shared(Access access) {
  return access == Access::kSharedLoad || access == Access::kSharedStore;
}

}  // namespace

unsigned bank_conflicts(const std::uintptr_t* addresses, unsigned count, unsigned bytes) {
  const unsigned words = std::max(1u, bytes / kBankBytes);
  const unsigned lanes_per_part = std::max(1u, kBanks / words);
  unsigned conflicts = 0;
  for (unsigned first = 0; first < count; first += lanes_per_part) {
    std::uintptr_t wanted[kBanks];
    unsigned size = 0;
    for (unsigned i = first; i < std::min(count, first + lanes_per_part); ++i) {
      for (unsigned w = 0; w < words; ++w) wanted[size++] = addresses[i] / kBankBytes + w;
    }
    std::sort(wanted, wanted + size);
    const auto distinct = static_cast<unsigned>(std::unique(wanted, wanted + size) - wanted);
    unsigned per_bank[kBanks] = {};
    unsigned most = 1;
    for (unsigned i = 0; i < distinct; ++i) most = std::max(most, ++per_bank[wanted[i] % kBanks]);
    conflicts += most - 1;
  }
  return conflicts;
}

unsigned sectors(const std::uintptr_t* addresses, unsigned count, unsigned bytes) {
  std::uintptr_t touched[32 * 2];
  unsigned size = 0;
  for (unsigned i = 0; i < count; ++i) {
    touched[size++] = addresses[i] / kSectorBytes;
    touched[size++] = (addresses[i] + bytes - 1) / kSectorBytes;
  }
  std::sort(touched, touched + size);
  return static_cast<unsigned>(std::unique(touched, touched + size) - touched);
}

void AccessLog::begin_block(Counters& counters, const Options& options) {
  counters_ = &counters;
  options_ = &options;
  table_.assign(kFirstBuckets, 0);
  places_.clear();
  conflict_.clear();
}

/// The bucket of a place, which is 0 if it is new.
std::uint32_t& AccessLog::find(unsigned warp, Access access, unsigned bytes, Site site) {
  const auto line = static_cast<std::size_t>(site.line);
  std::size_t bucket = line * 0x9E3779B9u + warp * 0x85EBCA6Bu +
                       reinterpret_cast<std::uintptr_t>(site.file) + static_cast<unsigned>(access);
  for (;; ++bucket) {
    std::uint32_t& index = table_[bucket % table_.size()];
    if (index == 0) return index;
    const Place& found = places_[index - 1];
    if (found.warp == warp && found.site.line == site.line && found.site.file == site.file &&
        found.access == access && found.bytes == bytes) {
      return index;
    }
  }
}

void AccessLog::grow() {
  table_.assign(2 * table_.size(), 0);
  for (std::uint32_t i = 0; i < places_.size(); ++i) {
    find(places_[i].warp, places_[i].access, places_[i].bytes, places_[i].site) = i + 1;
  }
}

AccessLog::Place& AccessLog::place(unsigned warp, Access access, unsigned bytes, Site site) {
  std::uint32_t* index = &find(warp, access, bytes, site);
  if (*index == 0) {
    if (2 * places_.size() >= table_.size()) {
      grow();
      index = &find(warp, access, bytes, site);
    }
    places_.push_back({site, warp, access, bytes});
    *index = static_cast<std::uint32_t>(places_.size());
  }
  return places_[*index - 1];
}

void AccessLog::note(unsigned warp, unsigned lane, Access access, const void* address,
                     unsigned bytes, Site site) {
  if (!options_->count_accesses) return;
  const OverlookRaces overlook;
  Place& here = place(warp, access, bytes, site);
  const std::uint32_t index = here.visits[lane]++ - here.counted;
  while (here.open.size() <= index) here.open.emplace_back();
  Instruction& instruction = here.open[index];
  instruction.mask |= 1u << lane;
  instruction.addresses[lane] = reinterpret_cast<std::uintptr_t>(address);
  while (!here.open.empty() && here.open.front().mask == 0xffffffffu) {
    count(here, here.open.front());
    here.open.pop_front();
    ++here.counted;
  }
}

void AccessLog::count(const Place& place, const Instruction& instruction) {
  std::uintptr_t addresses[32];
  unsigned lanes = 0;
  for (unsigned i = 0; i < 32; ++i) {
    if ((instruction.mask >> i & 1u) != 0) addresses[lanes++] = instruction.addresses[i];
  }
  if (is_shared(place.access)) {
    const unsigned conflicts = bank_conflicts(addresses, lanes, place.bytes);
    counters_->bank_conflicts += conflicts;
    if (conflicts > 0 && options_->conflicts_fail && conflict_.empty()) {
      conflict_ = "bank conflict at " + std::string(place.site.file) + ":" +
                  std::to_string(place.site.line) + ": " + std::to_string(conflicts) +
                  " extra passes";
    }
    return;
  }
  const unsigned touched = sectors(addresses, lanes, place.bytes);
  const std::uint64_t bytes = std::uint64_t{lanes} * place.bytes;
  const bool load = place.access == Access::kGlobalLoad;
  ++(load ? counters_->global_loads : counters_->global_stores);
  (load ? counters_->global_load_bytes : counters_->global_store_bytes) += bytes;
  (load ? counters_->global_load_sectors : counters_->global_store_sectors) += touched;
}

void AccessLog::pass_barrier() {
  const OverlookRaces overlook;
  for (Place& place : places_) {
    for (const Instruction& instruction : place.open) count(place, instruction);
    place.open.clear();
    place.visits = {};
    place.counted = 0;
  }
}

std::string AccessLog::end_block() {
  pass_barrier();
  places_.clear();
  return conflict_;
}

}  // namespace incipit::simt
