// SPDX-License-Identifier: Apache-2.0
#include "cpu/attention.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/check.h"
#include "base/target.h"

namespace incipit::cpu {
namespace {

using device::AttentionItem;
using device::AttentionPlan;
using device::KvFormat;
using device::KvLayout;
using QueryRow = AttentionScratch::QueryRow;

constexpr std::uint32_t divide_up(std::uint32_t a, std::uint32_t b) noexcept {
  return (a + b - 1) / b;
}

/// Where the states of one row of `states` lie.
AttentionStates row_of(const AttentionStates& states, std::size_t row,
                       std::size_t head_dim) noexcept {
  return {states.max + row, states.sum + row, states.acc + row * head_dim};
}

/// One call of attention(): what all of its units share.
struct Call {
  const AttentionKernel& kernel;
  const AttentionTask& task;
  AttentionScratch& scratch;
  const KvLayout& layout = task.pool.layout;
  const AttentionPlan& plan = *task.plan;
  std::size_t head_dim = layout.shape().head_dim;
  std::uint32_t kv_heads = static_cast<std::uint32_t>(layout.shape().kv_heads);
  std::uint32_t group = static_cast<std::uint32_t>(task.params.heads) / kv_heads;
  ScoreParams score = {task.params.scale, task.params.soft_cap, !task.params.alibi_slopes.empty()};
};

/// The work of one unit. The query rows of an item, the heads of one batch row next to each other,
/// are taken in passes; a pass walks the segments, and its rows meet each in tiles.
class UnitRun {
 public:
  /// `then` is what the thread likely computes next, or null.
  UnitRun(const Call& call, const AttentionUnit& unit, const AttentionUnit* then,
          AttentionScratch::Worker& worker)
      : call_(call), unit_(unit), then_(then), worker_(worker), query_rows_(worker.query_rows) {}

  void run() {
    const std::uint32_t count = item().row_count * call_.group;
    const std::uint32_t passes = divide_up(count, AttentionScratch::kPassRows);
    for (std::uint32_t pass = 0; pass < passes; ++pass) {
      const std::uint32_t first = count * pass / passes;
      const std::uint32_t rows = count * (pass + 1) / passes - first;
      first_key_ = ~std::uint32_t{0};
      for (std::uint32_t i = 0; i < rows; ++i) {
        query_rows_[i] = query_row(first + i);
        first_key_ = std::min(first_key_, query_rows_[i].key_begin);
      }
      std::fill_n(worker_.sum.data(), rows, 0.0f);
      run_rows(0, rows);
      for (std::uint32_t i = 0; folds() && i < rows; ++i) finish_row(query_rows_[i], i);
    }
    run_followers();
    for (std::uint32_t i = 0; i < item().row_count; ++i) release(batch_row(i));
  }

 private:
  const AttentionOrder& order() const noexcept { return call_.scratch.order(); }
  const AttentionItem& item() const noexcept { return call_.plan.items[unit_.item]; }
  std::uint32_t batch_row(std::uint32_t i) const noexcept {
    return call_.plan.rows[item().first_row + i];
  }
  bool is_whole(std::uint32_t row) const noexcept {
    return call_.plan.split_index[row] == AttentionPlan::kWhole;
  }
  /// States are folded here where all segments of the rows so far lie in this unit.
  bool folds() const noexcept { return item().first || order().follows(unit_.item); }

  /// Query row `index` of the item.
  QueryRow query_row(std::uint32_t index) const noexcept {
    QueryRow row;
    row.batch_row = batch_row(index / call_.group);
    row.head = unit_.kv_head * call_.group + index % call_.group;
    row.key_end = call_.plan.positions[row.batch_row] + 1;
    const std::uint32_t window = call_.task.params.window;
    row.key_begin = window > 0 && window < row.key_end ? row.key_end - window : 0;
    return row;
  }
  std::uint32_t tile_begin(std::uint32_t tile) const noexcept {
    return first_row_ + rows_ * tile / tiles_;
  }

  AttentionStates folded() const noexcept {
    return {worker_.max.data(), worker_.sum.data(), worker_.acc.data()->values};
  }
  AttentionStates fresh() const noexcept {
    return {worker_.segment_max, worker_.segment_sum, worker_.segment_acc.data()->values};
  }
  std::byte* queries(std::uint32_t row) const noexcept {
    return reinterpret_cast<std::byte*>(worker_.queries.data()->values + row * call_.head_dim);
  }

  /// The unit's further items, whose rows are some of the pass's.
  void run_followers() {
    const std::span<const std::uint32_t> leader =
        std::span(call_.plan.rows).subspan(item().first_row, item().row_count);
    const std::uint32_t leading = unit_.item;
    for (std::uint32_t i = order().next(leading); i != AttentionOrder::kNone; i = order().next(i)) {
      unit_.item = i;
      const auto place = std::find(leader.begin(), leader.end(), batch_row(0)) - leader.begin();
      const std::uint32_t begin = static_cast<std::uint32_t>(place) * call_.group;
      const std::uint32_t end = begin + item().row_count * call_.group;
      run_rows(begin, end - begin);
      for (std::uint32_t row = begin; row < end; ++row) {
        write(query_rows_[row], row_of(folded(), row, call_.head_dim));
      }
    }
    unit_.item = leading;
  }

  /// The item's segments for rows [first, first + count) of the pass.
  void run_rows(std::uint32_t first, std::uint32_t count) {
    first_row_ = first;
    rows_ = count;
    tiles_ = divide_up(count, call_.kernel.tile_rows);
    for (std::uint32_t tile = 0; tile < tiles_; ++tile) pack_tile(tile);
    point_to(unit_, item().segment_begin, next_k_, next_v_);
    for (std::uint32_t s = item().segment_begin; s < item().segment_end; ++s) {
      k_ = next_k_;
      v_ = next_v_;
      point_to_next(s + 1);
      const bool wide = widen_if_worth(s);
      for (std::uint32_t tile = 0; tile < tiles_; ++tile) run_tile(tile, s, wide);
    }
  }

  void pack_tile(std::uint32_t tile) {
    const std::uint32_t begin = tile_begin(tile), count = tile_begin(tile + 1) - begin;
    std::array<const float*, kMaxTileRows> rows;
    for (std::uint32_t i = 0; i < count; ++i) {
      const QueryRow& row = query_rows_[begin + i];
      rows[i] = call_.task.q.row(row.batch_row) + row.head * call_.head_dim;
    }
    call_.kernel.pack_queries(rows.data(), count, call_.head_dim, call_.score, queries(begin));
  }

  void point_to(const AttentionUnit& unit, std::uint32_t segment, SegmentPointers& k,
                SegmentPointers& v) const {
    const AttentionItem& item = call_.plan.items[unit.item];
    const std::uint32_t first = (segment - item.segment_begin) * kSegmentBlocks;
    for (std::uint32_t i = 0; i < kSegmentBlocks; ++i) {
      const std::uint32_t index = std::min(first + i, item.block_count - 1);
      const std::byte* const block =
          call_.task.pool.block(call_.plan.blocks[item.first_block + index]);
      k[i] = block + call_.layout.k_offset(call_.task.params.layer, unit.kv_head);
      v[i] = block + call_.layout.v_offset(call_.task.params.layer, unit.kv_head);
    }
  }

  /// To the item's segment or, behind its last, to what likely comes then. Where nothing does, to
  /// what is at hand.
  void point_to_next(std::uint32_t segment) {
    if (segment < item().segment_end) return point_to(unit_, segment, next_k_, next_v_);
    AttentionUnit next = unit_;
    next.item = order().next(unit_.item);
    if (next.item == AttentionOrder::kNone) {
      if (then_ == nullptr) return;
      next = *then_;
    }
    point_to(next, call_.plan.items[next.item].segment_begin, next_k_, next_v_);
  }

  /// What the tile asks of memory. A lone tile asks for V while it reads K, and for the next K
  /// while it reads V. The first few of several share the next segment among them, block by block
  /// in turns, so that memory is not asked for more than it gives; only the unit's first segment
  /// cannot come any sooner.
  void choose_fetches(AttentionTile& tile, std::uint32_t tile_index, std::uint32_t segment) {
    const bool cold = segment == item().segment_begin;
    if (tiles_ == 1 || (cold && tile_index == 0)) {
      tile.fetch_with_k = &v_;
      tile.fetch_with_v = &next_k_;
      return;
    }
    constexpr std::uint32_t kEnough = 4;  // tiles, so that none asks for more than it can bear
    const std::uint32_t sharing = std::min(cold ? tiles_ - 1 : tiles_, kEnough);
    const std::uint32_t first = cold ? tile_index - 1 : tile_index;
    if (first >= sharing) return;
    fetch_k_ = k_;
    fetch_v_ = v_;
    for (std::uint32_t i = first; i < kSegmentBlocks; i += sharing) {
      fetch_k_[i] = next_k_[i];
      fetch_v_[i] = next_v_[i];
    }
    tile.fetch_with_k = &fetch_k_;
    tile.fetch_with_v = &fetch_v_;
  }

  /// True: the segment was widened, and k_ and v_ point to the copies.
  bool widen_if_worth(std::uint32_t segment) {
    const Widening* const widening = call_.kernel.widening;
    const bool seen = (segment + 1) * kSegmentTokens > first_key_;
    if (widening == nullptr || tiles_ < widening->from_tiles || !seen) return false;
    const std::size_t block_bytes = widening->block_bytes(call_.head_dim);
    auto* const k = reinterpret_cast<std::byte*>(worker_.wide.data());
    std::byte* const v = k + kSegmentBlocks * block_bytes;
    widening->widen({&k_, &v_, &next_k_, &next_v_, call_.head_dim, k, v});
    for (std::uint32_t i = 0; i < kSegmentBlocks; ++i) {
      k_[i] = k + i * block_bytes;
      v_[i] = v + i * block_bytes;
    }
    return true;
  }

  void run_tile(std::uint32_t tile_index, std::uint32_t segment, bool wide) {
    const std::uint32_t begin = tile_begin(tile_index);
    AttentionTile tile;
    tile.rows = tile_begin(tile_index + 1) - begin;
    tile.head_dim = call_.head_dim;
    tile.q = queries(begin);
    tile.score = call_.score;
    tile.k = &k_;
    tile.v = &v_;
    tile.fetch_with_k = &k_;
    tile.fetch_with_v = &v_;
    if (!wide) choose_fetches(tile, tile_index, segment);
    const bool any = place_rows(tile, begin, segment);
    if (any) {
      const auto compute = wide ? call_.kernel.widening->segment : call_.kernel.segment;
      compute(tile, worker_.buffers, fresh());
    } else {
      std::fill_n(worker_.segment_sum, tile.rows, 0.0f);
    }
    if (!folds()) {
      for (std::uint32_t i = 0; i < tile.rows; ++i) leave(query_rows_[begin + i], segment, i);
    } else if (any) {
      call_.kernel.fold(fresh(), tile.rows, call_.head_dim,
                        row_of(folded(), begin, call_.head_dim));
    }
  }

  /// What the tile's rows see of the segment. False: nothing.
  bool place_rows(AttentionTile& tile, std::uint32_t begin, std::uint32_t segment) const {
    const std::uint32_t first_key = segment * kSegmentTokens;
    const auto clamp = [&](std::uint32_t key) {
      return std::min(std::max(key, first_key) - first_key, kSegmentTokens);
    };
    bool any = false;
    for (std::uint32_t i = 0; i < tile.rows; ++i) {
      const QueryRow& row = query_rows_[begin + i];
      tile.key_begin[i] = clamp(row.key_begin);
      tile.key_end[i] = clamp(row.key_end);
      if (tile.key_begin[i] >= tile.key_end[i]) tile.key_begin[i] = tile.key_end[i] = 0;
      any = any || tile.key_end[i] > 0;
      if (!call_.score.alibi) continue;
      tile.distance[i] = static_cast<float>(first_key) - static_cast<float>(row.key_end - 1);
      tile.slope[i] = call_.task.params.alibi_slopes[row.head];
    }
    return any;
  }

  /// Row i of the fresh states becomes a partial state.
  void leave(const QueryRow& row, std::uint32_t segment, std::uint32_t i) {
    if (segment < call_.plan.segments_of(row.batch_row)) {
      copy(row_of(fresh(), i, call_.head_dim), partial(row, segment));
    }
  }

  /// Row i of the folded states becomes the result or, where other items have later segments, the
  /// partial state of the item's first segment; that of the others is then empty. Followers go on
  /// with the rows that they have.
  void finish_row(const QueryRow& row, std::uint32_t i) {
    if (order().is_joined(row.batch_row)) return;
    const AttentionStates state = row_of(folded(), i, call_.head_dim);
    if (is_whole(row.batch_row)) return write(row, state);
    copy(state, partial(row, item().segment_begin));
    const std::uint32_t end = std::min(item().segment_end, call_.plan.segments_of(row.batch_row));
    for (std::uint32_t s = item().segment_begin + 1; s < end; ++s) *partial(row, s).sum = 0.0f;
  }

  void copy(const AttentionStates& from, const AttentionStates& to) const {
    *to.max = *from.max;
    *to.sum = *from.sum;
    if (*from.sum != 0.0f) std::copy_n(from.acc, call_.head_dim, to.acc);
  }

  AttentionStates partial(const QueryRow& row, std::uint32_t segment) const {
    const device::SplitRow& split = call_.plan.split_rows[call_.plan.split_index[row.batch_row]];
    return call_.scratch.partial(split.first_state + segment - split.first_segment, row.head);
  }

  void write(const QueryRow& row, const AttentionStates& state) const {
    call_.kernel.finish(state.acc, *state.sum, call_.head_dim,
                        call_.task.out.row(row.batch_row) + row.head * call_.head_dim);
  }

  /// Merges a split row where this was the last item that had it.
  void release(std::uint32_t row) {
    if (is_whole(row) || order().is_joined(row)) return;
    const std::uint32_t split = call_.plan.split_index[row];
    if (call_.scratch.pending(split, unit_.kv_head).fetch_sub(1, std::memory_order_acq_rel) != 1)
      return;
    for (std::uint32_t g = 0; g < call_.group; ++g) {
      QueryRow head;
      head.batch_row = row;
      head.head = unit_.kv_head * call_.group + g;
      const AttentionStates merged = row_of(folded(), 0, call_.head_dim);
      *merged.sum = 0.0f;
      const std::uint32_t begin = call_.plan.split_rows[split].first_segment;
      for (std::uint32_t s = begin; s < call_.plan.segments_of(row); ++s) {
        const AttentionStates part = partial(head, s);
        if (*part.sum != 0.0f) call_.kernel.fold(part, 1, call_.head_dim, merged);
      }
      write(head, merged);
    }
  }

  const Call& call_;
  AttentionUnit unit_;  // its item is the one at work
  const AttentionUnit* const then_;
  AttentionScratch::Worker& worker_;
  QueryRow* const query_rows_;
  std::uint32_t first_row_ = 0, rows_ = 0, tiles_ = 0;  // of the pass, at work
  std::uint32_t first_key_ = 0;
  SegmentPointers k_ = {}, v_ = {}, next_k_ = {}, next_v_ = {};
  SegmentPointers fetch_k_ = {}, fetch_v_ = {};  // of a tile
};

void check(const AttentionTask& task) {
  const AttentionPlan& plan = *task.plan;
  const device::KvShape& shape = task.pool.layout.shape();
  const std::size_t heads = task.params.heads;
  INCIPIT_CHECK(plan.segment_tokens == kSegmentTokens);
  INCIPIT_CHECK(plan.window == 0 || (task.params.window > 0 && task.params.window <= plan.window));
  INCIPIT_CHECK(shape.kv_heads > 0 && heads > 0 && heads % shape.kv_heads == 0);
  INCIPIT_CHECK(task.params.layer < shape.layers);
  INCIPIT_CHECK(task.q.rows == plan.positions.size() && task.out.rows == plan.positions.size());
  INCIPIT_CHECK(task.q.columns == heads * shape.head_dim && task.out.columns == task.q.columns);
  INCIPIT_CHECK(task.params.alibi_slopes.empty() || task.params.alibi_slopes.size() == heads);
}

}  // namespace

void AttentionScratch::prepare(unsigned members, const AttentionKernel& kernel,
                               const AttentionTask& task) {
  const AttentionPlan& plan = *task.plan;
  head_dim_ = task.pool.layout.shape().head_dim;
  const std::size_t kv_heads = task.pool.layout.shape().kv_heads;
  group_ = task.params.heads / kv_heads;
  states_ = plan.states;
  split_rows_ = plan.split_rows.size();
  const auto grow = [](auto& vector, std::size_t size) {
    if (vector.size() < size) vector.resize(size);
  };
  const auto lines = [&](std::size_t rows) { return (rows * head_dim_ + 15) / 16; };
  while (workers_.size() < members) workers_.push_back(std::make_unique<Worker>());
  for (const auto& worker : workers_) {
    grow(worker->segment_acc, lines(kMaxTileRows));
    grow(worker->queries, lines(kPassRows));
    grow(worker->acc, lines(kPassRows));
    grow(worker->max, kPassRows);
    grow(worker->sum, kPassRows);
    if (const Widening* const widening = kernel.widening) {
      grow(worker->wide, 2 * kSegmentBlocks * widening->block_bytes(head_dim_) / sizeof(Line));
    }
  }
  grow(partial_max_, states_ * task.params.heads);
  grow(partial_sum_, states_ * task.params.heads);
  grow(partial_acc_, states_ * task.params.heads * head_dim_);
  order_.make(plan, static_cast<std::uint32_t>(kv_heads),
              kPassRows / static_cast<std::uint32_t>(group_));
  const std::size_t pending = split_rows_ * kv_heads;
  if (pending_.size() < pending) pending_ = std::vector<std::atomic<std::uint32_t>>(pending);
  for (std::size_t i = 0; i < pending; ++i) {
    pending_[i].store(plan.split_rows[i % split_rows_].items, std::memory_order_relaxed);
  }
}

AttentionStates AttentionScratch::partial(std::size_t state, std::size_t head) noexcept {
  const std::size_t index = (head / group_ * states_ + state) * group_ + head % group_;
  return {&partial_max_[index], &partial_sum_[index], &partial_acc_[index * head_dim_]};
}

const AttentionKernel& attention_kernel(const base::CpuFeatures& allowed,
                                        const device::KvShape& shape) noexcept {
#if INCIPIT_CPU_X86
  const bool fits = shape.head_dim % 16 == 0 && shape.head_dim <= 256;
  const bool exact_in_bf16 = shape.type == KvFormat::kBF16 || shape.type == KvFormat::kInt8;
  if (fits && allowed.uses_bf16_dots() && exact_in_bf16) {
    return avx512::bf16_attention_kernel(shape.type);
  }
  if (fits && allowed.avx512) return avx512::attention_kernel(shape.type);
  if (fits && allowed.avx2) return avx2::attention_kernel(shape.type);
#else
  static_cast<void>(allowed);
#endif
  return scalar_attention_kernel(shape.type);
}

std::string attention_numerics(const base::CpuFeatures& allowed) {
  const bool lanes = allowed.avx2 || allowed.avx512;
  return std::string("attention2.") + std::to_string(kSegmentTokens) + "." +
         (allowed.uses_bf16_dots() ? "bf16dot"
          : lanes                  ? "lanes16"
                                   : "scalar");
}

device::PlanOptions attention_plan_options(unsigned threads) noexcept {
  device::PlanOptions options;
  options.segment_tokens = kSegmentTokens;
  // Rows of several query heads make tiles together, so few will do; and parts of the rows keep
  // their states to themselves, where parts of the keys must be merged.
  options.least_item_rows = 8;
  options.wanted_items = threads;
  return options;
}

void attention(const AttentionKernel& kernel, const AttentionTask& task, base::ThreadPool& threads,
               AttentionScratch& scratch) {
  check(task);
  const Call call{kernel, task, scratch};
  scratch.prepare(threads.members(), kernel, task);
  const std::vector<AttentionUnit>& units = scratch.order().units();
  threads.for_each(units.size(), [&](std::size_t unit, unsigned member) {
    const std::size_t then = unit + threads.members();
    UnitRun(call, units[unit], then < units.size() ? &units[then] : nullptr, scratch.worker(member))
        .run();
  });
}

}  // namespace incipit::cpu
