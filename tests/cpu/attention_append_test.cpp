// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "cpu/kernel_fixture.h"
#include "cpu/kv_order.h"
#include "support/catch.h"

// What append_kv makes of a token's values in int8, by the contract of cpu/kv_order.h.

namespace incipit::testing {
namespace {

constexpr std::size_t kBlocks = 2, kKvHeads = 2, kPosition = 5;
constexpr std::byte kUntouched{0x5a};

/// One token in the second block of a pool.
class Token {
 public:
  Token(const KernelPath& path, std::size_t head_dim, const std::vector<float>& k,
        const std::vector<float>& v)
      : layout_({1, kKvHeads, head_dim, device::KvFormat::kInt8}),
        bytes_(kBlocks * layout_.block_bytes(), kUntouched) {
    const device::KvSlot slot = {1, kPosition};
    path.kernels->append_kv({bytes_.data(), kBlocks, layout_}, 0, view(k, kKvHeads * head_dim),
                            view(v, kKvHeads * head_dim), &slot);
  }

  int k(std::size_t head, std::size_t dim) const {
    return integer(k_base(head) + cpu::k_index_pairs(kPosition, dim));
  }
  int v(std::size_t head, std::size_t dim) const {
    return integer(v_base(head) + cpu::v_index_pairs(kPosition, dim, layout_.shape().head_dim));
  }
  float k_scale(std::size_t head) const { return scale(k_base(head)); }
  float v_scale(std::size_t head) const { return scale(v_base(head)); }

  std::size_t touched() const {
    std::size_t count = 0;
    for (const std::byte byte : bytes_) count += byte != kUntouched ? 1 : 0;
    return count;
  }

 private:
  const std::byte* k_base(std::size_t head) const {
    return bytes_.data() + layout_.block_bytes() + layout_.k_offset(0, head);
  }
  const std::byte* v_base(std::size_t head) const {
    return bytes_.data() + layout_.block_bytes() + layout_.v_offset(0, head);
  }
  static int integer(const std::byte* at) { return static_cast<std::int8_t>(*at); }
  float scale(const std::byte* base) const {
    float scale;
    std::memcpy(&scale, base + layout_.scales_offset() + kPosition * sizeof(float), sizeof scale);
    return scale;
  }

  device::KvLayout layout_;
  std::vector<std::byte> bytes_;
};

TEST_CASE("int8 KV is each head's values over its largest, rounded to nearest even") {
  for (const KernelPath& path : kernel_paths()) {
    CAPTURE(path.name);
    // Head 0: largest 127, so that values are what they count as. Head 1: others.
    const std::vector<float> k = {-127.0f, 0.5f, 1.5f, -2.5f, 2.0f, -4.0f, 1.0f, 0.0f};
    const std::vector<float> v = {126.5f, -127.0f, 0.49f, -0.5f, 0.0f, 0.0f, 1e-3f, -1e-3f};
    const Token token(path, 4, k, v);
    const int k_expected[] = {-127, 0, 2, -2, 64, -127, 32, 0};
    const int v_expected[] = {126, -127, 0, 0, 0, 0, 127, -127};
    for (std::size_t i = 0; i < 8; ++i) {
      CAPTURE(i);
      CHECK(token.k(i / 4, i % 4) == k_expected[i]);
      CHECK(token.v(i / 4, i % 4) == v_expected[i]);
    }
    CHECK(token.k_scale(0) == 1.0f);
    CHECK(token.v_scale(0) == 1.0f);
    CHECK(token.k_scale(1) == 4.0f / 127.0f);
    CHECK(token.v_scale(1) == 1e-3f / 127.0f);
  }
}

TEST_CASE("int8 KV is off by half a step at most, for every size of head") {
  std::mt19937 random(3);
  for (const KernelPath& path : kernel_paths()) {
    for (const std::size_t head_dim : {2u, 6u, 16u, 64u, 80u, 130u, 256u}) {
      const auto k = random_floats(random, kKvHeads * head_dim, 30.0f);
      const auto v = random_floats(random, kKvHeads * head_dim, 1e-12f);
      const Token token(path, head_dim, k, v);
      CAPTURE(path.name, head_dim);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < kKvHeads * head_dim; ++i) {
        const std::size_t head = i / head_dim, dim = i % head_dim;
        const float ks = token.k_scale(head), vs = token.v_scale(head);
        const float k_error = std::abs(ks * static_cast<float>(token.k(head, dim)) - k[i]);
        const float v_error = std::abs(vs * static_cast<float>(token.v(head, dim)) - v[i]);
        if (!(k_error <= 0.5001f * ks && v_error <= 0.5001f * vs)) ++wrong;
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("int8 KV of a head that vanishes is zero, and damage shows in its head only") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const KernelPath& path : kernel_paths()) {
    for (const float damage : {kInfinity, -kInfinity, kNan, -kNan}) {
      const Token token(path, 4, {1.0f, 2.0f, damage, 4.0f, 1.0f, 2.0f, 3.0f, 4.0f},
                        {0.0f, -0.0f, 0x1p-101f, 0x1p-149f, damage, 0.0f, 0.0f, 0.0f});
      CAPTURE(path.name, damage);
      CHECK(std::isnan(token.k_scale(0)));
      CHECK(token.k_scale(1) == 4.0f / 127.0f);
      CHECK(token.v_scale(0) == 0.0f);
      CHECK(std::isnan(token.v_scale(1)));
      for (std::size_t i = 0; i < 4; ++i) {
        CHECK(token.k(0, i) == 0);
        CHECK(token.v(0, i) == 0);
        CHECK(token.v(1, i) == 0);
      }
    }
    constexpr float kLargest = std::numeric_limits<float>::max();
    const Token token(path, 2, {kLargest, -kLargest, 0.0f, 0.0f}, {0x1p-100f, 0.0f, 0.0f, 0.0f});
    CHECK(token.k(0, 0) == 127);
    CHECK(token.k(0, 1) == -127);
    CHECK(token.v(0, 0) == 127);
    CHECK(std::isfinite(token.k_scale(0)));
  }
}

TEST_CASE("int8 KV writes its own bytes only") {
  for (const KernelPath& path : kernel_paths()) {
    const std::vector<float> values(kKvHeads * 6, 1.0f);
    CHECK(Token(path, 6, values, values).touched() == 2 * kKvHeads * (6 + sizeof(float)));
  }
}

}  // namespace
}  // namespace incipit::testing
