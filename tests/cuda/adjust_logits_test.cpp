// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/adjust_logits.cuh"

#include <limits>

#include "cuda/kernel_test.h"

using namespace incipit;
using namespace incipit::testing;

namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

std::vector<std::uint32_t> bits_of(std::size_t count, const std::vector<std::int32_t>& ids) {
  std::vector<std::uint32_t> bits((count + 31) / 32, 0u);
  for (const std::int32_t id : ids) {
    bits[static_cast<std::size_t>(id) / 32] |= 1u << (static_cast<unsigned>(id) % 32);
  }
  return bits;
}

}  // namespace

TEST_CASE("logits are penalised, biased, banned and narrowed, in this order") {
  constexpr unsigned kVocabulary = 70, kStride = 72;
  std::mt19937 random(1);
  auto logits = random_values<float>(random, 2 * kStride - 2, 4.0f);
  logits[5] = 0.0f;
  const std::vector<std::int32_t> seen = {0, 5, 33, 69}, banned = {1, 33}, allowed = {0, 1, 5, 69};
  const std::vector<cuda::LogitBias> biases = {{5, -1.5f}, {69, 2.0f}, {1, 3.0f}};
  const auto got = run([&](cuda::Stream stream) {
    DeviceArray<float> device_logits(logits);
    DeviceArray<std::uint32_t> device_seen(bits_of(kVocabulary, seen));
    DeviceArray<std::uint32_t> device_allowed(bits_of(kVocabulary, allowed));
    DeviceArray<std::int32_t> device_banned(banned);
    DeviceArray<cuda::LogitBias> device_biases(biases);
    const cuda::LogitChanges all = {device_seen.data(),   1.3f, device_biases.data(), 3,
                                    device_banned.data(), 2,    device_allowed.data()};
    DeviceArray<cuda::LogitChanges> changes(std::vector<cuda::LogitChanges>{{}, all});
    cuda::adjust_logits(stream, {.logits = device_logits.data(),
                                 .stride = kStride,
                                 .changes = changes.data(),
                                 .rows = 2,
                                 .vocabulary = kVocabulary});
    return device_logits.read();
  });
  auto wanted = logits;
  float* const row = wanted.data() + kStride;
  for (const std::int32_t id : seen) row[id] = row[id] > 0.0f ? row[id] / 1.3f : row[id] * 1.3f;
  for (const auto& [id, bias] : biases) row[id] += bias;
  for (const std::int32_t id : banned) row[id] = kNever;
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(kVocabulary); ++id) {
    if (std::find(allowed.begin(), allowed.end(), id) == allowed.end()) row[id] = kNever;
  }
  CHECK(same_bits(got, wanted));
}
