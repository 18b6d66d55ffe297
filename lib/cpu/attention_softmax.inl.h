// SPDX-License-Identifier: Apache-2.0
// Included inside the regions of the attention kernels, behind a simd header: what all of them do
// between dot products and finished states. Scores are measured in powers of two. The including
// file gives
//
//   add_to_exponent(p, n)   p * 2^n by adding the lowest bits of n's lanes, a whole number, to the
//                           exponent bits of p

constexpr float kLog2E = 1.44269504f;

/// 2^x for x <= 0, exactly 1 at 0, exactly 0 from -127 on; the NaN of arithmetic stays NaN.
/// With n = x rounded and r = x - n: a polynomial in r times 2^n; its relative error is 2^-28.
inline F16x power_of_two(F16x x) {
  const F16x shift = set1(12582912.0f);  // 1.5 * 2^23: leaves no bits for a fraction
  x = max(set1(-127.0f), x);
  const F16x n = add(x, shift);
  const F16x r = sub(x, sub(n, shift));
  F16x p = set1(0.00015353361959569156f);
  p = fma(p, r, set1(0.0013398873852565885f));
  p = fma(p, r, set1(0.00961843691766262f));
  p = fma(p, r, set1(0.055503323674201965f));
  p = fma(p, r, set1(0.24022647738456726f));
  p = fma(p, r, set1(0.6931471824645996f));
  return add_to_exponent(fma(p, r, set1(1.0f)), n);
}

/// What queries are multiplied by, so that their products with keys are scores, or are scores
/// before a soft cap in natural units.
inline float query_factor(const ScoreParams& score) {
  return score.soft_cap > 0.0f ? score.scale : score.scale * kLog2E;
}

/// cap * tanh(x / cap), by 2^ of a negative number.
inline F16x soft_cap(F16x x, float cap) {
  const F16x e = power_of_two(mul(abs(x), set1(-2.0f * kLog2E / cap)));
  const F16x size = mul(set1(cap * kLog2E), div(sub(set1(1.0f), e), add(set1(1.0f), e)));
  return select(less(x, zero()), sub(zero(), size), size);
}

/// slope * (key - position) more, for the 16 keys from `first` on.
inline F16x add_alibi(F16x x, const AttentionTile& tile, std::uint32_t row, std::uint32_t first) {
  static constexpr float kLanes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const F16x distance = add(set1(tile.distance[row] + static_cast<float>(first)), load(kLanes));
  return fma(set1(tile.slope[row] * kLog2E), distance, x);
}

/// The bits of keys [begin, end) among the 16 keys from `first` on.
inline std::uint32_t visible_lanes(std::uint32_t begin, std::uint32_t end, std::uint32_t first) {
  if (begin >= first + 16 || end <= first) return 0;
  const std::uint32_t from = begin > first ? begin - first : 0;
  const std::uint32_t to = end < first + 16 ? end - first : 16;
  return (0xffffu << from) & (0xffffu >> (16 - to));
}

/// The steps of kStep keys in which a row sees any.
template <std::uint32_t kStep>
struct Steps {
  std::uint32_t first, last;
  Steps(const AttentionTile& tile, std::uint32_t row)
      : first(tile.key_begin[row] / kStep * kStep),
        last((tile.key_end[row] + kStep - 1) / kStep * kStep) {}
};

/// Caps and biases one row's dot products, and masks what the row does not see. False: they stay.
template <std::uint32_t kStep>
inline bool score_row(const AttentionTile& tile, std::uint32_t row, float* scores) {
  const std::uint32_t begin = tile.key_begin[row], end = tile.key_end[row];
  const bool curved = tile.score.soft_cap > 0.0f || tile.score.alibi;
  if (!curved && begin % kStep == 0 && end % kStep == 0) return false;
  const F16x nothing = set1(-std::numeric_limits<float>::infinity());
  const Steps<kStep> steps(tile, row);
  for (std::uint32_t key = steps.first; key < steps.last; key += 16) {
    const bool all = begin <= key && key + 16 <= end;
    if (all && !curved) continue;
    F16x x = load(scores + key);
    if (tile.score.soft_cap > 0.0f) x = soft_cap(x, tile.score.soft_cap);
    if (tile.score.alibi) x = add_alibi(x, tile, row, key);
    store(scores + key, all ? x : select(visible_lanes(begin, end, key), x, nothing));
  }
  return true;
}

template <std::uint32_t kStep>
inline float largest_score(const float* scores, const Steps<kStep>& steps) {
  F16x even = load(scores + steps.first), odd = load(scores + steps.last - 16);
  for (std::uint32_t key = steps.first; key + 32 <= steps.last; key += 32) {
    even = max(even, load(scores + key));
    odd = max(odd, load(scores + key + 16));
  }
  return reduce_max(max(even, odd));
}

/// Softmax of all rows of a tile but for the division: kWeigh turns one row's scores into weights
/// below their largest and returns their sum. The rows take each stage one after the other, so that
/// their chains of operations overlap.
template <std::uint32_t kStep,
          float (*kWeigh)(const AttentionTile& tile, TileBuffers& buffers, std::uint32_t row,
                          const Steps<kStep>& steps, float largest)>
inline void weigh_rows(const AttentionTile& tile, TileBuffers& buffers,
                       const AttentionStates& out) {
  for (std::uint32_t row = 0; row < tile.rows; ++row) {
    out.sum[row] = 0.0f;
    if (tile.key_end[row] == 0) continue;
    score_row<kStep>(tile, row, buffers.scores[row]);
    out.max[row] = largest_score(buffers.scores[row], Steps<kStep>(tile, row));
  }
  for (std::uint32_t row = 0; row < tile.rows; ++row) {
    if (tile.key_end[row] == 0) continue;
    out.sum[row] = kWeigh(tile, buffers, row, Steps<kStep>(tile, row), out.max[row]);
  }
}

static_assert(kMaxTileRows <= 16);  // fold_states takes the rows of a tile as lanes
inline void fold_states(const AttentionStates& next, std::uint32_t rows, std::size_t head_dim,
                        const AttentionStates& states) {
  const F16x old_max = load_first(states.max, rows), next_max = load_first(next.max, rows);
  const F16x max_of_both = max(old_max, next_max);
  float largest[16], keep[16], take[16];
  store(largest, max_of_both);
  store(keep, power_of_two(sub(old_max, max_of_both)));
  store(take, power_of_two(sub(next_max, max_of_both)));
  for (std::uint32_t row = 0; row < rows; ++row) {
    if (next.sum[row] == 0.0f) continue;
    const float* const added = next.acc + row * head_dim;
    float* const acc = states.acc + row * head_dim;
    if (states.sum[row] == 0.0f) {
      states.max[row] = next.max[row];
      states.sum[row] = next.sum[row];
      for (std::size_t i = 0; i < head_dim; i += 16) store(acc + i, load(added + i));
      continue;
    }
    states.max[row] = largest[row];
    states.sum[row] = states.sum[row] * keep[row] + next.sum[row] * take[row];
    const F16x old_part = set1(keep[row]), new_part = set1(take[row]);
    for (std::size_t i = 0; i < head_dim; i += 16) {
      store(acc + i, fma(load(added + i), new_part, mul(load(acc + i), old_part)));
    }
  }
}

inline void finish_row(const float* acc, float sum, std::size_t head_dim, float* out) {
  for (std::size_t i = 0; i < head_dim; i += 16) store(out + i, div(load(acc + i), set1(sum)));
}
