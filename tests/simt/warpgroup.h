// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_SIMT_WARPGROUP_H_
#define INCIPIT_TESTS_SIMT_WARPGROUP_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "simt/device.h"

// wgmma of sm_90a at its worst: from the moment of issue until its group is waited for, the
// accumulator's registers hold NaN, and operands must stay as they are.

namespace incipit::simt {

/// What one thread brings to wgmma.mma_async.
struct GroupProductPart {
  GroupProduct product;
  float* d;
  const std::uint32_t* a;  // [4], or null: by descriptor
};

/// The bits of a [64, 16] and b [16, columns].
struct GroupOperands {
  std::vector<std::uint16_t> a = {}, b = {};
};

/// A product under way.
struct IssuedProduct {
  std::array<GroupProductPart, kGroupLanes> parts;
  GroupOperands operands;  // as they were at the issue
  std::uint64_t group;
  Site site;

  /// Reads what the operands are now. Fails where a descriptor leads astray, or to what a thread
  /// has stored and not fenced.
  void gather(GroupOperands& now) const;
};

/// Registers that products under way add to.
struct Accumulator {
  std::array<float*, kGroupLanes> registers;
  unsigned columns;
  std::vector<float> values;  // [64, columns]
  std::uint64_t group;        // of the last product

  void read();
  void poison() const;
  bool is_poisoned() const;
  void deliver() const;
  void add(Element type, const GroupOperands& operands);

 private:
  template <class Visit>
  void for_each_register(const Visit& visit) const;
};

/// Four warps: what they have issued and not waited for.
class Warpgroup {
 public:
  void clear();
  /// What is wrong at the end of a block; "" if nothing.
  std::string end_block() const;

  /// All 128 threads come to the same operation at the same place; the last one executes it.
  template <class Execute>
  void meet(const char* operation, Site site, const void* payload, const Execute& execute);
  void fence() { fenced_ = true; }
  void issue(Site site);
  void commit() { ++open_group_; }
  void wait(unsigned pending);

 private:
  void check_same(const GroupProductPart& part, const GroupProductPart& other, Site site) const;
  Accumulator& accumulator_of(const IssuedProduct& product);

  // The meeting that is going on.
  const char* operation_ = nullptr;
  Site site_ = {};
  unsigned arrived_ = 0;
  std::array<const void*, kGroupLanes> payloads_ = {};

  bool fenced_ = false;  // since registers could last be written
  std::uint64_t open_group_ = 0;
  // Not on the stacks of threads, where nothing is destroyed after a failure.
  std::vector<IssuedProduct> products_;
  GroupOperands operands_;
  std::vector<Accumulator> accumulators_;
};

}  // namespace incipit::simt

#endif  // INCIPIT_TESTS_SIMT_WARPGROUP_H_
