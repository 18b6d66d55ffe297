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
    cases: str = ""  # those of its test cases that run, in Catch's words; all
    also: tuple[str, ...] = ()  # sources that hold the kernel, where the test does not


TILE = ("tests/simt/tile_product.h", "tests/simt/tile_product_test.cpp")
NORM = "tests/cuda/rms_norm_test.cpp"
PRODUCT = ("cuda/kernels/product.cuh", "tests/cuda/product_test.cpp")
ATTENTION = "cuda/kernels/attention_tile.cuh"
VECTOR = ("cuda/kernels/attention_vector.cuh", "tests/cuda/attention_vector_test.cpp")
ATTENTION_64 = ("cuda/launch/attention_64.cpp",)
WGMMA = ("cuda/kernels/attention_wgmma.cuh", "tests/cuda/attention_wgmma_test.cpp")
WGMMA_CODE = ("cuda/launch/attention_wgmma.cpp",)
WGMMA_CASE = "*both of them*"
ATTENTION_EDGE = "tests/cuda/attention_edge_test.cpp"
ATTENTION_EXACT = "tests/cuda/attention_exact_test.cpp"

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
    # Products.
    "stage_still_under_way": Mutation(
        PRODUCT[0], "wait_copies<kStages - 2>()", "wait_copies<kStages - 1>()", PRODUCT[1],
        "products of 16-bit*"),
    "last_stages_not_committed": Mutation(
        PRODUCT[0], "    prim::commit_copies();\n",
        "    if (stage * Shape::kSteps < steps) prim::commit_copies();\n", PRODUCT[1],
        "products of 16-bit*"),
    "stage_filled_while_it_is_read": Mutation(
        PRODUCT[0], "      prim::sync_threads();  // the stage is here, and the one before is free\n",
        "", PRODUCT[1], "products of 16-bit*"),
    "second_scale_forgotten": Mutation(
        "cuda/kernels/product_weights.cuh", "Code::kScales == 2 ? half : 0", "0", PRODUCT[1],
        "each quantised weight*"),
    # Attention.
    "values_used_before_they_are_here": Mutation(
        ATTENTION, "      prim::wait_copies<0>();\n      Loader::unpack(stage_, v_);",
        "      Loader::unpack(stage_, v_);", ATTENTION_EDGE, "one empty state*", ATTENTION_64),
    "keys_overwritten_while_they_are_read": Mutation(
        ATTENTION, "      prim::sync_threads();  // V is here, and K is free\n", "",
        ATTENTION_EDGE, "one empty state*", ATTENTION_64),
    "tiles_begin_where_the_window_does": Mutation(
        "cuda/kernels/attention_rows.cuh", "first_visible(lowest_) / kMaxTileKeys * kMaxTileKeys",
        "first_visible(lowest_) / 16 * 16", ATTENTION_EXACT, "*F16 with a window*", ATTENTION_64),
    "a_row_sees_the_token_after_it": Mutation(
        ATTENTION, "end = smaller(position + 1, key_end_)", "end = smaller(position + 2, key_end_)",
        ATTENTION_EDGE, "int8: a damaged token*", ATTENTION_64),
    "scales_of_hidden_keys_heard": Mutation(
        ATTENTION, "weight == 0.0f ? 0.0f : weight", "weight", ATTENTION_EDGE,
        "int8: a damaged token*", ATTENTION_64),
    "sums_of_segments_not_folded": Mutation(
        ATTENTION, "sum = {fold.max, fold(old.sum, state.sum)};", "sum = {fold.max, state.sum};",
        ATTENTION_EXACT, "*: BF16", ATTENTION_64),
    # Attention by warpgroups.
    "queries_not_fenced": Mutation(
        WGMMA[0], "    prim::fence_async_proxy();\n    prim::sync_threads();",
        "    prim::sync_threads();", WGMMA[1], WGMMA_CASE, WGMMA_CODE),
    "rest_of_a_tile_not_fenced": Mutation(
        WGMMA[0], "      prim::fence_async_proxy();\n      prim::sync_warp();",
        "      prim::sync_warp();", WGMMA[1], WGMMA_CASE, WGMMA_CODE),
    "registers_not_fenced": Mutation(
        WGMMA[0], "    prim::begin_products(prim::Site::here(), values, weights);\n"
        "    multiply_values(weights, last",
        "    multiply_values(weights, last", WGMMA[1], WGMMA_CASE, WGMMA_CODE),
    "phase_of_the_wrong_parity": Mutation(
        WGMMA[0], "k_full[stage], tile / kStages % 2", "k_full[stage], tile / kStages % 2 ^ 1u",
        WGMMA[1], WGMMA_CASE, WGMMA_CODE),
    "stage_loaded_before_it_is_free": Mutation(
        WGMMA[0], "      prim::wait_phase(&barriers_->v_free[stage], parity ^ 1u);\n", "",
        WGMMA[1], WGMMA_CASE, WGMMA_CODE),
    "stage_freed_before_its_products_end": Mutation(
        WGMMA[0], "      prim::wait_products<0>(prim::Site::here(), values);\n"
        "      release(&barriers_->v_free[before]);\n",
        "      release(&barriers_->v_free[before]);\n"
        "      prim::wait_products<0>(prim::Site::here(), values);\n",
        WGMMA[1], WGMMA_CASE, WGMMA_CODE),
    "scores_not_waited_for": Mutation(
        WGMMA[0], "wait_products<1>(prim::Site::here(), s)",
        "wait_products<2>(prim::Site::here(), s)", WGMMA[1], WGMMA_CASE, WGMMA_CODE),
    "descriptor_of_the_wrong_keys": Mutation(
        WGMMA[0], "v + step * 16 * kRowBytes", "v + step * 8 * kRowBytes", WGMMA[1], WGMMA_CASE,
        WGMMA_CODE),
    "descriptor_of_the_wrong_half": Mutation(
        WGMMA[0], "k + half * kHalfBytes + byte", "k + half * kQueryHalfBytes / 2 + byte", WGMMA[1],
        WGMMA_CASE, WGMMA_CODE),
    "bytes_of_half_a_block_expected": Mutation(
        WGMMA[0], "whole * kBlockBytes", "whole * kBlockBytes / 2", WGMMA[1], WGMMA_CASE,
        WGMMA_CODE),
    "keys_not_written_yet_loaded": Mutation(
        WGMMA[0], "(key_end_ - first_key) / kTokens", "(key_end_ - first_key + 15) / kTokens",
        WGMMA[1], WGMMA_CASE, WGMMA_CODE),
    # Attention of few rows.
    "warps_meet_without_a_barrier": Mutation(
        VECTOR[0], "    share_state();\n    prim::sync_threads();\n", "    share_state();\n",
        VECTOR[1], "fast attention maps*", ATTENTION_64),
    "warps_added_without_their_maximum": Mutation(
        VECTOR[0], "values[c] = fold(values[c], sum[c]);", "values[c] += sum[c];", VECTOR[1],
        "fast attention maps*", ATTENTION_64),
    "keys_of_a_step_with_maxima_of_their_own": Mutation(
        VECTOR[0], "max = prim::max_f32(max, prim::shuffle_xor(max, bits));", "", VECTOR[1],
        "fast attention maps*", ATTENTION_64),
    "numbers_of_blocks_not_fetched_anew": Mutation(
        VECTOR[0], "step % (kSteps * prim::kWarpLanes) == 0", "step == 0", VECTOR[1],
        "fast attention over more*", ATTENTION_64),
    "halves_of_bytes_not_swapped": Mutation(
        "cuda/kernels/vector_columns.cuh", "prim::shuffle_xor(given, 1)", "given", VECTOR[1],
        "fast attention maps*", ATTENTION_64),
    "few_rows_hear_scales_of_hidden_keys": Mutation(
        VECTOR[0], "weight == 0.0f ? 0.0f : weight * lifted", "weight * lifted", VECTOR[1],
        "*a damaged token*", ATTENTION_64),
    # Appending to KV.
    "values_that_are_not_finite_kept": Mutation(
        "cuda/kernels/append_kv.cuh", "if constexpr (sizeof(Stored) == 2)",
        "if constexpr (sizeof(Stored) == 3)", ATTENTION_EDGE, "16 bits: a token*"),
    "heads_turned_while_they_are_read": Mutation(
        "cuda/kernels/append_kv.cuh", "    sync_warp();  // all have read what others now overwrite\n",
        "", "tests/cuda/append_kv_test.cpp", "*bits of the scalar*"),
    "values_turned_with_the_keys": Mutation(
        "cuda/kernels/append_kv.cuh", "if (!is_v) values.turn(", "values.turn(",
        "tests/cuda/append_kv_test.cpp", "*bits of the scalar*"),
}
