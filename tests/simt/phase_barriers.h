// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_SIMT_PHASE_BARRIERS_H_
#define INCIPIT_TESTS_SIMT_PHASE_BARRIERS_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "simt/types.h"

// mbarrier objects, and the tensor copies that report to them, at their worst: a target holds
// garbage from the moment of issue, and the data not before a thread waits for the barrier and
// nothing but the copies is missing.

namespace incipit::simt {

struct Lane;

struct TensorCopy {
  unsigned char* to;
  TensorMap map;
  std::array<std::int32_t, 3> first;  // coordinates of the box
};

class PhaseBarriers {
 public:
  void clear();
  /// What is wrong at the end of a block; "" if nothing.
  std::string end_block() const;

  // For the thread that runs.
  void init(const void* barrier, unsigned count, Site site);
  /// Lets copies find the barriers that this thread has made.
  void publish(Site site);
  void arrive(const void* barrier, std::uint32_t bytes, Site site);
  void wait(const void* barrier, unsigned parity, Site site);
  void copy(void* to, const TensorMap& map, const std::array<std::int32_t, 3>& first,
            const void* barrier, Site site);

 private:
  struct Barrier {
    unsigned count = 0, pending = 0;  // arrivals of a phase, and those still missing
    std::int64_t bytes = 0;           // expected and not copied yet
    std::uint64_t phase = 0;
    unsigned maker = 0;
    bool published = false;
    std::vector<TensorCopy> copies = {};
    std::vector<Lane*> waiting = {};
    std::array<char, 2> keys = {};  // of phases by parity, for `release` and `acquire`
  };
  Barrier& find(const void* barrier, Site site);
  void wake_all(Barrier& barrier);
  void finish_copies(Barrier& barrier, Site site);
  void finish_phase(Barrier& barrier);

  std::map<const void*, Barrier> barriers_;
};

}  // namespace incipit::simt

#endif  // INCIPIT_TESTS_SIMT_PHASE_BARRIERS_H_
