// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_STORE_SPLIT_VALUE_H_
#define INCIPIT_STORE_SPLIT_VALUE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/function_ref.h"
#include "incipit/store.h"

namespace incipit::store {

/// What an item in a server is. Its first byte says so, the rest is its body.
enum class ItemKind : std::uint8_t {
  kValue = 'V',     ///< A whole value.
  kManifest = 'M',  ///< Stands for a value that is too large for one item.
  kPart = 'P',      ///< A piece of such a value.
};

/// Room for the body of an item of `size` bytes, exactly as many; none where it is not wanted.
using ItemRoom =
    base::FunctionRef<std::optional<std::span<std::byte>>(ItemKind kind, std::uint64_t size)>;

/// The values of a Store as items of a server that limits their size. A value above the limit
/// becomes parts of one size, then a manifest under the value's own name:
///     u64 magic, u64 bytes of the value, u64 count of parts, 16 bytes generation
/// The generation is a digest of the value and part of the parts' names, so that a reader never
/// meets parts of two writers. A part that is missing makes the value a miss.
class SplitStore : public Store {
 public:
  StoreStatus get(const StoreKey& key, Deadline deadline, StoreBuffer& value) final;
  StoreStatus put(const StoreKey& key, std::span<const std::byte> value,
                  std::chrono::seconds time_to_live, Deadline deadline) final;
  StoreStatus erase(const StoreKey& key, Deadline deadline) final;

  /// Bytes of a manifest's body.
  static constexpr std::size_t kManifestBytes = 40;
  /// The longest prefix, with which the name of a part has at most 250 bytes.
  static constexpr std::size_t kMaxPrefix = 128;
  /// Larger values are refused, and manifests that promise one are not believed.
  static constexpr std::uint64_t kMaxValue = 1ull << 30;
  static constexpr std::uint64_t kMaxParts = 1ull << 16;

 protected:
  /// Bodies of at most `max_body` bytes fit an item.
  SplitStore(std::string key_prefix, std::uint64_t max_body);

  std::uint64_t max_body() const noexcept { return max_body_; }

  // Of one item, by the same rules as the calls of a Store.
  /// With `front`, the item may be cut behind the bytes of a manifest.
  virtual StoreStatus read_item(const std::string& name, bool front, Deadline deadline,
                                ItemRoom room) = 0;
  /// `time_to_live` 0: none; else at least a second and at most ten years.
  virtual StoreStatus write_item(const std::string& name, ItemKind kind, base::Bytes body,
                                 std::chrono::seconds time_to_live, Deadline deadline) = 0;
  virtual StoreStatus erase_item(const std::string& name, Deadline deadline) = 0;

 private:
  using Manifest = std::array<std::byte, kManifestBytes>;
  struct Parts;  // how a value is split

  std::string name_of(const StoreKey& key) const;
  StoreStatus put_parts(const std::string& name, base::Bytes value,
                        std::chrono::seconds time_to_live, Deadline deadline);
  StoreStatus get_parts(const std::string& name, const Parts& parts, Deadline deadline,
                        StoreBuffer& value);

  std::string key_prefix_;
  std::uint64_t max_body_;
};

}  // namespace incipit::store

#endif  // INCIPIT_STORE_SPLIT_VALUE_H_
