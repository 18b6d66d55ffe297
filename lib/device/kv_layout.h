// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_DEVICE_KV_LAYOUT_H_
#define INCIPIT_DEVICE_KV_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace incipit::device {

/// Index of a block in a pool.
using BlockId = std::uint32_t;

/// Tokens whose KV one block holds.
inline constexpr std::size_t kBlockTokens = 16;

/// How the pool stores K and V. kInt8 is 8-bit integers with an F32 scale per token and KV head,
/// for K and for V: a token's values are rounded once, when they are written.
enum class KvFormat : std::uint8_t { kF32, kF16, kBF16, kInt8 };

std::string_view name(KvFormat format) noexcept;  // "INT8"
std::size_t value_bytes(KvFormat format) noexcept;

/// What of a model decides the shape of its KV.
struct KvShape {
  std::size_t layers = 0;
  std::size_t kv_heads = 0;
  std::size_t head_dim = 0;
  KvFormat type = KvFormat::kF32;
};

/// Where K and V lie inside a block: [layer][K|V][kv_head][16 x head_dim values], all layers of a
/// block contiguous, so that one block is one copy. kInt8 has the 16 scales behind the values; as
/// F32 they are one cache line, which leaves the records of all heads on lines of their own. The
/// order of the 16 x head_dim values is the device's choice and part of its numerics id.
class KvLayout {
 public:
  KvLayout() = default;
  explicit KvLayout(const KvShape& shape)
      : shape_(shape),
        values_bytes_(kBlockTokens * shape.head_dim * value_bytes(shape.type)),
        head_bytes_(values_bytes_ +
                    (shape.type == KvFormat::kInt8 ? kBlockTokens * sizeof(float) : 0)) {}

  const KvShape& shape() const noexcept { return shape_; }
  std::size_t head_bytes() const noexcept { return head_bytes_; }       // one head's K (or V)
  std::size_t scales_offset() const noexcept { return values_bytes_; }  // within them; kInt8 only
  std::size_t block_bytes() const noexcept {
    return shape_.layers * 2 * shape_.kv_heads * head_bytes_;
  }
  std::size_t k_offset(std::size_t layer, std::size_t kv_head) const noexcept {
    return (layer * 2 * shape_.kv_heads + kv_head) * head_bytes_;
  }
  std::size_t v_offset(std::size_t layer, std::size_t kv_head) const noexcept {
    return k_offset(layer, kv_head) + shape_.kv_heads * head_bytes_;
  }

 private:
  KvShape shape_;
  std::size_t values_bytes_ = 0;
  std::size_t head_bytes_ = 0;
};

/// A pool of blocks in device memory; owned by kv::BlockPool.
struct KvPoolView {
  std::byte* data = nullptr;
  std::size_t blocks = 0;
  KvLayout layout = {};

  std::byte* block(BlockId id) const noexcept { return data + id * layout.block_bytes(); }
};

/// Where one token's K and V go.
struct KvSlot {
  BlockId block = 0;
  std::uint32_t offset = 0;  // token within the block, < kBlockTokens
};

}  // namespace incipit::device

#endif  // INCIPIT_DEVICE_KV_LAYOUT_H_
