// SPDX-License-Identifier: Apache-2.0
// Included by kernels_avx2.cpp and kernels_avx512.cpp inside their regions: products of quantised
// weights and activations, by the contract of quantized_rows.h. The number of rows picks the tile
// and nothing of the arithmetic.

/// How a tile reads the weights of one column of outputs.
template <tensor::DType kType>
struct Column {
  static constexpr QuantPanel kLayout{kType};
  static constexpr std::size_t kPerPanel = kPanelOutputs / kColumnOutputs;
  static constexpr bool kNibbles = kType != tensor::DType::kQ8_0;
  static constexpr bool kMinimum = tensor::has_minimum(kType);
  static constexpr bool kFactors = tensor::has_factors(kType);
  // Scales of a block: the second is for what lies in high nibbles, inputs 16 and up.
  static constexpr std::size_t kParts = kType == tensor::DType::kQ6_K ? 2 : 1;

  const std::byte* quants = nullptr;
  const std::byte* scales = nullptr;
  const std::byte* factors = nullptr;

  Column() = default;
  Column(const PackedWeight& weight, std::size_t index) {
    const std::byte* const panel = weight.panel(index / kPerPanel);
    const std::size_t lane = index % kPerPanel * kColumnOutputs;
    quants = panel + lane * QuantPanel::kLineBytes / kPanelOutputs;
    scales = panel + lane * QuantPanel::kScaleBytes / kPanelOutputs;
    factors = panel + lane * QuantPanel::kFactorBytes / kPanelOutputs;
  }

  Ints line(std::size_t block, std::size_t index) const {
    return load_line(quants + kLayout.line_offset(block, kLayout.bit_lines + index));
  }
  Ints bits(std::size_t block, std::size_t part) const {
    return load_bits(quants + kLayout.line_offset(block, part));
  }
  Floats scale(std::size_t block, std::size_t part) const {
    const Floats d = load_scales(scales + kLayout.scale_offset(block));
    if constexpr (!kFactors) return d;
    return multiply(d, factor(block, part));
  }
  /// A minimum is what is returned, of a type with factors minus that.
  Floats minimum(std::size_t block) const {
    const Floats m = load_scales(scales + kLayout.scale_offset(block) + QuantPanel::kScaleBytes);
    if constexpr (!kFactors) return m;
    return multiply(m, factor(block, 1));
  }

  /// Asks for the block `ahead` bytes on, into L2, which takes more misses at a time than L1.
  [[gnu::always_inline]] void prefetch(std::size_t block, std::size_t ahead) const {
    const std::byte* const at = quants + ahead + kLayout.line_offset(block, 0);
    INCIPIT_UNROLL
    for (std::size_t i = 0; i < kLayout.lines; ++i) prefetch_l2(at + i * QuantPanel::kLineBytes);
    prefetch_l2(scales + ahead + kLayout.scale_offset(block));
    if constexpr (kFactors) prefetch_l2(factors + ahead + kLayout.factor_offset(block));
  }

 private:
  Floats factor(std::size_t block, std::size_t index) const {
    return load_factors(factors + kLayout.factor_offset(block) + index * QuantPanel::kFactorBytes);
  }
};

/// The codes in the low (or high) nibbles of a line of a block, with their higher bits.
template <tensor::DType kType, int kLine, bool kHigh>
[[gnu::always_inline]] inline Ints codes_of_line(Ints line, Ints bits) {
  const Ints nibbles = kHigh ? high_nibbles(line) : low_nibbles(line);
  // The first of the bits wanted is to become bit 4.
  if constexpr (Column<kType>::kLayout.bit_lines == 2) {
    return add_bits(nibbles, shift_bytes<4 - 2 * kLine>(bits), 0x30);
  } else if constexpr (Column<kType>::kLayout.bit_lines == 1) {
    return add_bits(nibbles, shift_bytes<(kHigh ? 0 : 4) - kLine>(bits), 0x10);
  } else {
    return nibbles;
  }
}

/// The share of a tile in prefetching the next columns: each `every`-th block from `first`, which
/// is behind the last where there is nothing to do. Tiles take it by reference: compilers copy what
/// they pass on the stack in wide pieces, which wait for the stores that made it, and so for all of
/// the tile before.
struct Prefetch {
  std::size_t ahead, every, first;
};

inline std::int32_t four_inputs(const std::int8_t* q) {
  std::int32_t four;
  __builtin_memcpy(&four, q, sizeof(four));
  return four;
}

// A digit of all activations of a block.
using Digit = std::int8_t (RowBlock::*)[kBlock];

/// dot[r][c] += the weights of four inputs of each column x one digit of those of each row.
template <tensor::DType kType, Digit kDigit, std::size_t kRows, std::size_t kColumns>
[[gnu::always_inline]] inline void add_inputs(Dot (&dot)[kRows][kColumns],
                                              const Ints (&w)[kColumns], const RowBlock* x,
                                              std::size_t input) {
  INCIPIT_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    const Ints four = repeat_int(four_inputs((x[r].*kDigit) + input));
    INCIPIT_UNROLL
    for (std::size_t c = 0; c < kColumns; ++c) dot[r][c] = dot_add<kType>(dot[r][c], w[c], four);
  }
}

/// Adds one digit of what a line of nibbles has of a part of one block.
template <tensor::DType kType, Digit kDigit, std::size_t kPart, int kLine, std::size_t kRows,
          std::size_t kColumns>
[[gnu::always_inline]] inline void dot_nibbles(Dot (&dot)[kRows][kColumns],
                                               const Column<kType> (&w)[kColumns],
                                               const Ints (&bits)[kColumns], const RowBlock* x,
                                               std::size_t block) {
  Ints line[kColumns], operand[kColumns];
  INCIPIT_UNROLL
  for (std::size_t c = 0; c < kColumns; ++c) line[c] = w[c].line(block, kLine);
  if constexpr (kPart == 0) {
    INCIPIT_UNROLL
    for (std::size_t c = 0; c < kColumns; ++c) {
      operand[c] = codes_of_line<kType, kLine, false>(line[c], bits[c]);
    }
    add_inputs<kType, kDigit>(dot, operand, x, 4 * kLine);
  }
  if constexpr (kPart + 1 == Column<kType>::kParts) {
    INCIPIT_UNROLL
    for (std::size_t c = 0; c < kColumns; ++c) {
      operand[c] = codes_of_line<kType, kLine, true>(line[c], bits[c]);
    }
    add_inputs<kType, kDigit>(dot, operand, x, 16 + 4 * kLine);
  }
}

/// Adds one digit of a part of one block.
template <tensor::DType kType, Digit kDigit, std::size_t kPart, std::size_t kRows,
          std::size_t kColumns>
[[gnu::always_inline]] inline void dot_digit(Dot (&dot)[kRows][kColumns],
                                             const Column<kType> (&w)[kColumns], const RowBlock* x,
                                             std::size_t block) {
  if constexpr (!Column<kType>::kNibbles) {
    INCIPIT_UNROLL
    for (std::size_t l = 0; l < Column<kType>::kLayout.code_lines; ++l) {
      Ints operand[kColumns];
      INCIPIT_UNROLL
      for (std::size_t c = 0; c < kColumns; ++c) {
        operand[c] = dot_operand<kType>(w[c].line(block, l));
      }
      add_inputs<kType, kDigit>(dot, operand, x, 4 * l);
    }
  } else {
    Ints bits[kColumns] = {};
    if constexpr (Column<kType>::kLayout.bit_lines > 0) {
      INCIPIT_UNROLL
      for (std::size_t c = 0; c < kColumns; ++c) bits[c] = w[c].bits(block, kPart);
    }
    dot_nibbles<kType, kDigit, kPart, 0>(dot, w, bits, x, block);
    dot_nibbles<kType, kDigit, kPart, 1>(dot, w, bits, x, block);
    if constexpr (Column<kType>::kLayout.bit_lines > 0) make_room(dot);
    dot_nibbles<kType, kDigit, kPart, 2>(dot, w, bits, x, block);
    dot_nibbles<kType, kDigit, kPart, 3>(dot, w, bits, x, block);
  }
}

/// Minus the sum of a digit over a part of a block.
template <Digit kDigit, std::size_t kParts, std::size_t kPart>
inline std::int32_t minus_digits(const RowBlock& x) {
  constexpr bool kHigh = kDigit == &RowBlock::high;
  const std::int32_t all = kHigh ? x.minus_high : x.minus_low;
  const std::int32_t tail = kHigh ? x.minus_high_tail : x.minus_low_tail;
  if constexpr (kParts == 1) return all;
  return kPart == 0 ? all - tail : tail;
}

/// sum += one digit of a part of one block, in units of that digit; the sums so far count 128
/// times.
template <tensor::DType kType, Digit kDigit, std::size_t kPart, std::size_t kRows,
          std::size_t kColumns>
[[gnu::always_inline]] inline void next_digit(Ints (&sum)[kRows][kColumns],
                                              const Column<kType> (&w)[kColumns], const RowBlock* x,
                                              std::size_t block) {
  constexpr bool kFirst = kDigit == &RowBlock::high;
  Dot dot[kRows][kColumns];
  INCIPIT_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    const Ints offset = offset_sum<kType>(minus_digits<kDigit, Column<kType>::kParts, kPart>(x[r]));
    INCIPIT_UNROLL
    for (std::size_t c = 0; c < kColumns; ++c) {
      dot[r][c] = dot_start(kFirst ? offset : add_ints(shift_digit(sum[r][c]), offset));
    }
  }
  dot_digit<kType, kDigit, kPart>(dot, w, x, block);
  INCIPIT_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    INCIPIT_UNROLL
    for (std::size_t c = 0; c < kColumns; ++c) sum[r][c] = dot_sum<kType>(dot[r][c]);
  }
}

template <std::size_t kRows>
[[gnu::always_inline]] inline bool any_fine(const RowBlock* x) {
  std::uint32_t fine = 0;
  INCIPIT_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) fine |= x[r].fine;
  return fine != 0;
}

template <tensor::DType kType, std::size_t kColumns>
struct Columns {
  Column<kType> w[kColumns];
};

/// The same columns, whose codes the compiler must not take for those that it has unpacked: kept
/// for a second digit, they would drive the sums out of the registers.
template <tensor::DType kType, std::size_t kColumns>
[[gnu::always_inline]] inline Columns<kType, kColumns> read_again(
    const Column<kType> (&w)[kColumns]) {
  Columns<kType, kColumns> again;
  INCIPIT_UNROLL
  for (std::size_t c = 0; c < kColumns; ++c) {
    again.w[c] = w[c];
    asm("" : "+r"(again.w[c].quants));
  }
  return again;
}

/// out += a part of one block, without the minima.
template <tensor::DType kType, std::size_t kPart, std::size_t kRows, std::size_t kColumns>
[[gnu::always_inline]] inline void add_part(Floats (&out)[kRows][kColumns],
                                            const Column<kType> (&w)[kColumns], const RowBlock* x,
                                            std::size_t block, bool fine) {
  Ints sum[kRows][kColumns];
  Floats scale[kColumns];
  next_digit<kType, &RowBlock::high, kPart>(sum, w, x, block);
  INCIPIT_UNROLL
  for (std::size_t c = 0; c < kColumns; ++c) scale[c] = w[c].scale(block, kPart);
  if (fine) {
    next_digit<kType, &RowBlock::low, kPart>(sum, read_again(w).w, x, block);
    INCIPIT_UNROLL
    for (std::size_t c = 0; c < kColumns; ++c) scale[c] = scale_low(scale[c]);
  }
  INCIPIT_UNROLL
  for (std::size_t c = 0; c < kColumns; ++c) {
    INCIPIT_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) {
      out[r][c] = add_scaled(out[r][c], scale[c], repeat_float(x[r].d), sum[r][c]);
    }
  }
}

/// out += one block.
template <tensor::DType kType, std::size_t kRows, std::size_t kColumns>
[[gnu::always_inline]] inline void add_block(Floats (&out)[kRows][kColumns],
                                             const Column<kType> (&w)[kColumns], const RowBlock* x,
                                             std::size_t block) {
  const bool fine = any_fine<kRows>(x);
  add_part<kType, 0>(out, w, x, block, fine);
  if constexpr (Column<kType>::kParts == 2) add_part<kType, 1>(out, w, x, block, fine);
  if constexpr (Column<kType>::kMinimum) {
    INCIPIT_UNROLL
    for (std::size_t c = 0; c < kColumns; ++c) {
      const Floats minimum = w[c].minimum(block);
      INCIPIT_UNROLL
      for (std::size_t r = 0; r < kRows; ++r) {
        const Floats s = repeat_float(x[r].s);
        out[r][c] = Column<kType>::kFactors ? subtract_product(out[r][c], minimum, s)
                                            : add_product(out[r][c], minimum, s);
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
                   std::size_t first_row, const Prefetch& prefetch) {
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
  const std::size_t ahead = prefetch.ahead, every = prefetch.every;
  std::size_t next = prefetch.first;
  for (std::size_t b = 0; b < blocks; ++b, x += kRows) {
    if (b == next) {
      next += every;
      INCIPIT_UNROLL
      for (std::size_t c = 0; c < kColumns; ++c) w[c].prefetch(b, ahead);
    }
    add_block<kType>(sum, w, x, b);
  }
  store_tile(part, first_column, first_row, sum);
}

/// All rows x kColumns columns, which come from memory once and stay in cache from group to group.
template <tensor::DType kType, std::size_t kColumns>
void multiply_columns(const ProductPart& part, std::size_t first_column) {
  using Tile =
      void (*)(const ProductPart&, std::size_t, const RowBlock*, std::size_t, const Prefetch&);
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
  Prefetch prefetch = {kPanels * part.weight->panel_bytes(), groups.count, stream ? blocks : 0};
  for (std::size_t g = 0, row = 0; g < groups.count; ++g) {
    const std::size_t next = groups.begin(g + 1);
    kTiles[next - row - 1](part, first_column, part.quantized + row * blocks, row, prefetch);
    row = next;
    if (!stream) ++prefetch.first;
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
