// SPDX-License-Identifier: Apache-2.0
#include "device/attention_plan.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/check.h"
#include "base/hash.h"

namespace incipit::device {
namespace {

// What reading an item's KV costs, in rows.
constexpr std::uint64_t kReadCost = 8;

constexpr std::uint32_t kNone = ~std::uint32_t{0};

constexpr std::uint32_t divide_up(std::uint32_t a, std::uint32_t b) noexcept {
  return a / b + (a % b != 0);
}

/// Where part `index` of `parts` of [0, count) begins; sizes differ by at most one.
constexpr std::uint32_t part_begin(std::uint32_t count, std::uint32_t parts,
                                   std::uint32_t index) noexcept {
  return static_cast<std::uint32_t>(std::uint64_t{count} * index / parts);
}

/// Sequences whose blocks are the same over some whole segments, or one sequence alone.
struct Run {
  std::uint32_t first_member = 0, members = 0;  // into Runs::members
  std::uint32_t segment_begin = 0, segment_end = 0;
};

/// Finds the runs, segment by segment: the sequences that reach a segment are parted by what its
/// blocks are, and a part that is the same set of sequences as in the segment before prolongs that
/// one's run.
class RunFinder {
 public:
  RunFinder(std::span<const SequenceRows> sequences, const PlanOptions& options)
      : sequences_(sequences),
        options_(options),
        segment_blocks_(options.segment_tokens / static_cast<std::uint32_t>(kBlockTokens)),
        run_of_(sequences.size(), kNone) {}

  void find() {
    std::vector<std::uint32_t> sharing;
    for (std::uint32_t s = 0; s < sequences_.size(); ++s) {
      if (sequences_[s].rows <= options_.max_shared_rows && whole_segments(s) > 0) {
        sharing.push_back(s);
      } else {
        extend(s, 0, segments(s));
      }
    }
    for (std::uint32_t segment = 0; !sharing.empty(); ++segment) {
      part(sharing, segment);
      const auto ended = [&](std::uint32_t s) { return whole_segments(s) == segment + 1; };
      for (const std::uint32_t s : sharing) {
        if (ended(s) && segments(s) > segment + 1) extend(s, segment + 1, segments(s));
      }
      std::erase_if(sharing, ended);
    }
  }

  const std::vector<Run>& runs() const noexcept { return runs_; }
  std::span<const std::uint32_t> members(const Run& run) const noexcept {
    return std::span(members_).subspan(run.first_member, run.members);
  }

 private:
  std::uint32_t tokens(std::uint32_t s) const noexcept {
    return sequences_[s].first_position + sequences_[s].rows;
  }
  std::uint32_t segments(std::uint32_t s) const noexcept {
    return divide_up(tokens(s), options_.segment_tokens);
  }
  /// Segments whose last block the sequence has begun.
  std::uint32_t whole_segments(std::uint32_t s) const noexcept {
    return divide_up(tokens(s), kBlockTokens) / segment_blocks_;
  }
  std::span<const BlockId> blocks(std::uint32_t s, std::uint32_t segment) const noexcept {
    return sequences_[s].blocks.subspan(std::size_t{segment} * segment_blocks_, segment_blocks_);
  }

  /// Parts the sequences (ascending) by their blocks in one whole segment.
  void part(std::span<const std::uint32_t> sharing, std::uint32_t segment) {
    if (sharing.size() == 1) return add_run(sharing, segment, segment + 1);
    keys_.clear();
    for (const std::uint32_t s : sharing) {
      keys_.emplace_back(base::xxh3_64(std::as_bytes(blocks(s, segment))), s);
    }
    std::sort(keys_.begin(), keys_.end());
    for (auto rest = keys_.begin(); rest != keys_.end();) {
      // The hash finds, the ids prove.
      const std::uint64_t hash = rest->first;
      const auto bucket_end =
          std::find_if(rest, keys_.end(), [&](const auto& key) { return key.first != hash; });
      const std::span<const BlockId> first = blocks(rest->second, segment);
      const auto equal_end = std::stable_partition(rest, bucket_end, [&](const auto& key) {
        return std::ranges::equal(blocks(key.second, segment), first);
      });
      part_.clear();
      for (; rest != equal_end; ++rest) part_.push_back(rest->second);
      add_run(part_, segment, segment + 1);
    }
  }

  void extend(std::uint32_t s, std::uint32_t segment_begin, std::uint32_t segment_end) {
    add_run({&s, 1}, segment_begin, segment_end);
  }

  void add_run(std::span<const std::uint32_t> members, std::uint32_t segment_begin,
               std::uint32_t segment_end) {
    const std::uint32_t open = run_of_[members.front()];
    if (open != kNone && std::ranges::equal(this->members(runs_[open]), members)) {
      runs_[open].segment_end = segment_end;
      return;
    }
    for (const std::uint32_t s : members) run_of_[s] = static_cast<std::uint32_t>(runs_.size());
    runs_.push_back({static_cast<std::uint32_t>(members_.size()),
                     static_cast<std::uint32_t>(members.size()), segment_begin, segment_end});
    members_.insert(members_.end(), members.begin(), members.end());
  }

  const std::span<const SequenceRows> sequences_;
  const PlanOptions options_;
  const std::uint32_t segment_blocks_;
  std::vector<Run> runs_;
  std::vector<std::uint32_t> members_;
  std::vector<std::uint32_t> run_of_;  // [sequences] the run that its last segment so far is in
  std::vector<std::pair<std::uint64_t, std::uint32_t>> keys_;  // hash, sequence
  std::vector<std::uint32_t> part_;
};

/// Makes items of runs.
class ItemCutter {
 public:
  ItemCutter(std::span<const SequenceRows> sequences, const PlanOptions& options,
             std::uint32_t window)
      : sequences_(sequences), options_(options) {
    plan_.segment_tokens = options.segment_tokens;
    plan_.window = window;
    for (const SequenceRows& sequence : sequences) {
      first_rows_.push_back(static_cast<std::uint32_t>(plan_.positions.size()));
      for (std::uint32_t i = 0; i < sequence.rows; ++i) {
        plan_.positions.push_back(sequence.first_position + i);
      }
    }
  }

  AttentionPlan cut(const RunFinder& finder) && {
    std::uint64_t total = 0;
    for (const Run& run : finder.runs()) total += cost(rows_of(finder, run), run);
    const std::uint64_t enough = std::max<std::uint64_t>(total / options_.wanted_items, 1);
    for (const Run& run : finder.runs()) {
      add_blocks(sequences_[finder.members(run).front()], run);
      cut_run(rows_of(finder, run), run, enough);
    }
    sort_items();
    find_split_rows();
    return std::move(plan_);
  }

 private:
  std::uint32_t segments_of(std::uint32_t row) const noexcept { return plan_.segments_of(row); }

  /// Whether a row sees any of the segments [begin, end).
  bool sees(std::uint32_t row, std::uint32_t begin, std::uint32_t end) const noexcept {
    return segments_of(row) > begin && plan_.first_segment_of(row) < end;
  }

  /// The batch rows that see any of the run's segments.
  std::span<const std::uint32_t> rows_of(const RunFinder& finder, const Run& run) {
    run_rows_.clear();
    for (const std::uint32_t s : finder.members(run)) {
      for (std::uint32_t row = first_rows_[s]; row < first_rows_[s] + sequences_[s].rows; ++row) {
        if (sees(row, run.segment_begin, run.segment_end)) run_rows_.push_back(row);
      }
    }
    return run_rows_;
  }

  std::uint64_t cost(std::span<const std::uint32_t> rows, const Run& run) const noexcept {
    std::uint64_t sum = 0;
    std::uint32_t first = run.segment_end;
    for (const std::uint32_t row : rows) {
      const std::uint32_t begin = std::max(plan_.first_segment_of(row), run.segment_begin);
      sum += std::min(segments_of(row), run.segment_end) - begin;
      first = std::min(first, begin);
    }
    return sum + kReadCost * (run.segment_end - first);
  }

  /// The run's blocks, for all of its items.
  void add_blocks(const SequenceRows& sequence, const Run& run) {
    const std::uint32_t segment_blocks = options_.segment_tokens / std::uint32_t{kBlockTokens};
    const std::uint32_t known = divide_up(sequence.first_position + sequence.rows, kBlockTokens);
    run_first_block_ = static_cast<std::uint32_t>(plan_.blocks.size());
    const auto begin = sequence.blocks.begin() + run.segment_begin * segment_blocks;
    const auto end = sequence.blocks.begin() + std::min(run.segment_end * segment_blocks, known);
    plan_.blocks.insert(plan_.blocks.end(), begin, end);
  }

  /// Rows first, because cutting them needs no merge, down to least_item_rows; then segments.
  void cut_run(std::span<const std::uint32_t> rows, const Run& run, std::uint64_t enough) {
    const auto row_count = static_cast<std::uint32_t>(rows.size());
    const auto pieces = static_cast<std::uint32_t>(
        std::min<std::uint64_t>((cost(rows, run) + enough - 1) / enough, options_.wanted_items));
    const std::uint32_t least_parts = divide_up(row_count, options_.max_item_rows);
    const std::uint32_t row_parts =
        std::max(std::min(pieces, row_count / options_.least_item_rows), least_parts);
    for (std::uint32_t part = 0; part < row_parts; ++part) {
      const std::uint32_t begin = part_begin(row_count, row_parts, part);
      const std::uint32_t end = part_begin(row_count, row_parts, part + 1);
      cut_segments(rows.subspan(begin, end - begin), run, divide_up(pieces, row_parts));
    }
  }

  void cut_segments(std::span<const std::uint32_t> rows, const Run& run, std::uint32_t pieces) {
    std::uint32_t first = run.segment_end, last = 0;
    for (const std::uint32_t row : rows) {
      first = std::min(first, plan_.first_segment_of(row));
      last = std::max(last, segments_of(row));
    }
    first = std::max(first, run.segment_begin);
    const std::uint32_t segments = std::min(run.segment_end, last) - first;
    const std::uint32_t parts = std::min(pieces, segments);
    for (std::uint32_t part = 0; part < parts; ++part) {
      add_item(rows, run, first + part_begin(segments, parts, part),
               first + part_begin(segments, parts, part + 1));
    }
  }

  void add_item(std::span<const std::uint32_t> rows, const Run& run, std::uint32_t segment_begin,
                std::uint32_t segment_end) {
    const std::uint32_t segment_blocks = options_.segment_tokens / std::uint32_t{kBlockTokens};
    AttentionItem item;
    item.first_row = static_cast<std::uint32_t>(plan_.rows.size());
    for (const std::uint32_t row : rows) {
      if (sees(row, segment_begin, segment_end)) plan_.rows.push_back(row);
    }
    item.row_count = static_cast<std::uint32_t>(plan_.rows.size()) - item.first_row;
    item.first_block = run_first_block_ + (segment_begin - run.segment_begin) * segment_blocks;
    item.block_count = std::min((segment_end - segment_begin) * segment_blocks,
                                static_cast<std::uint32_t>(plan_.blocks.size()) - item.first_block);
    item.segment_begin = segment_begin;
    item.segment_end = segment_end;
    plan_.items.push_back(item);
  }

  void sort_items() {
    const auto size = [](const AttentionItem& item) {
      return (kReadCost + item.row_count) * (item.segment_end - item.segment_begin);
    };
    std::stable_sort(
        plan_.items.begin(), plan_.items.end(),
        [&](const AttentionItem& a, const AttentionItem& b) { return size(a) > size(b); });
  }

  /// The rows of an item that has some.
  std::span<const std::uint32_t> rows_of(const AttentionItem& item) const noexcept {
    return std::span(plan_.rows).subspan(item.first_row, item.row_count);
  }

  void find_split_rows() {
    struct RowItems {
      std::uint32_t count = 0, first_segment = kNone;
      bool joins_late = false;  // one of its items is not the first of all rows there
    };
    std::vector<RowItems> items_of(plan_.positions.size());
    for (const AttentionItem& item : plan_.items) {
      for (const std::uint32_t row : rows_of(item)) {
        ++items_of[row].count;
        items_of[row].first_segment = std::min(items_of[row].first_segment, item.segment_begin);
      }
    }
    for (AttentionItem& item : plan_.items) {
      for (const std::uint32_t row : rows_of(item)) {
        item.first = item.first && items_of[row].first_segment == item.segment_begin;
      }
      for (const std::uint32_t row : rows_of(item)) items_of[row].joins_late |= !item.first;
    }
    plan_.split_index.assign(items_of.size(), AttentionPlan::kWhole);
    for (std::uint32_t row = 0; row < items_of.size(); ++row) {
      const RowItems& items = items_of[row];
      if (items.count < 2 && !items.joins_late) continue;
      plan_.split_index[row] = static_cast<std::uint32_t>(plan_.split_rows.size());
      plan_.split_rows.push_back({row, items.first_segment, plan_.states, items.count});
      plan_.states += segments_of(row) - items.first_segment;
    }
  }

  const std::span<const SequenceRows> sequences_;
  const PlanOptions options_;
  AttentionPlan plan_;
  std::vector<std::uint32_t> first_rows_;  // [sequences] batch row
  std::vector<std::uint32_t> run_rows_;
  std::uint32_t run_first_block_ = 0;
};

}  // namespace

AttentionPlan plan_attention(std::span<const SequenceRows> sequences, const PlanOptions& options,
                             std::uint32_t window) {
  INCIPIT_CHECK(options.segment_tokens > 0 && options.segment_tokens % kBlockTokens == 0);
  INCIPIT_CHECK(options.max_item_rows > 0 && options.least_item_rows > 0);
  INCIPIT_CHECK(options.wanted_items > 0);
  for (const SequenceRows& sequence : sequences) {
    INCIPIT_CHECK(sequence.rows > 0);
    INCIPIT_CHECK(sequence.blocks.size() * kBlockTokens >=
                  std::uint64_t{sequence.first_position} + sequence.rows);
  }
  RunFinder finder(sequences, options);
  finder.find();
  return ItemCutter(sequences, options, window).cut(finder);
}

}  // namespace incipit::device
