// SPDX-License-Identifier: Apache-2.0
// What is the CPU device's own; tests/device/device_ops_test.cpp has what every device computes.
#include "cpu/cpu_device.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/machine.h"
#include "cpu/attention.h"
#include "cpu/kv_order.h"
#include "incipit/error.h"
#include "support/catch.h"
#include "support/random_matrix.h"

using namespace incipit;
using namespace incipit::testing;
using device::KvFormat;
using tensor::DType;

namespace {

std::vector<CpuPath> cpu_paths() {
  std::vector<CpuPath> paths = {CpuPath::kScalar};
  if (base::cpu_features().avx2) paths.push_back(CpuPath::kAvx2);
  if (base::cpu_features().avx512) paths.push_back(CpuPath::kAvx512);
  return paths;
}

template <class Call>
ErrorCode code_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  FAIL("nothing was thrown");
  return ErrorCode::kInternal;
}

}  // namespace

TEST_CASE("the automatic path is the fastest that the machine has") {
  const auto automatic = cpu::make_cpu_device({.threads = 1});
  const auto fastest = cpu::make_cpu_device({.path = cpu_paths().back(), .threads = 1});
  CHECK(automatic->info().numerics == fastest->info().numerics);
}

TEST_CASE("a path that the machine lacks is refused") {
  const base::CpuFeatures features = base::cpu_features();
  const auto make = [](CpuPath path) { cpu::make_cpu_device({.path = path, .threads = 1}); };
  if (!features.avx2) {
    CHECK(code_of([&] { make(CpuPath::kAvx2); }) == ErrorCode::kInvalidArgument);
  }
  if (!features.avx512) {
    CHECK(code_of([&] { make(CpuPath::kAvx512); }) == ErrorCode::kInvalidArgument);
  }
  CHECK(code_of([&] { make(static_cast<CpuPath>(99)); }) == ErrorCode::kInvalidArgument);
}

TEST_CASE("the numerics name tells paths and activations apart, not threads") {
  std::vector<std::string> names;
  for (const CpuPath path : cpu_paths()) {
    for (const Activations activations :
         {Activations::kMixed, Activations::kInt8, Activations::kFloat}) {
      const auto one = cpu::make_cpu_device({path, activations, 1});
      const auto three = cpu::make_cpu_device({path, activations, 3});
      CHECK(one->info().numerics == three->info().numerics);
      CHECK(three->info().threads == 3);
      names.push_back(one->info().numerics);
    }
  }
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
}

TEST_CASE("no number of threads means the CPUs of this process") {
  CHECK(cpu::make_cpu_device()->info().threads == base::available_cpus());
}

TEST_CASE("KV is BF16 where the CPU has instructions for it, else F16") {
  for (const CpuPath path : cpu_paths()) {
    const auto device = cpu::make_cpu_device({.path = path, .threads = 1});
    const bool dots = path == CpuPath::kAvx512 && base::cpu_features().avx512_bf16;
    CHECK(device->info().default_kv_type == (dots ? KvFormat::kBF16 : KvFormat::kF16));
    CHECK(device->info().plan.segment_tokens == cpu::kSegmentTokens);
  }
}

TEST_CASE("append_kv rounds to the pool's type and writes its slots only") {
  std::mt19937 random(1);
  const std::size_t layers = 2, kv_heads = 3, dim = 32, width = kv_heads * dim;
  const std::vector<device::KvSlot> slots = {{2, 0}, {2, 15}, {0, 7}, {3, 8}};
  for (const CpuPath path : cpu_paths()) {
    const auto device = cpu::make_cpu_device({.path = path, .threads = 2});
    for (const KvFormat type : {KvFormat::kF32, KvFormat::kF16, KvFormat::kBF16}) {
      const device::KvLayout layout({layers, kv_heads, dim, type});
      const device::Buffer memory = device->allocate(4 * layout.block_bytes());
      std::memset(memory.data(), 0x5a, memory.bytes());
      const device::KvPoolView pool = {memory.data(), 4, layout};
      const auto k = random_floats(random, slots.size() * width);
      const auto v = random_floats(random, slots.size() * width);
      device->append_kv(pool, 1, view(k, width), view(v, width), slots);

      std::vector<std::byte> expected(memory.bytes(), std::byte{0x5a});
      const bool wide = type == KvFormat::kF32;
      const auto put = [&](std::size_t head_offset, std::size_t index, float value) {
        const std::uint16_t bits =
            type == KvFormat::kF16 ? tensor::f32_to_f16(value) : tensor::f32_to_bf16(value);
        std::byte* const head = expected.data() + head_offset;
        if (wide) std::memcpy(head + 4 * index, &value, 4);
        if (!wide) std::memcpy(head + 2 * index, &bits, 2);
      };
      for (std::size_t i = 0; i < slots.size() * width; ++i) {
        const device::KvSlot slot = slots[i / width];
        const std::size_t head = i % width / dim, d = i % dim, at = slot.offset;
        const std::size_t block = slot.block * layout.block_bytes();
        put(block + layout.k_offset(1, head),
            wide ? cpu::k_index_f32(at, d) : cpu::k_index_pairs(at, d), k[i]);
        put(block + layout.v_offset(1, head),
            wide ? cpu::v_index_f32(at, d, dim) : cpu::v_index_pairs(at, d, dim), v[i]);
      }
      CAPTURE(device->info().numerics, device::name(type));
      CHECK(std::memcmp(expected.data(), memory.data(), memory.bytes()) == 0);

      device->copy_block(pool, 2, 1);
      CHECK(std::memcmp(pool.block(1), pool.block(2), layout.block_bytes()) == 0);
      CHECK(std::memcmp(pool.block(0), expected.data(), layout.block_bytes()) == 0);
    }
  }
}

TEST_CASE("the orders of K and V give each value a place of its own") {
  for (const std::size_t dim : {2u, 64u, 80u}) {
    std::vector<int> uses[4];
    for (auto& places : uses) places.resize(16 * dim);
    for (std::size_t position = 0; position < 16; ++position) {
      for (std::size_t d = 0; d < dim; ++d) {
        ++uses[0].at(cpu::k_index_pairs(position, d));
        ++uses[1].at(cpu::v_index_pairs(position, d, dim));
        ++uses[2].at(cpu::k_index_f32(position, d));
        ++uses[3].at(cpu::v_index_f32(position, d, dim));
      }
    }
    for (const auto& places : uses) CHECK(places == std::vector<int>(16 * dim, 1));
  }
}

TEST_CASE("views that do not fit together are a bug that is reported") {
  std::mt19937 random(2);
  const auto device = cpu::make_cpu_device({.threads = 1});
  const auto bytes = random_weight(random, DType::kQ8_0, 8, 32);
  const auto weight = device->make_weight(DType::kQ8_0, 8, 32, bytes);
  std::vector<float> x(64), y(16);
  const auto product = [&](std::size_t columns, std::size_t outputs) {
    const device::Product one = {weight.get(), {}, {y.data(), 1, outputs, outputs}};
    device->matmul({x.data(), 1, columns, columns}, std::span(&one, 1));
  };
  CHECK_NOTHROW(product(32, 8));
  CHECK(code_of([&] { product(64, 8); }) == ErrorCode::kInternal);
  CHECK(code_of([&] { product(32, 7); }) == ErrorCode::kInternal);
  const auto embed = [&](std::int32_t id) {
    device->embed(*weight, std::span(&id, 1), 1.0f, {x.data(), 1, 32, 32});
  };
  CHECK_NOTHROW(embed(7));
  CHECK(code_of([&] { embed(8); }) == ErrorCode::kInternal);
  CHECK(code_of([&] { embed(-1); }) == ErrorCode::kInternal);
  const std::vector<float> norm(32);
  const tensor::Matrix row = {x.data(), 1, 32, 32}, short_row = {x.data(), 1, 31, 32};
  CHECK(code_of([&] { device->layer_norm(short_row, norm, norm, 1e-5f, short_row); }) ==
        ErrorCode::kInternal);
  CHECK(code_of([&] { device->layer_norm(row, norm, {}, 1e-5f, row); }) == ErrorCode::kInternal);
  CHECK(code_of([&] { device->activate(device::Activation::kRelu, row, short_row, row); }) ==
        ErrorCode::kInternal);
  CHECK(code_of([&] { device->soft_cap(row, 0.0f); }) == ErrorCode::kInternal);
  CHECK(code_of([&] { device->make_weight(DType::kQ8_0, 9, 32, bytes); }) == ErrorCode::kInternal);
}

TEST_CASE("quantised weights that their blocks do not fit are refused") {
  const auto device = cpu::make_cpu_device({.threads = 1});
  const std::vector<std::byte> bytes(34 * 4);
  CHECK(code_of([&] { device->make_weight(DType::kQ8_0, 4, 33, bytes); }) ==
        ErrorCode::kModelUnreadable);
}

TEST_CASE("no rows are no work") {
  const auto device = cpu::make_cpu_device({.threads = 2});
  std::mt19937 random(3);
  const auto weight =
      device->make_weight(DType::kQ4_1, 8, 32, random_weight(random, DType::kQ4_1, 8, 32));
  const device::Product product = {weight.get(), {}, {nullptr, 0, 8, 8}};
  const tensor::Matrix none = {nullptr, 0, 32, 32};
  device->matmul(none, std::span(&product, 1));
  device->embed(*weight, {}, 1.0f, none);
  const std::vector<float> norm(32);
  device->rms_norm(none, norm, 1e-5f, none);
  device->layer_norm(none, norm, norm, 1e-5f, none);
  device->add(none, none);
  device->activate(device::Activation::kSilu, none, none, none);
  device->soft_cap(none, 1.0f);
  device->gather_rows(none, {}, none);
}
