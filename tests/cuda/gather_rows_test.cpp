// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/gather_rows.cuh"

#include "cuda/gapped.h"
#include "cuda/sparse_memory.h"

using namespace incipit;
using namespace incipit::testing;

namespace {

template <class T, class Out>
void check_gather(const RowShape& shape, bool with_positions) {
  const Gapped<T> table(9, shape.columns, shape.gap, 5), positions(7, shape.columns, 1, 6);
  const std::vector<std::int32_t> ids = {8, 0, 3, 3}, places = {0, 4, 2, 1};
  constexpr std::int32_t kOffset = 2;  // as OPT has it
  const float scale = with_positions ? 1.0f : 2.0f;
  const Gapped<Out> result(4, shape.columns, shape.gap, 7);
  const auto got = run([&](cuda::Stream stream) {
    DeviceArray<T> device_table(table.values), device_positions(positions.values);
    DeviceArray<std::int32_t> device_ids(ids), device_places(places);
    DeviceArray<Out> out(result.values.size(), rounded<Out>(Gapped<Out>::kGarbage));
    cuda::GatherParams<T, Out> params;
    params.table = device_table.data();
    params.table_stride = table.stride;
    params.ids = device_ids.data();
    params.scale = scale;
    if (with_positions) params.positions = device_positions.data();
    params.positions_stride = positions.stride;
    params.position_ids = device_places.data();
    params.position_offset = kOffset;
    params.out = out.data();
    params.out_stride = result.stride;
    params.rows = 4;
    params.columns = shape.columns;
    cuda::gather_rows(stream, params);
    return out.read();
  });
  const auto wanted = result.with([&](std::size_t row, std::size_t column) {
    const auto id = static_cast<std::size_t>(ids[row]);
    const auto place = static_cast<std::size_t>(places[row] + kOffset);
    const double learned = with_positions ? positions.at(place, column) : 0.0;
    return value_of(
        rounded<Out>(static_cast<float>(table.at(id, column) * value_of(scale) + learned)));
  });
  check_near(got, wanted, 0.0, 0.0);
}

}  // namespace

TEST_CASE("gather_rows copies rows, scales and converts them, and adds learned positions") {
  for (const RowShape& shape : row_shapes()) {
    CAPTURE(shape.columns, shape.gap);
    for (const bool with_positions : {false, true}) {
      check_gather<float, float>(shape, with_positions);
      check_gather<cuda::BF16, float>(shape, with_positions);
      check_gather<cuda::F16, cuda::BF16>(shape, with_positions);
      check_gather<float, cuda::F16>(shape, with_positions);
    }
  }
}

#if INCIPIT_CUDA_EMULATED
TEST_CASE("gather_rows finds rows beyond 2^32 elements") {
  constexpr std::int64_t kStride = 1 << 16;
  const std::vector<std::int32_t> ids = {70000, 1};
  const SparseMemory memory(static_cast<std::size_t>(kStride) * 70001 * 2);
  REQUIRE(memory.is_there());
  auto* const table = memory.as<cuda::BF16>();
  for (int i = 0; i < 8; ++i) table[70000 * kStride + i] = rounded<cuda::BF16>(5.0f);
  const auto got = run([&](cuda::Stream stream) {
    DeviceArray<std::int32_t> device_ids(ids);
    DeviceArray<float> out(16, -1.0f);
    cuda::gather_rows<cuda::BF16, float>(stream, {.table = table,
                                                  .table_stride = kStride,
                                                  .ids = device_ids.data(),
                                                  .out = out.data(),
                                                  .out_stride = 8,
                                                  .rows = 2,
                                                  .columns = 8});
    return out.read();
  });
  for (std::size_t i = 0; i < 16; ++i) CHECK(got[i] == (i < 8 ? 5.0f : 0.0f));
}

TEST_CASE("gather_rows reads each value once, in whole sectors") {
  const std::vector<std::int32_t> ids = {1, 0};
  const auto counters = count([&](cuda::Stream stream) {
    DeviceArray<cuda::BF16> table(2 * 1024, {0}), out(2 * 1024, {0});
    DeviceArray<std::int32_t> device_ids(ids);
    cuda::gather_rows<cuda::BF16, cuda::BF16>(stream, {.table = table.data(),
                                                       .table_stride = 1024,
                                                       .ids = device_ids.data(),
                                                       .out = out.data(),
                                                       .out_stride = 1024,
                                                       .rows = 2,
                                                       .columns = 1024});
  });
  CHECK(counters.global_store_bytes == 2 * 1024 * 2);
  CHECK(counters.global_store_sectors * 32 == counters.global_store_bytes);
}
#endif
