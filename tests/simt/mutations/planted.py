# SPDX-License-Identifier: Apache-2.0
"""The bugs that are planted: what someone writing kernels gets wrong.

A mutation replaces `old`, which must occur in `file` exactly once, by `new`; then `test` must fail.
Of those that spoil a copy or a barrier, several hide on a GPU most of the time.
"""

from typing import NamedTuple


class Mutation(NamedTuple):
    file: str  # from the root of the project
    old: str
    new: str
    test: str  # its source


TILE = ("tests/simt/tile_product.h", "tests/simt/tile_product_test.cpp")
NORM = "tests/cuda/rms_norm_test.cpp"

MUTATIONS = {
    # Copies that arrive late.
    "wait_for_too_few": Mutation(
        TILE[0], "wait_copies<1>();", "wait_copies<2>();", TILE[1]),
    "no_wait_for_the_last": Mutation(
        TILE[0], "      wait_copies<0>();\n", "", TILE[1]),
    "no_commit": Mutation(
        TILE[0], "  commit_copies();\n", "", TILE[1]),
    "no_barrier_after_the_wait": Mutation(
        TILE[0], "    sync_threads();\n    multiply_stage", "    multiply_stage", TILE[1]),
    "no_barrier_before_the_next_load": Mutation(
        TILE[0], "    sync_threads();  // the next load goes to what was just read\n", "", TILE[1]),
    "stages_not_alternated": Mutation(
        TILE[0], "stages + (step + 1) % 2 * kStageValues", "stages", TILE[1]),
    # Fragments.
    "no_swizzle": Mutation(
        TILE[0], "(chunk ^ (row % 8))", "chunk", TILE[1]),
    "halves_of_b_swapped": Mutation(
        TILE[0], "step * 2 + matrix % 2", "step * 2 + 1 - matrix % 2", TILE[1]),
    "wrong_row_of_a": Mutation(
        TILE[0], "warp() * 16 + lane() % 16,", "warp() * 16 + lane() % 8,", TILE[1]),
    "mma_in_a_branch": Mutation(
        TILE[0], "    multiply<F16>(sums[1], a, b[2], b[3]);",
        "    if (lane() / 4 != 7) multiply<F16>(sums[1], a, b[2], b[3]);", TILE[1]),
    # Edges. (What is read past an end and not used only the sanitizers see: faults.cpp.)
    "columns_past_the_end_stored": Mutation(
        TILE[0], "row < p.rows && column < p.columns", "row < p.rows", TILE[1]),
    "tail_of_a_group_stored": Mutation(
        "cuda/prim/memory.cuh", "if (i < count) store(to + i, group[i], site);",
        "store(to + i, group[i], site);", NORM),
    "alignment_ignored": Mutation(
        "cuda/prim/memory.cuh", "return reinterpret_cast<std::uintptr_t>(data) % 16 == 0;",
        "return data != nullptr;", NORM),
    "variance_counts_the_tail": Mutation(
        "cuda/kernels/layer_norm.cuh", "if (i < count) square", "square",
        "tests/cuda/layer_norm_test.cpp"),
    "copy_past_the_block": Mutation(
        "cuda/kernels/copy_blocks.cuh", "if (at < groups) store", "store",
        "tests/cuda/copy_blocks_test.cpp"),
    "wide_rows_cut_off": Mutation(
        "cuda/kernels/elementwise.cuh", "(block_y() * kThreads + thread_x()) * kWidth",
        "thread_x() * kWidth", "tests/cuda/elementwise_test.cpp"),
    # Reductions.
    "no_barrier_in_the_reduction": Mutation(
        "cuda/prim/block_reduce.cuh", "  sync_threads(site);\n", "", NORM),
    "reduction_stops_early": Mutation(
        "cuda/prim/warp.cuh", "bits = kLanes / 2; bits > 0;", "bits = kLanes / 2; bits > 1;", NORM),
    "scratch_used_twice": Mutation(
        "cuda/kernels/layer_norm.cuh", "sum_block<kThreads>(square, squares)",
        "sum_block<kThreads>(square, sums)", "tests/cuda/layer_norm_test.cpp"),
    "sum_depends_on_the_warp": Mutation(
        "cuda/prim/block_reduce.cuh", "value = shared_load(&scratch[0], site);",
        "value = shared_load(&scratch[warp() % 2], site);", NORM),
    # Numbers.
    "offsets_of_32_bits": Mutation(
        "cuda/kernels/copy_blocks.cuh", "std::int64_t{id} * params.block_bytes",
        "id * static_cast<unsigned>(params.block_bytes)", "tests/cuda/copy_blocks_test.cpp"),
    "rows_of_32_bits": Mutation(
        "cuda/kernels/gather_rows.cuh", "load(params.ids + row) * params.table_stride",
        "static_cast<unsigned>(load(params.ids + row) * params.table_stride)",
        "tests/cuda/gather_rows_test.cpp"),
    "residual_not_rounded": Mutation(
        "cuda/kernels/row_norm.cuh", "visit(h, count);", "visit(b, count);", NORM),
    "sum_not_kept": Mutation(
        "cuda/kernels/row_norm.cuh", "store_group<kWidth>(sum + first, h, count, sum_packed);", "",
        NORM),
    "nan_lost_in_the_maximum": Mutation(
        "cuda/kernels/quantize_kv.cuh", "bits >= 0x7f800000u", "bits == 0x7f800000u",
        "tests/cuda/quantize_kv_test.cpp"),
    "zeros_divide_by_zero": Mutation(
        "cuda/kernels/quantize_kv.cuh", "if (top < 0x1p-100f) return {0.0f, 0.0f};", "",
        "tests/cuda/quantize_kv_test.cpp"),
    "partial_heads_turn_whole": Mutation(
        "cuda/kernels/rope.cuh", "RopePairs::kHalves ? params.half : 1)",
        "RopePairs::kHalves ? params.head_dim / 2 : 1)", "tests/cuda/rope_test.cpp"),
    # Sampling.
    "too_many_ties_kept": Mutation(
        "cuda/kernels/sample.cuh", "before < limit.equals ? limit.equals - before : 0",
        "limit.equals", "tests/cuda/sample_test.cpp"),
    "zeros_of_different_sign": Mutation(
        "cuda/kernels/likeliest.cuh", "prim::bit_cast<std::uint32_t>(score + 0.0f)",
        "prim::bit_cast<std::uint32_t>(score)", "tests/cuda/sample_test.cpp"),
    "histogram_not_cleared_in_time": Mutation(
        "cuda/kernels/likeliest.cuh", "    histogram.clear<kThreads>();\n    sync_threads();\n",
        "    histogram.clear<kThreads>();\n", "tests/cuda/sample_test.cpp"),
}
