// SPDX-License-Identifier: Apache-2.0
// Products bit for bit: each path against the arithmetic that it promises, written out here.
#include <algorithm>
#include <limits>
#include <utility>

#include "cpu/kernel_fixture.h"
#include "support/catch.h"
#include "support/weight_types.h"

using namespace incipit;
using namespace incipit::testing;
using tensor::DType;
using test::kFloatTypes;
using test::kQuantizedTypes;
using test::kWeightTypes;
using test::whole_blocks;

namespace {

std::vector<float> multiply(const cpu::Kernels& kernels, const cpu::PackedWeight& weight,
                            const std::vector<float>& x, const std::vector<float>& bias = {}) {
  const tensor::ConstMatrix rows = view(x, weight.columns());
  std::vector<cpu::RowBlock> quantized;
  if (tensor::is_quantized(weight.type())) quantized = quantize(kernels, rows);
  std::vector<float> out(rows.rows * weight.rows(), 12345.0f);
  kernels.product({.weight = &weight,
                   .bias = bias.empty() ? nullptr : bias.data(),
                   .x = rows,
                   .quantized = quantized.data(),
                   .out = view(out, weight.rows()),
                   .panel_begin = 0,
                   .panel_end = weight.panels()});
  return out;
}

// The contract of quantized_rows.h, from the file's codes.
float contract(DType type, const std::byte* row, const cpu::RowBlock* x, std::size_t columns) {
  float out = 0.0f;
  for (std::size_t b = 0; b < columns / 32; ++b) {
    const tensor::Codes w = tensor::read_codes(type, row, b);
    const std::size_t part = type == DType::kQ6_K ? 16 : 32;  // that has a scale of its own
    for (std::size_t begin = 0; begin < 32; begin += part) {
      int dot = 0;
      for (std::size_t k = begin; k < begin + part; ++k) {
        dot += (w.q[k] - tensor::code_offset(type)) * integer_of(x[b], k);
      }
      const float scale = tensor::f16_to_f32(w.d) * static_cast<float>(w.scale_factor[begin / 16]);
      out = std::fma(scale * (x[b].d / 128.0f), static_cast<float>(dot), out);
    }
    if (tensor::has_minimum(type)) out = std::fma(w.minimum(type), x[b].s, out);
  }
  return out;
}

std::vector<float> contract(DType type, const std::vector<std::byte>& weight, std::size_t columns,
                            const std::vector<float>& x) {
  const std::size_t row_bytes = tensor::row_bytes(type, columns);
  const auto blocks = quantize(cpu::scalar_kernels(), view(x, columns));
  std::vector<float> out;
  for (std::size_t row = 0; row < x.size() / columns; ++row) {
    for (std::size_t n = 0; n < weight.size() / row_bytes; ++n) {
      out.push_back(contract(type, weight.data() + n * row_bytes,
                             blocks.data() + row * (columns / 32), columns));
    }
  }
  return out;
}

// Where a block of the type has its f16 numbers: from this byte to that.
std::pair<std::size_t, std::size_t> scales_of(DType type) {
  if (type == DType::kQ6_K) return {208, 210};
  return {0, tensor::has_minimum(type) ? 4 : 2};
}

std::string describe(const KernelPath& path, DType type) {
  return path.name + " " + std::string(tensor::name(type));
}

}  // namespace

TEST_CASE("integer products have the bits of their contract on every path") {
  std::mt19937 random(1);
  for (const DType type : kQuantizedTypes) {
    for (const std::size_t least : {32u, 64u, 160u, 576u}) {
      const std::size_t columns = whole_blocks(type, least);
      for (const std::size_t outputs : {1u, 7u, 8u, 9u, 15u, 16u, 17u, 31u, 32u, 33u, 80u}) {
        const auto bytes = random_weight(random, type, outputs, columns);
        const auto x = random_floats(random, 9 * columns);
        const auto expected = contract(type, bytes, columns, x);
        for (const KernelPath& path : kernel_paths()) {
          CAPTURE(describe(path, type), columns, outputs);
          const TestWeight weight(*path.kernels, type, outputs, columns, bytes);
          CHECK(same_bits(multiply(*path.kernels, *weight, x), expected));
        }
      }
    }
  }
}

TEST_CASE("integer products stay exact where sums of 16 bits would overflow") {
  std::mt19937 random(2);
  const std::size_t columns = 1024, outputs = 18;
  for (const DType type : kQuantizedTypes) {
    for (const int byte : {0x00, 0x7f, 0x80, 0x81, 0xff}) {
      auto bytes = random_weight(random, type, outputs, columns);
      const auto [scales, scales_end] = scales_of(type);
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        const std::size_t at = i % tensor::block_bytes(type);
        if (at < scales || at >= scales_end) bytes[i] = static_cast<std::byte>(byte);
      }
      // The largest digits of one sign and of both. Fine, in two blocks that stand out of a row of
      // zeros: 127 and 0, 127 and -64, 126 and 63. Not fine, in a block of small values: 127.
      const float top = 127.0f * 128.0f;
      std::vector<float> x;
      for (const float value : {top, top - 64.0f, top - 65.0f}) {
        for (const float odd : {1.0f, -1.0f}) {
          std::vector<float> row(columns, 0.0f);
          for (std::size_t k = 0; k < 96; ++k) row[k] = k % 2 == 0 ? value : odd * value;
          row[32] = row[64] = top;
          for (std::size_t k = 0; k < 32; ++k) row[k] *= 0x1p-10f;
          x.insert(x.end(), row.begin(), row.end());
        }
      }
      const auto blocks = quantize(cpu::scalar_kernels(), view(x, columns));
      for (std::size_t b = 0; b < 3; ++b) CHECK(blocks[b].fine == (b == 0 ? 0 : 1));
      const auto expected = contract(type, bytes, columns, x);
      for (const KernelPath& path : kernel_paths()) {
        CAPTURE(describe(path, type), byte);
        const TestWeight weight(*path.kernels, type, outputs, columns, bytes);
        CHECK(same_bits(multiply(*path.kernels, *weight, x), expected));
      }
    }
  }
}

TEST_CASE("float products are one ascending chain per output, fused on the fast paths") {
  std::mt19937 random(3);
  for (const DType type : kFloatTypes) {
    for (const std::size_t columns : {1u, 3u, 33u, 200u}) {
      for (const std::size_t outputs : {1u, 15u, 16u, 17u, 47u, 64u, 65u, 130u}) {
        const auto bytes = random_weight(random, type, outputs, columns);
        const auto x = random_floats(random, 8 * columns);
        std::vector<float> fused, plain, w(columns);
        for (std::size_t row = 0; row < 8; ++row) {
          for (std::size_t n = 0; n < outputs; ++n) {
            tensor::dequantize_row(type, bytes.data() + n * tensor::row_bytes(type, columns), w);
            float a = 0.0f, b = 0.0f;
            for (std::size_t k = 0; k < columns; ++k) {
              a = std::fma(w[k], x[row * columns + k], a);
              b = w[k] * x[row * columns + k] + b;
            }
            fused.push_back(a);
            plain.push_back(b);
          }
        }
        for (const KernelPath& path : kernel_paths()) {
          CAPTURE(describe(path, type), columns, outputs);
          const TestWeight weight(*path.kernels, type, outputs, columns, bytes);
          const auto out = multiply(*path.kernels, *weight, x);
          CHECK(same_bits(out, path.name == "scalar" ? plain : fused));
        }
      }
    }
  }
}

TEST_CASE("a row of a product has the same bits among any number of rows") {
  std::mt19937 random(4);
  const std::size_t outputs = 70;
  for (const DType type : kWeightTypes) {
    const std::size_t columns = whole_blocks(type, 96);
    const auto bytes = random_weight(random, type, outputs, columns);
    const auto x = random_floats(random, 512 * columns);
    for (const KernelPath& path : kernel_paths()) {
      const TestWeight weight(*path.kernels, type, outputs, columns, bytes);
      const auto all = multiply(*path.kernels, *weight, x);
      std::vector<std::size_t> counts = {64, 511};
      for (std::size_t rows = 1; rows <= 40; ++rows) counts.push_back(rows);
      for (const std::size_t rows : counts) {
        CAPTURE(describe(path, type), rows);
        // The last rows, so that a row's place changes too.
        const std::vector<float> some(x.end() - static_cast<std::ptrdiff_t>(rows * columns),
                                      x.end());
        CHECK(
            same_bits(multiply(*path.kernels, *weight, some), std::span(all).last(rows * outputs)));
      }
    }
  }
}

TEST_CASE("a product adds its bias and writes its outputs and nothing else") {
  std::mt19937 random(5);
  const std::size_t outputs = 55, rows = 7, stride = 60;
  for (const DType type : kWeightTypes) {
    const std::size_t columns = whole_blocks(type, 64);
    const auto bytes = random_weight(random, type, outputs, columns);
    const auto x = random_floats(random, rows * columns);
    const auto bias = random_floats(random, outputs);
    for (const KernelPath& path : kernel_paths()) {
      const TestWeight weight(*path.kernels, type, outputs, columns, bytes);
      const auto plain = multiply(*path.kernels, *weight, x);
      const auto quantized = quantize(*path.kernels, view(x, columns));
      const std::size_t panel_outputs = path.kernels->panel_outputs;
      for (const auto& [begin, end] : {std::pair<std::size_t, std::size_t>{0, 1},
                                       {1, (*weight).panels()},
                                       {1, 3},
                                       {0, (*weight).panels()}}) {
        std::vector<float> out(rows * stride, -7.0f);
        path.kernels->product({.weight = &*weight,
                               .bias = bias.data(),
                               .x = view(x, columns),
                               .quantized = quantized.data(),
                               .out = {out.data(), rows, outputs, stride},
                               .panel_begin = begin,
                               .panel_end = end});
        bool right = true;
        for (std::size_t row = 0; row < rows; ++row) {
          for (std::size_t n = 0; n < stride; ++n) {
            const bool ours = n < outputs && n / panel_outputs >= begin && n / panel_outputs < end;
            const float expected = ours ? plain[row * outputs + n] + bias[n] : -7.0f;
            right = right && out[row * stride + n] == expected;
          }
        }
        CAPTURE(describe(path, type), begin, end);
        CHECK(right);
      }
    }
  }
}

TEST_CASE("a damaged activation or scale shows in its own row or output only") {
  std::mt19937 random(6);
  const std::size_t outputs = 20, rows = 3;
  const float infinity = std::numeric_limits<float>::infinity();
  for (const DType type : kQuantizedTypes) {
    const std::size_t columns = whole_blocks(type, 64);
    for (const float damage : {infinity, -infinity, std::nanf("")}) {
      auto bytes = random_weight(random, type, outputs, columns);
      auto x = random_floats(random, rows * columns);
      for (const KernelPath& path : kernel_paths()) {
        CAPTURE(describe(path, type), damage);
        const TestWeight healthy(*path.kernels, type, outputs, columns, bytes);
        const auto expected = multiply(*path.kernels, *healthy, x);
        auto damaged_x = x;
        damaged_x[columns + 40] = damage;
        const auto out = multiply(*path.kernels, *healthy, damaged_x);
        CHECK(same_bits(std::span(out).first(outputs), std::span(expected).first(outputs)));
        CHECK(same_bits(std::span(out).last(outputs), std::span(expected).last(outputs)));
        for (std::size_t n = 0; n < outputs; ++n) CHECK(std::isnan(out[outputs + n]));

        auto damaged_bytes = bytes;
        const std::uint16_t bits = tensor::f32_to_f16(damage);
        const std::size_t place = 2 * tensor::row_bytes(type, columns) + scales_of(type).first;
        std::memcpy(damaged_bytes.data() + place, &bits, 2);
        const TestWeight damaged(*path.kernels, type, outputs, columns, damaged_bytes);
        const auto y = multiply(*path.kernels, *damaged, x);
        for (std::size_t i = 0; i < y.size(); ++i) {
          if (i % outputs == 2) {
            CHECK(!std::isfinite(y[i]));
          } else {
            CHECK(y[i] == expected[i]);
          }
        }
      }
    }
  }
}
