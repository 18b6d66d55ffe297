// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_KERNELS_GATHER_ROWS_CUH_
#define INCIPIT_CUDA_KERNELS_GATHER_ROWS_CUH_

#include "cuda/prim/launch.cuh"
#include "cuda/prim/memory.cuh"

namespace incipit::cuda {

/// T: elements of the table, Out: of the result; float, F16 or BF16. A row's index is its id.
template <class T, class Out>
struct GatherParams {
  const T* table = nullptr;  // [any, columns]
  std::int64_t table_stride = 0;
  const std::int32_t* ids = nullptr;  // [rows], not negative
  float scale = 1.0f;                 // of what the table has (Gemma's embeddings)
  // Learned positions, or null: row position_ids[i] + position_offset is added (OPT has an offset).
  const T* positions = nullptr;  // [any, columns]
  std::int64_t positions_stride = 0;
  const std::int32_t* position_ids = nullptr;  // [rows]
  std::int32_t position_offset = 0;
  Out* out = nullptr;  // [rows, columns]
  std::int64_t out_stride = 0;
  unsigned rows = 0;
  unsigned columns = 0;
};

/// out[i] = table[ids[i]] * scale (+ positions[...]): embeddings, and the rows whose logits are
/// wanted.
template <class T, class Out, unsigned kThreads>
INCIPIT_KERNEL(kThreads)
gather_rows_kernel(GatherParams<T, Out> params) {
  using namespace prim;
  constexpr unsigned kWidth = kPackOf<T> < kPackOf<Out> ? kPackOf<T> : kPackOf<Out>;
  const std::int64_t row = block_x();
  const T* const from = params.table + load(params.ids + row) * params.table_stride;
  const T* position = nullptr;
  if (params.positions != nullptr) {
    const std::int64_t id = load(params.position_ids + row) + params.position_offset;
    position = params.positions + id * params.positions_stride;
  }
  Out* const out = params.out + row * params.out_stride;
  const bool packed = is_packed(from) && (position == nullptr || is_packed(position));
  const bool out_packed = is_packed(out);
  for_each_group<kWidth, kThreads>(params.columns, [&](unsigned first, unsigned count) {
    const auto value = load_group<kWidth>(from + first, count, packed);
    Pack<T, kWidth> learned = {};
    if (position != nullptr) learned = load_group<kWidth>(position + first, count, packed);
    Pack<Out, kWidth> sum;
    for (unsigned i = 0; i < kWidth; ++i) {
      const float scaled = to_float(value[i]) * params.scale;
      sum[i] = from_float<Out>(position == nullptr ? scaled : scaled + to_float(learned[i]));
    }
    store_group<kWidth>(out + first, sum, count, out_packed);
  });
}

template <class T, class Out>
void gather_rows(Stream stream, const GatherParams<T, Out>& params) {
  launch(stream, {.blocks_x = params.rows, .threads = 128}, &gather_rows_kernel<T, Out, 128>,
         params);
}

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_KERNELS_GATHER_ROWS_CUH_
