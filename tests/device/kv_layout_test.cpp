// SPDX-License-Identifier: Apache-2.0
#include "device/kv_layout.h"

#include <set>
#include <string_view>

#include "support/catch.h"

using namespace incipit;
using device::KvFormat;
using device::KvLayout;

TEST_CASE("formats of KV have names and sizes") {
  std::set<std::string_view> names;
  for (const KvFormat format : {KvFormat::kF32, KvFormat::kF16, KvFormat::kBF16, KvFormat::kInt8}) {
    names.insert(device::name(format));
  }
  CHECK(names == std::set<std::string_view>{"F32", "F16", "BF16", "INT8"});
  CHECK(device::value_bytes(KvFormat::kF32) == 4);
  CHECK(device::value_bytes(KvFormat::kF16) == 2);
  CHECK(device::value_bytes(KvFormat::kBF16) == 2);
  CHECK(device::value_bytes(KvFormat::kInt8) == 1);
}

TEST_CASE("K and V of all layers and heads fill a block without a gap") {
  for (const KvFormat format : {KvFormat::kF32, KvFormat::kF16, KvFormat::kBF16, KvFormat::kInt8}) {
    const KvLayout layout({.layers = 3, .kv_heads = 2, .head_dim = 10, .type = format});
    CAPTURE(device::name(format));
    std::size_t next = 0;
    for (std::size_t layer = 0; layer < 3; ++layer) {
      for (std::size_t head = 0; head < 2; ++head, next += layout.head_bytes()) {
        CHECK(layout.k_offset(layer, head) == next);
      }
      for (std::size_t head = 0; head < 2; ++head, next += layout.head_bytes()) {
        CHECK(layout.v_offset(layer, head) == next);
      }
    }
    CHECK(layout.block_bytes() == next);
  }
}

TEST_CASE("int8 has a float per token behind the values, and no other type has") {
  const KvLayout f16({.layers = 1, .kv_heads = 1, .head_dim = 64, .type = KvFormat::kF16});
  CHECK(f16.head_bytes() == 16 * 64 * 2);
  const KvLayout int8({.layers = 1, .kv_heads = 1, .head_dim = 64, .type = KvFormat::kInt8});
  CHECK(int8.scales_offset() == 16 * 64);
  CHECK(int8.head_bytes() == 16 * 64 + 16 * 4);
  CHECK(int8.block_bytes() == 2 * (16 * 64 + 16 * 4));
}
