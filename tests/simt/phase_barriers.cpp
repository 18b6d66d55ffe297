// SPDX-License-Identifier: Apache-2.0
#include "simt/phase_barriers.h"

#include <algorithm>
#include <cstring>

#include "simt/device.h"
#include "simt/sanitizers.h"
#include "simt/scheduler.h"

namespace incipit::simt {
namespace {

constexpr std::size_t kValue = 2;  // bytes
constexpr unsigned kMaxCount = (1u << 20) - 1;

std::uint32_t box_bytes(const TensorMap& map) {
  return map.box[0] * map.box[1] * static_cast<std::uint32_t>(kValue);
}

/// The rules of cuTensorMapEncodeTiled for SWIZZLE_128B.
void check_map(const TensorMap& map, Site site) {
  Scheduler& scheduler = Scheduler::running();
  if (reinterpret_cast<std::uintptr_t>(map.base) % 16 != 0 || map.strides[0] % 16 != 0 ||
      map.strides[1] % 16 != 0) {
    scheduler.fail({"tensor map: base and strides must be multiples of 16 bytes", site});
  }
  if (map.box[0] * kValue > 128 || map.box[0] * kValue % 16 != 0 || map.box[0] == 0 ||
      map.box[1] == 0 || map.box[1] > 256) {
    scheduler.fail(
        {"tensor map: a swizzled box has rows of 16 to 128 bytes, and 256 of them at "
         "most",
         site});
  }
  for (const std::uint64_t extent : map.extents) {
    if (extent == 0 || extent > std::uint64_t{1} << 32) {
      scheduler.fail({"tensor map: an extent is none", site});
    }
  }
}

/// Row `row` of the box of a copy: zeros where it lies outside of the array.
void read_row(const TensorCopy& copy, unsigned row, std::uint16_t* values) {
  const TensorMap& map = copy.map;
  const auto inside = [&](std::int64_t at, unsigned dimension) {
    return at >= 0 && static_cast<std::uint64_t>(at) < map.extents[dimension];
  };
  const std::int64_t second = std::int64_t{copy.first[1]} + row, third = copy.first[2];
  for (unsigned i = 0; i < map.box[0]; ++i) {
    const std::int64_t at = std::int64_t{copy.first[0]} + i;
    values[i] = 0;
    if (!inside(at, 0) || !inside(second, 1) || !inside(third, 2)) continue;
    const auto* const from = static_cast<const unsigned char*>(map.base) +
                             static_cast<std::uint64_t>(third) * map.strides[1] +
                             static_cast<std::uint64_t>(second) * map.strides[0] +
                             static_cast<std::uint64_t>(at) * kValue;
    std::memcpy(&values[i], from, kValue);
  }
}

void perform(const TensorCopy& copy) {
  SharedMemory& shared = Scheduler::running().shared();
  const std::uint32_t start = shared.address_of(copy.to);
  for (unsigned row = 0; row < copy.map.box[1]; ++row) {
    std::uint16_t values[64];
    read_row(copy, row, values);
    const auto row_bytes = static_cast<std::uint32_t>(copy.map.box[0] * kValue);
    for (std::uint32_t byte = 0; byte < row_bytes; byte += 16) {
      std::memcpy(shared.at(swizzled(start + row * row_bytes + byte), 16), &values[byte / kValue],
                  16);
    }
  }
}

}  // namespace

void PhaseBarriers::clear() {
  const OverlookRaces overlook;
  barriers_.clear();
}

std::string PhaseBarriers::end_block() const {
  for (const auto& [address, barrier] : barriers_) {
    if (!barrier.copies.empty()) return "a block ends with tensor copies that nobody waited for";
  }
  return "";
}

PhaseBarriers::Barrier& PhaseBarriers::find(const void* barrier, Site site) {
  const auto found = barriers_.find(barrier);
  if (found == barriers_.end()) {
    Scheduler::running().fail({"mbarrier: used before it is made", site});
  }
  return found->second;
}

void PhaseBarriers::init(const void* barrier, unsigned count, Site site) {
  Scheduler& scheduler = Scheduler::running();
  if (scheduler.machine().options.architecture < 90) {
    scheduler.fail({"mbarrier with transactions needs sm_90", site});
  }
  if (!scheduler.shared().contains(barrier, 8) ||
      reinterpret_cast<std::uintptr_t>(barrier) % 8 != 0) {
    scheduler.fail({"mbarrier: not 8 aligned bytes of shared memory", site});
  }
  if (count == 0 || count > kMaxCount) scheduler.fail({"mbarrier of ", count, " arrivals", site});
  if (barriers_.count(barrier) != 0) scheduler.fail({"mbarrier: made twice", site});
  const OverlookRaces overlook;
  Barrier& made = barriers_[barrier];
  made.count = made.pending = count;
  made.maker = scheduler.me().number;
}

void PhaseBarriers::publish(Site) {
  for (auto& [address, barrier] : barriers_) {
    if (barrier.maker == Scheduler::running().me().number) barrier.published = true;
  }
}

void PhaseBarriers::wake_all(Barrier& barrier) {
  for (Lane* const lane : barrier.waiting) Scheduler::running().wake(*lane);
  barrier.waiting.clear();
}

void PhaseBarriers::finish_phase(Barrier& barrier) {
  if (barrier.pending != 0 || barrier.bytes != 0) return;
  ++barrier.phase;
  barrier.pending = barrier.count;
}

void PhaseBarriers::arrive(const void* barrier, std::uint32_t bytes, Site site) {
  Scheduler& scheduler = Scheduler::running();
  Barrier& here = find(barrier, site);
  if (here.pending == 0) scheduler.fail({"mbarrier: more arrivals than it counts", site});
  release(&here.keys[here.phase % 2]);
  here.bytes += bytes;
  --here.pending;
  finish_phase(here);
  wake_all(here);
  scheduler.perhaps_switch();
}

void PhaseBarriers::finish_copies(Barrier& barrier, Site site) {
  Scheduler& scheduler = Scheduler::running();
  if (scheduler.machine().options.schedule == Schedule::kReverse) {
    std::reverse(barrier.copies.begin(), barrier.copies.end());
  }
  for (const TensorCopy& copy : barrier.copies) {
    const OverlookRaces overlook;  // no thread does it
    perform(copy);
    barrier.bytes -= box_bytes(copy.map);
  }
  barrier.copies.clear();
  if (barrier.bytes < 0) {
    scheduler.fail({"mbarrier: copies bring more bytes than it expects", site});
  }
  finish_phase(barrier);
  wake_all(barrier);
}

void PhaseBarriers::wait(const void* barrier, unsigned parity, Site site) {
  Scheduler& scheduler = Scheduler::running();
  scheduler.perhaps_switch();
  Barrier& here = find(barrier, site);
  while (here.phase % 2 == parity) {  // the phase of that parity is not over
    if (here.pending == 0 && !here.copies.empty()) {
      finish_copies(here, site);
      continue;
    }
    {
      const OverlookRaces overlook;
      here.waiting.push_back(&scheduler.me());
    }
    scheduler.sleep(parity == 0 ? "an mbarrier's phase of parity 0, shared address "
                                : "an mbarrier's phase of parity 1, shared address ",
                    scheduler.shared().address_of(barrier), site);
  }
  acquire(&here.keys[parity]);
}

void PhaseBarriers::copy(void* to, const TensorMap& map, const std::array<std::int32_t, 3>& first,
                         const void* barrier, Site site) {
  Scheduler& scheduler = Scheduler::running();
  Barrier& here = find(barrier, site);
  check_map(map, site);
  const std::uint32_t bytes = box_bytes(map);
  if (!here.published) {
    scheduler.fail({"tensor copy: no fence has made the mbarrier known to it", site});
  }
  if (!scheduler.shared().contains(to, bytes)) {
    scheduler.fail({"tensor copy to outside of shared memory", site});
  }
  if (scheduler.shared().address_of(to) % 128 != 0) {
    scheduler.fail({"tensor copy to an address that is no multiple of 128", site});
  }
  if (scheduler.shared().unfenced_writer(to, bytes) >= 0) {
    scheduler.fail({"tensor copy to where a thread has stored without fence.proxy.async", site});
  }
  ++scheduler.machine().counters.tensor_copies;
  scheduler.machine().counters.tensor_copy_bytes += bytes;
  const OverlookRaces overlook;
  std::memset(to, 0xff, bytes);
  here.copies.push_back({static_cast<unsigned char*>(to), map, first});
  wake_all(here);
}

std::uint32_t shared_address(const void* pointer) {
  return Scheduler::running().shared().address_of(pointer);
}

void init_barrier(const void* barrier, unsigned count, Site site) {
  Scheduler::running().phase_barriers().init(barrier, count, site);
}

void publish_barriers(Site site) { Scheduler::running().phase_barriers().publish(site); }

void arrive(const void* barrier, std::uint32_t bytes, Site site) {
  Scheduler::running().phase_barriers().arrive(barrier, bytes, site);
}

void wait_phase(const void* barrier, unsigned parity, Site site) {
  Scheduler::running().phase_barriers().wait(barrier, parity, site);
}

void copy_box(void* to, const TensorMap& map, std::int32_t x, std::int32_t y, std::int32_t z,
              const void* barrier, Site site) {
  Scheduler::running().phase_barriers().copy(to, map, {x, y, z}, barrier, site);
}

void fence_async_proxy() {
  Scheduler& scheduler = Scheduler::running();
  scheduler.shared().fence(scheduler.me().number);
}

}  // namespace incipit::simt
