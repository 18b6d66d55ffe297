// SPDX-License-Identifier: Apache-2.0
// Products, KV and attention of the CUDA device against the CPU's scalar device, and what a step
// takes of memory.
#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "cuda/decoding.h"
#include "cuda/device_fixture.h"
#include "device/attention_plan.h"
#include "support/catch.h"
#include "support/weight_types.h"

using namespace incipit;
using namespace incipit::testing;
using device::BlockId;
using device::Device;
using device::KvFormat;
using simt::EmulatedRuntime;
using tensor::DType;

namespace {

constexpr std::size_t kLayers = 2, kKvHeads = 2, kHeads = 6, kDim = 64;

/// A sequence that grows by chunks, and what comes out of layer 1.
class Sequence {
 public:
  Sequence(Device& device, const device::KvPoolView& pool, std::vector<BlockId> blocks,
           std::uint32_t seed)
      : device_(device), pool_(pool), blocks_(std::move(blocks)), seed_(seed) {}

  const std::vector<BlockId>& blocks() const { return blocks_; }
  std::uint32_t length() const { return length_; }

  /// Writes the K and V of the next rows, other ones in each layer.
  void append(std::uint32_t rows) {
    std::vector<device::KvSlot> slots;
    for (std::uint32_t i = 0; i < rows; ++i, ++length_) {
      slots.push_back({blocks_[length_ / device::kBlockTokens],
                       static_cast<std::uint32_t>(length_ % device::kBlockTokens)});
    }
    for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
      const std::uint32_t seed = 10 * (seed_ * 1000 + length_) + layer;
      const OnDevice k(device_, random_matrix(rows, kKvHeads * kDim, seed), kKvHeads * kDim),
          v(device_, random_matrix(rows, kKvHeads * kDim, seed + 5), kKvHeads * kDim);
      device_.append_kv(pool_, layer, k.view, v.view, slots);
    }
  }

 private:
  Device& device_;
  const device::KvPoolView pool_;
  std::vector<BlockId> blocks_;
  std::uint32_t seed_;
  std::uint32_t length_ = 0;
};

/// Two sequences with one front: attention of a chunk of the first, and of both decoding.
std::vector<float> attend(Device& device, KvFormat type, const device::AttentionParams& wanted) {
  const device::KvLayout layout({kLayers, kKvHeads, kDim, type});
  constexpr std::size_t kBlocks = 24;
  const device::Buffer memory = device.allocate(kBlocks * layout.block_bytes());
  const device::KvPoolView pool = {memory.data(), kBlocks, layout};
  // Nothing in the pool but what is written: a slot that nobody has written is NaN.
  device.upload(std::vector<std::byte>(kBlocks * layout.block_bytes(), std::byte{0xff}),
                memory.data());

  std::vector<BlockId> blocks(19);
  std::iota(blocks.rbegin(), blocks.rend(), 1u);
  Sequence first(device, pool, blocks, 1);
  first.append(270);  // more than a segment
  std::vector<BlockId> shared(blocks.begin(), blocks.begin() + 17);
  shared.push_back(22);
  device.copy_block(pool, blocks[16], 0);
  shared[16] = 0;

  device::AttentionParams params = wanted;
  params.layer = 1;
  params.heads = kHeads;
  std::vector<float> out;
  const auto run = [&](const std::vector<device::SequenceRows>& sequences,
                       std::uint32_t window = 0) {
    std::uint32_t rows = 0;
    for (const device::SequenceRows& sequence : sequences) rows += sequence.rows;
    const device::AttentionPlan plan = plan_attention(sequences, device.info().plan, window);
    const OnDevice q(device, random_matrix(rows, kHeads * kDim, rows), kHeads * kDim);
    const OnDevice result(device, std::vector<float>(rows * kHeads * kDim), kHeads * kDim);
    device.attention(pool, params, plan, q.view, result.view);
    const std::vector<float> values = result.read();
    out.insert(out.end(), values.begin(), values.end());
  };
  run({{blocks, 240, 30}});
  run({{blocks, 269, 1}, {shared, 269, 1}, {blocks, 3, 2}});
  if (params.window > 0) run({{blocks, 269, 1}, {shared, 269, 1}, {blocks, 3, 2}}, params.window);
  return out;
}

}  // namespace

TEST_CASE("products and embeddings of every weight type are the CPU's") {
  for (const DType type : test::kWeightTypes) {
    constexpr std::size_t kOutputs = 70, kColumns = 256;
    std::mt19937 random(static_cast<std::uint32_t>(type));
    const auto bytes = random_weight(random, type, kOutputs, kColumns);
    const auto bias = random_matrix(1, kOutputs, 2);
    CAPTURE(tensor::name(type));
    const auto body = [&](Device& device) {
      const auto weight = device.make_weight(type, kOutputs, kColumns, bytes);
      const OnDevice x(device, random_matrix(3, kColumns, 1), kColumns), b(device, bias, kOutputs),
          out(device, std::vector<float>(2 * 3 * kOutputs), kOutputs),
          rows(device, std::vector<float>(2 * kColumns), kColumns);
      const device::Matrix second = {out.view.row(3), 3, kOutputs, kOutputs};
      const device::Product products[] = {{weight.get(), b.values(), out.view.first_rows(3)},
                                          {weight.get(), {}, second}};
      device.matmul(x.view, products);
      const std::int32_t ids[] = {69, 0};
      device.embed(*weight, ids, 3.0f, rows.view);
      std::vector<float> values = out.read();
      const std::vector<float> embedded = rows.read();
      values.insert(values.end(), embedded.begin(), embedded.end());
      return values;
    };
    check_like_cpu(1e-5, body, Activations::kFloat);
    // Activations are rounded, to 8 or 11 bits, and weights that are not kept as they are to 11.
    const double tolerance = type == DType::kF32 ? 1e-5 : type == DType::kBF16 ? 0.1 : 0.01;
    check_like_cpu(tolerance, body);
  }
}

TEST_CASE("attention over what was appended and copied is the CPU's") {
  device::AttentionParams plain, bent;
  plain.scale = bent.scale = 0.125f;
  bent.soft_cap = 5.0f;
  bent.window = 100;
  // Queries and weights are rounded to the pool's 16 bits; int8 is multiplied in BF16.
  check_like_cpu(4e-3, [&](Device& device) { return attend(device, KvFormat::kF16, plain); });
  check_like_cpu(4e-3, [&](Device& device) { return attend(device, KvFormat::kF16, bent); });
  check_like_cpu(3e-2, [&](Device& device) { return attend(device, KvFormat::kBF16, plain); });
  check_like_cpu(3e-2, [&](Device& device) { return attend(device, KvFormat::kInt8, plain); });
}

TEST_CASE("attention in fast mode on compute capability 9.0 is the CPU's") {
  device::AttentionParams params;
  params.scale = 0.125f;
  const auto cpu = cpu::make_cpu_device({CpuPath::kScalar, Activations::kFloat, 1});
  const std::vector<float> wanted = attend(*cpu, KvFormat::kF16, params);
  cuda::DeviceProperties properties = EmulatedRuntime::emulated_device();
  properties.architecture = 90;
  const auto result = [&](GpuMath math) {
    const auto gpu = cuda::make_cuda_device(
        std::make_shared<EmulatedRuntime>(simt::RuntimeOptions(), properties), Activations::kMixed,
        1, math);
    return attend(*gpu, KvFormat::kF16, params);
  };
  const std::vector<float> fast = result(GpuMath::kFast);
  CHECK(worst_difference(fast, wanted) <= 4e-3);
  CHECK(same_bits(fast, result(GpuMath::kFast)));
  CHECK_FALSE(same_bits(fast, result(GpuMath::kExact)));  // so other kernels have run
}

TEST_CASE("a step takes no memory once one of its size has run") {
  const auto runtime = std::make_shared<EmulatedRuntime>();
  const auto device = cuda::make_cuda_device(runtime, Activations::kMixed, 1);
  Decoding decoding(*device);
  decoding.step(256, 8, true);
  const auto warm = runtime->counters();
  for (std::uint32_t position = 257; position < 265; ++position) decoding.step(position, 8, true);
  decoding.step(265, 3, true);
  const auto after = runtime->counters();
  CHECK(after.allocations == warm.allocations);
  CHECK(after.frees == warm.frees);
  CHECK(after.launches > warm.launches);
}

TEST_CASE("memory that runs out in a step is an error, and the next step runs") {
  const auto runtime = std::make_shared<EmulatedRuntime>();
  const auto device = cuda::make_cuda_device(runtime, Activations::kMixed, 1);
  const OnDevice x(*device, random_matrix(3000, 4, 1), 4),
      out(*device, random_matrix(3000, 4, 2), 4);
  std::vector<std::uint32_t> rows(3000);
  std::iota(rows.rbegin(), rows.rend(), 0u);
  for (const std::uint64_t refused : {1u, 2u, 5u}) {
    runtime->refuse_allocation(refused);
    try {
      device->gather_rows(x.view, rows, out.view);
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kOutOfMemory);
    }
    device->gather_rows(x.view, std::span(rows).first(5), out.view.first_rows(5));
  }
  device->gather_rows(x.view, rows, out.view);
  std::vector<float> wanted = x.read(), got = out.read();
  CHECK(got[0] == wanted[4 * 2999]);
  CHECK(got[4 * 2999] == wanted[0]);
}
