// SPDX-License-Identifier: Apache-2.0
// Included inside the regions of the kernels: products of weights that are floats. Each output is
// one chain of additions, ascending along K; the rows and panels of a tile hide its latency. What
// a step of the chain takes is up to `Operands`:
//
//   kInputs               inputs of a step
//   Weights, Input        a step's weights of a panel, its inputs of a row in every lane
//   row(part, r)          where row r begins
//   weights(panel, step), input(row, step), add(sum, weights, input)

/// One input a step, multiplied in F32.
template <tensor::DType kType>
struct FloatOperands {
  static constexpr std::size_t kInputs = 1;
  using Weights = F16x;
  using Input = F16x;

  static const float* row(const ProductPart& part, std::size_t r) { return part.x.row(r); }
  static Weights weights(const std::byte* panel, std::size_t k) {
    if constexpr (kType == tensor::DType::kF32) {
      return load(reinterpret_cast<const float*>(panel) + k * kPanelOutputs);
    } else if constexpr (kType == tensor::DType::kF16) {
      return load_f16(reinterpret_cast<const std::uint16_t*>(panel) + k * kPanelOutputs);
    } else {
      const auto* const pairs = reinterpret_cast<const std::uint16_t*>(panel);
      return load_bf16_of_pairs(pairs + k / 2 * 2 * kPanelOutputs, k % 2 != 0);
    }
  }
  static Input input(const float* row, std::size_t k) { return set1(row[k]); }
  static F16x add(F16x sum, Weights w, Input x) { return fma(w, x, sum); }
};

/// kRows rows x kPanels panels.
template <class Operands, std::size_t kRows, std::size_t kPanels>
void multiply_float_tile(const ProductPart& part, std::size_t first_panel, std::size_t first_row) {
  const std::byte* w[kPanels];
  decltype(Operands::row(part, 0)) x[kRows];
  F16x sum[kRows][kPanels];
  INCIPIT_UNROLL
  for (std::size_t p = 0; p < kPanels; ++p) {
    w[p] = part.weight->panel(first_panel + p);
  }
  INCIPIT_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    x[r] = Operands::row(part, first_row + r);
    INCIPIT_UNROLL
    for (std::size_t p = 0; p < kPanels; ++p) sum[r][p] = zero();
  }
  const std::size_t panel_bytes = part.weight->panel_bytes();
  const std::size_t steps = (part.weight->columns() + Operands::kInputs - 1) / Operands::kInputs;
  const std::size_t step_bytes = panel_bytes / steps;
  for (std::size_t step = 0; step < steps; ++step) {
    typename Operands::Weights weights[kPanels];
    INCIPIT_UNROLL
    for (std::size_t p = 0; p < kPanels; ++p) {
      prefetch_l2(w[p] + kPanels * panel_bytes + step * step_bytes);
      weights[p] = Operands::weights(w[p], step);
    }
    INCIPIT_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) {
      const typename Operands::Input input = Operands::input(x[r], step);
      INCIPIT_UNROLL
      for (std::size_t p = 0; p < kPanels; ++p) {
        sum[r][p] = Operands::add(sum[r][p], weights[p], input);
      }
    }
  }
  INCIPIT_UNROLL
  for (std::size_t p = 0; p < kPanels; ++p) {
    const std::size_t n = (first_panel + p) * kPanelOutputs;
    const std::size_t left = part.weight->rows() - n;
    const std::size_t outputs = left < kPanelOutputs ? left : kPanelOutputs;
    const F16x bias = part.bias == nullptr ? zero() : load_first(part.bias + n, outputs);
    INCIPIT_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) {
      float* const out = part.out.row(first_row + r) + n;
      store_first(out, part.bias == nullptr ? sum[r][p] : add(sum[r][p], bias), outputs);
    }
  }
}

/// kRows rows x the panels [begin, end), as many at a time as the registers hold.
template <class Operands, std::size_t kRows>
void multiply_float_rows(const ProductPart& part, std::size_t begin, std::size_t end,
                         std::size_t row) {
  constexpr std::size_t kPanels = kFloatTilePanels[kRows - 1];
  for (; begin + kPanels <= end; begin += kPanels) {
    multiply_float_tile<Operands, kRows, kPanels>(part, begin, row);
  }
  for (; begin < end; ++begin) multiply_float_tile<Operands, kRows, 1>(part, begin, row);
}

template <class Operands>
void product_float(const ProductPart& part) {
  using Rows = void (*)(const ProductPart&, std::size_t, std::size_t, std::size_t);
  static constexpr Rows kRowFunctions[kTileRows] = {
      multiply_float_rows<Operands, 1>, multiply_float_rows<Operands, 2>,
      multiply_float_rows<Operands, 3>, multiply_float_rows<Operands, 4>,
      multiply_float_rows<Operands, 5>, multiply_float_rows<Operands, 6>,
  };
  constexpr std::size_t kPanelsInCache = 4;  // stay there while the row groups go by
  const RowGroups groups(part.x.rows, kTileRows);
  for (std::size_t p = part.panel_begin; p < part.panel_end; p += kPanelsInCache) {
    const std::size_t left = part.panel_end - p;
    const std::size_t end = p + (left < kPanelsInCache ? left : kPanelsInCache);
    for (std::size_t g = 0; g < groups.count; ++g) {
      kRowFunctions[groups.size(g) - 1](part, p, end, groups.begin(g));
    }
  }
}
