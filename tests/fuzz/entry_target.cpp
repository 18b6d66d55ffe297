// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <stdexcept>

#include "fuzz/target.h"
#include "kv/entry.h"
#include "kv/sealer.h"

namespace incipit::fuzz {
namespace {

constexpr std::size_t kBlocks = 2, kBlockBytes = 24;
const StoreKey kName = {};

std::vector<TokenId> tokens() { return std::vector<TokenId>(kBlocks * 16, 7); }

kv::ExtentFacts facts(std::span<const TokenId> tokens) {
  kv::ExtentFacts facts;
  facts.blocks = kBlocks;
  facts.block_bytes = kBlockBytes;
  facts.labels.all.resize(2);
  facts.labels.any.resize(1);
  facts.tokens = tokens;
  return facts;
}

kv::Sealer sealer() {
  kv::SealerOptions options;
  options.now = [] { return kv::WallSeconds{1'800'000'000}; };
  return kv::Sealer(std::move(options));
}

/// As a record, and as the body of one whose seal somebody has forged.
void run(std::string_view bytes) {
  StoreBuffer record;
  std::ranges::copy(base::as_bytes(bytes), record.resize(bytes.size()).begin());
  const kv::Sealer opener = sealer();
  for (const kv::RecordKind kind : {kv::RecordKind::kExtent, kv::RecordKind::kPointer}) {
    opener.open(record, kind, kName);
  }
  const std::vector<TokenId> wanted_tokens = tokens();
  const kv::ExtentFacts wanted = facts(wanted_tokens);
  const auto extent = kv::read_extent(base::as_bytes(bytes), wanted);
  if (extent && extent->payload.size() != wanted.payload_bytes()) {
    throw std::logic_error("an extent without the blocks that were wanted");
  }
  kv::read_pointer(base::as_bytes(bytes), {});
}

std::string text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::string> seeds() {
  const std::vector<TokenId> some_tokens = tokens();
  const kv::ExtentFacts extent = facts(some_tokens);
  std::vector<std::byte> extent_body(extent.facts_bytes() + extent.payload_bytes());
  kv::write_extent(extent, extent_body);
  kv::Pointer pointer;
  pointer.blocks = kBlocks;
  pointer.labels = extent.labels;
  std::vector<std::byte> pointer_body(pointer.bytes());
  kv::write_pointer(pointer, pointer_body);
  std::vector<std::string> seeds = {text(extent_body), text(pointer_body)};
  for (const auto& [kind, body] : {std::pair(kv::RecordKind::kExtent, extent_body),
                                   std::pair(kv::RecordKind::kPointer, pointer_body)}) {
    StoreBuffer record;
    std::ranges::copy(body, kv::Sealer::make_room(record, body.size()).begin());
    sealer().seal(record, kind, kName, std::chrono::seconds(100));
    seeds.push_back(text(record.bytes()));
  }
  return seeds;
}

}  // namespace

constexpr Target kEntry = {run, seeds};

}  // namespace incipit::fuzz
