// SPDX-License-Identifier: Apache-2.0
// Included by kernels_avx2.cpp and kernels_avx512.cpp inside their regions: products of weights
// that are floats. Each output is one chain of fused additions, ascending along K; the rows and
// panels of a tile hide its latency.

/// The weights of one input for the 16 outputs of a panel.
template <tensor::DType kType>
inline F16x load_weights(const std::byte* panel, std::size_t k) {
  if constexpr (kType == tensor::DType::kF32) {
    return load(reinterpret_cast<const float*>(panel) + k * kPanelOutputs);
  } else if constexpr (kType == tensor::DType::kF16) {
    return load_f16(reinterpret_cast<const std::uint16_t*>(panel) + k * kPanelOutputs);
  } else {
    return load_bf16(reinterpret_cast<const std::uint16_t*>(panel) + k * kPanelOutputs);
  }
}

/// kRows rows x kPanels panels.
template <tensor::DType kType, std::size_t kRows, std::size_t kPanels>
void multiply_float_tile(const ProductPart& part, std::size_t first_panel, std::size_t first_row) {
  const std::byte* w[kPanels];
  const float* x[kRows];
  F16x sum[kRows][kPanels];
  INCIPIT_UNROLL
  for (std::size_t p = 0; p < kPanels; ++p) {
    w[p] = part.weight->panel(first_panel + p);
  }
  INCIPIT_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    x[r] = part.x.row(first_row + r);
    INCIPIT_UNROLL
    for (std::size_t p = 0; p < kPanels; ++p) sum[r][p] = zero();
  }
  const std::size_t panel_bytes = part.weight->panel_bytes();
  const std::size_t input_bytes = panel_bytes / part.weight->columns();
  for (std::size_t k = 0; k < part.weight->columns(); ++k) {
    F16x weights[kPanels];
    INCIPIT_UNROLL
    for (std::size_t p = 0; p < kPanels; ++p) {
      prefetch_l2(w[p] + kPanels * panel_bytes + k * input_bytes);
      weights[p] = load_weights<kType>(w[p], k);
    }
    INCIPIT_UNROLL
    for (std::size_t r = 0; r < kRows; ++r) {
      const F16x input = set1(x[r][k]);
      INCIPIT_UNROLL
      for (std::size_t p = 0; p < kPanels; ++p) sum[r][p] = fma(weights[p], input, sum[r][p]);
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
template <tensor::DType kType, std::size_t kRows>
void multiply_float_rows(const ProductPart& part, std::size_t begin, std::size_t end,
                         std::size_t row) {
  constexpr std::size_t kPanels = kFloatTilePanels[kRows - 1];
  for (; begin + kPanels <= end; begin += kPanels) {
    multiply_float_tile<kType, kRows, kPanels>(part, begin, row);
  }
  for (; begin < end; ++begin) multiply_float_tile<kType, kRows, 1>(part, begin, row);
}

template <tensor::DType kType>
void product_float(const ProductPart& part) {
  using Rows = void (*)(const ProductPart&, std::size_t, std::size_t, std::size_t);
  static constexpr Rows kRowFunctions[kTileRows] = {
      multiply_float_rows<kType, 1>, multiply_float_rows<kType, 2>, multiply_float_rows<kType, 3>,
      multiply_float_rows<kType, 4>, multiply_float_rows<kType, 5>, multiply_float_rows<kType, 6>,
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
