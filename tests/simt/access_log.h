// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_SIMT_ACCESS_LOG_H_
#define INCIPIT_TESTS_SIMT_ACCESS_LOG_H_

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "simt/types.h"

namespace incipit::simt {

enum class Access { kSharedLoad, kSharedStore, kGlobalLoad, kGlobalStore };

/// Extra passes that one access of shared memory by several lanes takes. A pass serves 32 banks of
/// 4 bytes; lanes that want the same word share it. Wide accesses go by parts of 128 bytes.
unsigned bank_conflicts(const std::uintptr_t* addresses, unsigned count, unsigned bytes);

/// 32-byte sectors of global memory that an access of several lanes touches.
unsigned sectors(const std::uintptr_t* addresses, unsigned count, unsigned bytes);

/// Finds the accesses that are one instruction of a warp: the n-th visits of its lanes to a place
/// of the source since the last barrier of the block. Where a warp diverges that is a guess.
class AccessLog {
 public:
  void begin_block(Counters& counters, const Options& options);
  void note(unsigned warp, unsigned lane, Access access, const void* address, unsigned bytes,
            Site site);
  /// All threads have passed a barrier.
  void pass_barrier();
  /// Counts what is left. The first bank conflict where those are failures, else nothing.
  std::string end_block();

 private:
  struct Instruction {
    std::uint32_t mask = 0;
    std::array<std::uintptr_t, 32> addresses = {};
  };
  struct Place {
    Site site;
    unsigned warp;
    Access access;
    unsigned bytes;
    std::array<std::uint32_t, 32> visits = {};
    std::uint32_t counted = 0;  // instructions that are no longer open
    std::deque<Instruction> open = {};
  };
  std::uint32_t& find(unsigned warp, Access access, unsigned bytes, Site site);
  void grow();
  Place& place(unsigned warp, Access access, unsigned bytes, Site site);
  void count(const Place& place, const Instruction& instruction);

  Counters* counters_ = nullptr;
  const Options* options_ = nullptr;
  std::vector<std::uint32_t> table_;  // index into places_ + 1, by hash; a power of two
  std::vector<Place> places_;
  std::string conflict_;
};

}  // namespace incipit::simt

#endif  // INCIPIT_TESTS_SIMT_ACCESS_LOG_H_
