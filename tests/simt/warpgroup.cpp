// SPDX-License-Identifier: Apache-2.0
// Who takes part in wgmma and when its results are there; group_product.cpp computes them.
#include "simt/warpgroup.h"

#include <algorithm>

#include "simt/sanitizers.h"
#include "simt/scheduler.h"

namespace incipit::simt {
namespace {

bool same(const GroupOperands& a, const GroupOperands& b) {
  const OverlookRaces overlook;
  return a.a == b.a && a.b == b.b;
}

}  // namespace

void Warpgroup::clear() {
  const OverlookRaces overlook;
  arrived_ = 0;
  fenced_ = false;
  open_group_ = 0;
  products_.clear();
  accumulators_.clear();
}

std::string Warpgroup::end_block() const {
  if (products_.empty()) return "";
  std::string message =
      "a block ends with products of a warpgroup that it did not wait for, issued";
  Part(products_.front().site).append_to(message);
  return message;
}

template <class Execute>
void Warpgroup::meet(const char* operation, Site site, const void* payload,
                     const Execute& execute) {
  Scheduler& scheduler = Scheduler::running();
  if (scheduler.machine().options.architecture < 90) {
    scheduler.fail({operation, " needs sm_90a", site});
  }
  if (running_block->block_size.x % kGroupLanes != 0) {
    scheduler.fail({operation, ": the block is not made of whole warpgroups", site});
  }
  if (arrived_ == 0) {
    operation_ = operation;
    site_ = site;
  } else if (operation_ != operation || !(site_ == site)) {
    scheduler.fail({"the threads of a warpgroup are at different places, ", operation_, site_,
                    " and ", operation, site});
  }
  payloads_[scheduler.me().number % kGroupLanes] = payload;
  if (++arrived_ < kGroupLanes) {
    scheduler.sleep(operation, scheduler.me().warp / kGroupWarps, site);
    return;
  }
  arrived_ = 0;
  execute();
  const std::unique_ptr<Lane>* const lanes = scheduler.warpgroup_lanes();
  for (unsigned i = 0; i < kGroupLanes; ++i) {
    if (lanes[i].get() != &scheduler.me()) scheduler.wake(*lanes[i]);
  }
  scheduler.perhaps_switch();
}

void Warpgroup::check_same(const GroupProductPart& part, const GroupProductPart& other,
                           Site site) const {
  const GroupProduct &p = part.product, &q = other.product;
  if (p.a != q.a || p.b != q.b || p.columns != q.columns || p.keep != q.keep) {
    Scheduler::running().fail({"wgmma: the threads of a warpgroup pass different operands", site});
  }
}

Accumulator& Warpgroup::accumulator_of(const IssuedProduct& product) {
  const GroupProductPart& first = product.parts[0];
  for (Accumulator& accumulator : accumulators_) {
    if (accumulator.registers[0] != first.d) continue;
    if (accumulator.columns != first.product.columns || !accumulator.is_poisoned()) {
      Scheduler::running().fail(
          {"wgmma: the accumulator of a product under way was written to", product.site});
    }
    return accumulator;
  }
  const OverlookRaces overlook;
  Accumulator accumulator = {};
  for (unsigned i = 0; i < kGroupLanes; ++i) accumulator.registers[i] = product.parts[i].d;
  accumulator.columns = first.product.columns;
  accumulator.read();
  accumulators_.push_back(std::move(accumulator));
  return accumulators_.back();
}

void Warpgroup::issue(Site site) {
  Scheduler& scheduler = Scheduler::running();
  ++scheduler.machine().counters.group_products;
  if (!fenced_) scheduler.fail({"wgmma: no wgmma.fence since registers may have changed", site});
  {
    const OverlookRaces overlook;
    products_.push_back({{}, {}, open_group_, site});
  }
  IssuedProduct& product = products_.back();
  for (unsigned i = 0; i < kGroupLanes; ++i) {
    product.parts[i] = *static_cast<const GroupProductPart*>(payloads_[i]);
    check_same(product.parts[i], product.parts[0], site);
  }
  product.gather(product.operands);
  Accumulator& accumulator = accumulator_of(product);
  const GroupProduct& what = product.parts[0].product;
  if (!what.keep) std::fill(accumulator.values.begin(), accumulator.values.end(), 0.0f);
  accumulator.group = open_group_;
  accumulator.add(what.type, product.operands);
  accumulator.poison();
}

void Warpgroup::wait(unsigned pending) {
  Scheduler& scheduler = Scheduler::running();
  fenced_ = false;
  if (open_group_ <= pending) return;
  const std::uint64_t end = open_group_ - pending;  // groups before it are complete
  for (const IssuedProduct& product : products_) {
    if (product.group >= end) continue;
    product.gather(operands_);
    if (!same(operands_, product.operands)) {
      scheduler.fail(
          {"wgmma: operands were changed before the product was waited for", product.site});
    }
  }
  for (const Accumulator& accumulator : accumulators_) {
    if (accumulator.group >= end) continue;
    if (!accumulator.is_poisoned()) {
      scheduler.fail({"wgmma: an accumulator was written to before it was waited for"});
    }
    accumulator.deliver();
  }
  const OverlookRaces overlook;
  std::erase_if(products_, [&](const IssuedProduct& product) { return product.group < end; });
  std::erase_if(accumulators_, [&](const Accumulator& a) { return a.group < end; });
}

void multiply_async(const GroupProduct& product, float* d, const std::uint32_t* a, Site site) {
  Warpgroup& group = Scheduler::running().warpgroup();
  const GroupProductPart part = {product, d, a};
  group.meet("wgmma.mma_async of warpgroup ", site, &part, [&] { group.issue(site); });
}

void fence_products(Site site) {
  Warpgroup& group = Scheduler::running().warpgroup();
  group.meet("wgmma.fence of warpgroup ", site, nullptr, [&] { group.fence(); });
}

void commit_products(Site site) {
  Warpgroup& group = Scheduler::running().warpgroup();
  group.meet("wgmma.commit_group of warpgroup ", site, nullptr, [&] { group.commit(); });
}

void wait_products(unsigned pending, Site site) {
  Warpgroup& group = Scheduler::running().warpgroup();
  group.meet("wgmma.wait_group of warpgroup ", site, nullptr, [&] { group.wait(pending); });
}

}  // namespace incipit::simt
