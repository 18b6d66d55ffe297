// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_KV_ENTRY_H_
#define INCIPIT_KV_ENTRY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "incipit/sampling.h"
#include "kv/prefix_chain.h"

// What the bodies of records hold (kv/sealer.h). All integers are little-endian.

namespace incipit::kv {

/// What a label is about. The numbers are part of the format.
enum class LabelKind : std::uint8_t {
  kAll = 0,        // everything
  kNameSpace = 1,  // a model and who may share
  kOwner = 2,      // a salt
  kVersion = 3,    // a salt and a version
  kSession = 4,
  kTag = 5,
};

/// A label as stores know it: a digest of kind and name, so that a store sees no names.
using LabelDigest = std::array<std::byte, 16>;
LabelDigest label_digest(LabelKind kind, std::string_view name);

/// A label and the epoch that it had when a record was written.
struct LabelEpoch {
  LabelDigest label = {};
  Epoch epoch = {};
  friend bool operator==(const LabelEpoch&, const LabelEpoch&) = default;
};

/// When a record holds.
struct EntryLabels {
  std::vector<LabelEpoch> all = {};  // while all of these epochs are the present ones
  std::vector<LabelEpoch> any = {};  // and at least one of these, where there are some: sessions

  std::size_t bytes() const noexcept;
};

/// A run of blocks: where it lies in which prefix.
struct ExtentFacts {
  std::uint32_t first_block = 0;
  std::uint32_t blocks = 0;
  std::uint64_t block_bytes = 0;
  Digest256 parent = {};  // of the prefix in front
  EntryLabels labels = {};
  std::span<const TokenId> tokens = {};  // of its blocks
  std::size_t value_bytes = 1;           // of a number of the KV; not stored with it

  std::size_t payload_bytes() const noexcept { return blocks * block_bytes; }
  /// Of all that stands in front of the payload.
  std::size_t facts_bytes() const noexcept;
};

/// Of each kind, at most; a body that names more is damaged.
inline constexpr std::size_t kMaxLabels = 256;
inline constexpr std::size_t kMaxExtentBlocks = 64;

/// What the body of an extent has at most.
std::size_t most_extent_bytes(std::size_t blocks, std::uint64_t block_bytes) noexcept;

/// Writes the facts to the front of `body`, which has facts_bytes() + payload_bytes(). Returns
/// where the payload goes.
std::span<std::byte> write_extent(const ExtentFacts& facts, std::span<std::byte> body);

/// An extent as it came from a store.
struct Extent {
  EntryLabels labels = {};
  base::Bytes payload = {};  // [wanted blocks][block_bytes], in the body
};
/// What `body` holds of what is `wanted`, whose labels do not matter: the extent may have more
/// blocks behind those. None where anything differs.
std::optional<Extent> read_extent(base::Bytes body, const ExtentFacts& wanted);

/// Which extent holds a block.
struct Pointer {
  Digest256 prefix = {};                      // that ends with the block
  Digest256 extent = {};                      // the prefix that ends with the extent
  std::uint32_t first_block = 0, blocks = 0;  // of the extent
  EntryLabels labels = {};                    // of the extent

  std::size_t bytes() const noexcept;
};
void write_pointer(const Pointer& pointer, std::span<std::byte> body);
/// None where `body` is no pointer or is not about `prefix`.
std::optional<Pointer> read_pointer(base::Bytes body, const Digest256& prefix);

}  // namespace incipit::kv

#endif  // INCIPIT_KV_ENTRY_H_
