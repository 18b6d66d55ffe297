// SPDX-License-Identifier: Apache-2.0
// Included by kernels_avx2.cpp and kernels_avx512.cpp inside their regions: products of quantised
// weights and activations, by the contract of quantized_rows.h. The number of rows picks the tile
// and nothing of the arithmetic.

/// How a tile reads the weights of one column of outputs.
template <tensor::DType kType>
struct Column {
  static constexpr QuantPanel kLayout{kType};
  static constexpr bool kMinimum = kType == tensor::DType::kQ4_1;
  static constexpr std::size_t kPerPanel = kPanelOutputs / kColumnOutputs;

  const std::byte* quants = nullptr;
  const std::byte* scales = nullptr;

  Column() = default;
  Column(const PackedWeight& weight, std::size_t index) {
    const std::byte* const panel = weight.panel(index / kPerPanel);
    const std::size_t lane = index % kPerPanel * kColumnOutputs;
    quants = panel + lane * QuantPanel::kLineBytes / kPanelOutputs;
    scales = panel + lane * QuantPanel::kScaleBytes / kPanelOutputs;
  }

  Ints line(std::size_t block, std::size_t index) const {
    return load_line(quants + kLayout.line_offset(block, index));
  }
  Floats scale(std::size_t block) const {
    return load_scales(scales + kLayout.scale_offset(block));
  }
  Floats minimum(std::size_t block) const {
    return load_scales(scales + kLayout.scale_offset(block) + QuantPanel::kScaleBytes);
  }

  /// Asks for the block `ahead` bytes on, into L2, which takes more misses at a time than L1.
  [[gnu::always_inline]] void prefetch(std::size_t block, std::size_t ahead) const {
    const std::byte* const at = quants + ahead + kLayout.line_offset(block, 0);
    INCIPIT_UNROLL
    for (std::size_t i = 0; i < kLayout.lines; ++i) prefetch_l2(at + i * QuantPanel::kLineBytes);
    prefetch_l2(scales + ahead + kLayout.scale_offset(block));
  }
};

/// The share of a tile in prefetching the next columns: each `every`-th block from `first`, which
/// is behind the last where there is nothing to do.
struct Prefetch {
  std::size_t ahead, every, first;
};

/// Where the integer sums of a block begin, so that they end as if the weights were signed.
template <tensor::DType kType>
inline Ints dot_start(const RowBlock& x) {
  if constexpr (kType == tensor::DType::kQ4_1) return repeat_int(0);
  return repeat_int(kType == tensor::DType::kQ4_0 ? x.offset_8 : x.offset_128);
}

/// Part `kPart` of a line: 16-bit weights of two inputs that follow each other.
template <tensor::DType kType, std::size_t kPart>
inline Ints weight_pair(Ints line) {
  if constexpr (kType == tensor::DType::kQ8_0) {
    return kPart == 0 ? keep(line, 255) : shift_right<8>(line);
  } else {
    constexpr int kShift = kPart == 0 ? 0 : kPart == 1 ? 8 : kPart == 2 ? 4 : 12;
    return kPart == 3 ? shift_right<kShift>(line) : keep(shift_right<kShift>(line), 15);
  }
}

inline Ints repeat_pair(const std::int16_t* q) {
  std::int32_t pair;
  __builtin_memcpy(&pair, q, sizeof(pair));
  return repeat_int(pair);
}

/// dot[r][c] += the weights in part kPart of the lines x the two inputs behind x[r].q[input].
template <tensor::DType kType, std::size_t kPart, std::size_t kRows, std::size_t kColumns>
[[gnu::always_inline]] inline void add_part(Ints (&dot)[kRows][kColumns],
                                            const Ints (&line)[kColumns], const RowBlock* x,
                                            std::size_t input) {
  Ints w[kColumns];
  INCIPIT_UNROLL
  for (std::size_t c = 0; c < kColumns; ++c) w[c] = weight_pair<kType, kPart>(line[c]);
  INCIPIT_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    const Ints pair = repeat_pair(x[r].q + input);
    INCIPIT_UNROLL
    for (std::size_t c = 0; c < kColumns; ++c) dot[r][c] = add_pairs(dot[r][c], w[c], pair);
  }
}

/// The integer sums of one block.
template <tensor::DType kType, std::size_t kRows, std::size_t kColumns>
[[gnu::always_inline]] inline void dot_block(Ints (&dot)[kRows][kColumns],
                                             const Column<kType> (&w)[kColumns], const RowBlock* x,
                                             std::size_t block) {
  INCIPIT_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    INCIPIT_UNROLL
    for (std::size_t c = 0; c < kColumns; ++c) dot[r][c] = dot_start<kType>(x[r]);
  }
  INCIPIT_UNROLL
  for (std::size_t l = 0; l < Column<kType>::kLayout.lines; ++l) {
    Ints line[kColumns];
    INCIPIT_UNROLL
    for (std::size_t c = 0; c < kColumns; ++c) line[c] = w[c].line(block, l);
    add_part<kType, 0>(dot, line, x, 4 * l);
    add_part<kType, 1>(dot, line, x, 4 * l + 2);
    if constexpr (kType != tensor::DType::kQ8_0) {
      add_part<kType, 2>(dot, line, x, 16 + 4 * l);
      add_part<kType, 3>(dot, line, x, 16 + 4 * l + 2);
    }
  }
}

/// sum += the integer sums of one block, scaled.
template <tensor::DType kType, std::size_t kRows, std::size_t kColumns>
[[gnu::always_inline]] inline void add_block(Floats (&sum)[kRows][kColumns],
                                             const Ints (&dot)[kRows][kColumns],
                                             const Column<kType> (&w)[kColumns], const RowBlock* x,
                                             std::size_t block) {
  INCIPIT_UNROLL
  for (std::size_t c = 0; c < kColumns; ++c) {
    const Floats scale = w[c].scale(block);
    INCIPIT_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) {
      sum[r][c] = add_scaled(sum[r][c], scale, repeat_float(x[r].d), dot[r][c]);
    }
    if constexpr (Column<kType>::kMinimum) {
      const Floats minimum = w[c].minimum(block);
      INCIPIT_UNROLL
      for (std::size_t r = 0; r < kRows; ++r) {
        sum[r][c] = add_product(sum[r][c], minimum, repeat_float(x[r].s));
      }
    }
  }
}

template <std::size_t kRows, std::size_t kColumns>
[[gnu::always_inline]] inline void store_tile(const ProductPart& part, std::size_t first_column,
                                              std::size_t first_row,
                                              const Floats (&sum)[kRows][kColumns]) {
  const std::size_t n = first_column * kColumnOutputs;
  const std::size_t left = part.weight->rows() - n;
  INCIPIT_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    float* const out = part.out.row(first_row + r) + n;
    INCIPIT_UNROLL
    for (std::size_t c = 0; c < kColumns; ++c) {
      const std::size_t skip = c * kColumnOutputs;
      const float* const bias = part.bias == nullptr ? nullptr : part.bias + n + skip;
      const std::size_t outputs = left - skip < kColumnOutputs ? left - skip : kColumnOutputs;
      store_outputs(out + skip, sum[r][c], bias, outputs);
    }
  }
}

/// Asks for the outputs of a tile, so that storing them does not wait for memory.
template <std::size_t kRows, std::size_t kColumns>
[[gnu::always_inline]] inline void prefetch_outputs(const ProductPart& part,
                                                    std::size_t first_column,
                                                    std::size_t first_row) {
  INCIPIT_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    const float* const out = part.out.row(first_row + r) + first_column * kColumnOutputs;
    INCIPIT_UNROLL
    for (std::size_t c = 0; c < kColumns; ++c) prefetch_l1(out + c * kColumnOutputs);
  }
}

/// kRows rows of one group x kColumns columns.
template <tensor::DType kType, std::size_t kRows, std::size_t kColumns>
void multiply_tile(const ProductPart& part, std::size_t first_column, const RowBlock* x,
                   std::size_t first_row, Prefetch prefetch) {
  Column<kType> w[kColumns];
  Floats sum[kRows][kColumns];
  INCIPIT_UNROLL
  for (std::size_t c = 0; c < kColumns; ++c) {
    w[c] = Column<kType>(*part.weight, first_column + c);
    INCIPIT_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) sum[r][c] = no_sum();
  }
  prefetch_outputs<kRows, kColumns>(part, first_column, first_row);
  const std::size_t blocks = part.weight->columns() / kBlock;
  for (std::size_t b = 0; b < blocks; ++b, x += kRows) {
    if (b == prefetch.first) {
      prefetch.first += prefetch.every;
      INCIPIT_UNROLL
      for (std::size_t c = 0; c < kColumns; ++c) w[c].prefetch(b, prefetch.ahead);
    }
    Ints dot[kRows][kColumns];
    dot_block<kType>(dot, w, x, b);
    add_block<kType>(sum, dot, w, x, b);
  }
  store_tile(part, first_column, first_row, sum);
}

/// All rows x kColumns columns, which come from memory once and stay in cache from group to group.
template <tensor::DType kType, std::size_t kColumns>
void multiply_columns(const ProductPart& part, std::size_t first_column) {
  using Tile = void (*)(const ProductPart&, std::size_t, const RowBlock*, std::size_t, Prefetch);
  static constexpr Tile kTiles[kTileRows] = {
      multiply_tile<kType, 1, kColumns>, multiply_tile<kType, 2, kColumns>,
      multiply_tile<kType, 3, kColumns>, multiply_tile<kType, 4, kColumns>,
      multiply_tile<kType, 5, kColumns>, multiply_tile<kType, 6, kColumns>,
  };
  constexpr std::size_t kPanels =
      (kColumns + Column<kType>::kPerPanel - 1) / Column<kType>::kPerPanel;
  const std::size_t blocks = part.weight->columns() / kBlock;
  const RowGroups groups(part.x.rows, kTileRows);
  const bool stream = part.x.rows <= kStreamRows;
  for (std::size_t g = 0, row = 0; g < groups.count; ++g) {
    const std::size_t next = groups.begin(g + 1);
    kTiles[next - row - 1](
        part, first_column, part.quantized + row * blocks, row,
        {kPanels * part.weight->panel_bytes(), groups.count, stream ? blocks : g});
    row = next;
  }
}

template <tensor::DType kType>
void product_quantized(const ProductPart& part) {
  const std::size_t all = (part.weight->rows() + kColumnOutputs - 1) / kColumnOutputs;
  const std::size_t wanted = part.panel_end * Column<kType>::kPerPanel;
  const std::size_t end = wanted < all ? wanted : all;
  std::size_t column = part.panel_begin * Column<kType>::kPerPanel;
  if (part.x.rows > kTileRows) {  // few rows wait for memory, which one column reads as one stream
    for (; column + kTileColumns <= end; column += kTileColumns) {
      multiply_columns<kType, kTileColumns>(part, column);
    }
  }
  for (; column < end; ++column) multiply_columns<kType, 1>(part, column);
}
