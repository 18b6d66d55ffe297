// SPDX-License-Identifier: Apache-2.0
// Activations to integers: every path gives what cpu/quantized_rows.h says, bit for bit.
#include <algorithm>
#include <limits>

#include "cpu/kernel_fixture.h"
#include "support/catch.h"

using namespace incipit;
using namespace incipit::testing;

namespace {

// In the order of the rows, whatever groups the path made of them.
std::vector<cpu::RowBlock> in_row_order(const cpu::Kernels& kernels, const std::vector<float>& x,
                                        std::size_t columns) {
  const std::size_t rows = x.size() / columns, blocks = columns / cpu::kBlock;
  const auto grouped = quantize(kernels, view(x, columns));
  const cpu::RowGroups groups(rows, kernels.group_rows);
  std::vector<cpu::RowBlock> out;
  for (std::size_t g = 0; g < groups.count; ++g) {
    for (std::size_t r = 0; r < groups.size(g); ++r) {
      for (std::size_t b = 0; b < blocks; ++b) {
        out.push_back(grouped[groups.begin(g) * blocks + b * groups.size(g) + r]);
      }
    }
  }
  return out;
}

void check_consistent(const cpu::RowBlock& block) {
  int high = 0, low = 0, high_tail = 0, low_tail = 0;
  for (std::size_t k = 0; k < 32; ++k) {
    CHECK(block.high[k] >= -127);
    CHECK(std::abs(block.low[k]) <= (block.fine != 0 ? 64 : 0));
    high += block.high[k];
    low += block.low[k];
    high_tail += k < 16 ? 0 : block.high[k];
    low_tail += k < 16 ? 0 : block.low[k];
  }
  CHECK(block.fine <= 1);
  CHECK(block.minus_high == -high);
  CHECK(block.minus_low == -low);
  CHECK(block.minus_high_tail == -high_tail);
  CHECK(block.minus_low_tail == -low_tail);
  const float unit = block.d / 128.0f;
  if (!std::isnan(block.d)) CHECK(block.s == unit * static_cast<float>(128 * high + low));
}

// Which blocks get which digits: one row, on every path the same.
std::vector<cpu::RowBlock> quantize_row(const std::vector<float>& x) {
  const tensor::ConstMatrix row = view(x, x.size());
  const std::vector<cpu::RowBlock> first = quantize(cpu::scalar_kernels(), row);
  for (const KernelPath& path : kernel_paths()) {
    CAPTURE(path.name);
    const std::vector<cpu::RowBlock> blocks = quantize(*path.kernels, row);
    REQUIRE(blocks.size() == first.size());
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      check_consistent(blocks[b]);
      cpu::RowBlock same = blocks[b];
      if (std::isnan(same.d)) same.d = same.s = first[b].d;  // whatever NaN it is
      cpu::RowBlock expected = first[b];
      if (std::isnan(expected.d)) expected.s = expected.d;
      CHECK(std::memcmp(&same, &expected, sizeof(same)) == 0);
    }
  }
  return first;
}

cpu::RowBlock quantize_one(const std::vector<float>& x) { return quantize_row(x)[0]; }

// As the first block of a row of zeros, out of which it stands.
cpu::RowBlock quantize_fine(std::vector<float> x) {
  x.resize(32 * 16, 0.0f);
  const cpu::RowBlock block = quantize_one(x);
  CHECK(block.fine == 1);
  return block;
}

}  // namespace

TEST_CASE("row groups cover all rows and differ by one at most") {
  for (std::size_t rows = 1; rows < 100; ++rows) {
    const cpu::RowGroups groups(rows, 6);
    CHECK(groups.begin(0) == 0);
    CHECK(groups.begin(groups.count) == rows);
    std::size_t smallest = rows, largest = 0;
    for (std::size_t g = 0; g < groups.count; ++g) {
      smallest = std::min(smallest, groups.size(g));
      largest = std::max(largest, groups.size(g));
    }
    CHECK(largest <= 6);
    CHECK(largest - smallest <= 1);
  }
}

TEST_CASE("quantised rows are the same on every path and close to what they stand for") {
  std::mt19937 random(1);
  for (const std::size_t rows : {1u, 5u, 6u, 7u, 23u}) {
    const std::size_t columns = 96;
    auto x = random_floats(random, rows * columns, 5.0f);
    x[17] = 300.0f;  // an outlier in one block
    const auto expected = in_row_order(cpu::scalar_kernels(), x, columns);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const cpu::RowBlock& block = expected[i / 32];
      const auto q = static_cast<float>(integer_of(block, i % 32));
      const float step = block.fine != 0 ? block.d / 128.0f : block.d;
      CHECK(std::abs(x[i] - block.d / 128.0f * q) <= 0.501f * step);
    }
    for (const KernelPath& path : kernel_paths()) {
      CAPTURE(path.name, rows);
      const auto got = in_row_order(*path.kernels, x, columns);
      REQUIRE(got.size() == expected.size());
      CHECK(std::memcmp(got.data(), expected.data(), got.size() * sizeof(got[0])) == 0);
    }
  }
}

TEST_CASE("quantising a part of the groups writes that part") {
  std::mt19937 random(2);
  const auto x = random_floats(random, 20 * 32);
  for (const KernelPath& path : kernel_paths()) {
    const auto whole = quantize(*path.kernels, view(x, 32));
    const cpu::RowGroups groups(20, path.kernels->group_rows);
    std::vector<cpu::RowBlock> part(20, cpu::RowBlock{});
    path.kernels->quantize_groups(view(x, 32), kFineRatio, 1, 3, part.data());
    for (std::size_t row = 0; row < 20; ++row) {
      CAPTURE(path.name, row);
      const bool written = row >= groups.begin(1) && row < groups.begin(3);
      const cpu::RowBlock expected = written ? whole[row] : cpu::RowBlock{};
      CHECK(std::memcmp(&part[row], &expected, sizeof(expected)) == 0);
    }
  }
}

TEST_CASE("ties round to even and the largest value becomes the largest integer") {
  const std::vector<std::pair<float, int>> cases = {
      {-16256.0f, -16256}, {0.5f, 0},   {1.5f, 2},     {-2.5f, -2},   {16255.5f, 16256},
      {63.0f, 63},         {64.0f, 64}, {-64.0f, -64}, {-65.0f, -65}, {191.5f, 192}};
  std::vector<float> x(32, 0.0f);
  for (std::size_t i = 0; i < cases.size(); ++i) x[i] = cases[i].first;
  const cpu::RowBlock block = quantize_fine(x);
  CHECK(block.d == 128.0f);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    CHECK(integer_of(block, i) == cases[i].second);
  }
  x = {-127.0f, 126.5f, 125.5f, 0.5f, 1.5f, -2.5f, 3.49f};
  for (std::size_t i = 7; i < 32; ++i) x.push_back(100.0f);
  const cpu::RowBlock coarse = quantize_one(x);
  CHECK(coarse.d == 1.0f);
  for (const auto& [k, q] :
       {std::pair(0, -127), {1, 126}, {2, 126}, {3, 0}, {4, 2}, {5, -2}, {6, 3}}) {
    CHECK(integer_of(coarse, static_cast<std::size_t>(k)) == 128 * q);
  }
}

TEST_CASE("a block is fine where it stands out of its row, and only there") {
  // Four blocks of ones; the second has one value that grows. Mean square: (127 + v^2) / 128.
  const auto fine_at = [](float value) {
    std::vector<float> x(128, 1.0f);
    x[40] = value;
    std::vector<bool> fine;
    for (const cpu::RowBlock& block : quantize_row(x)) fine.push_back(block.fine != 0);
    return fine;
  };
  // v^2 = 9 * (127 + v^2) / 128 where v^2 is 1143 / 119 = 9.605.
  CHECK(fine_at(3.099f) == std::vector<bool>(4, false));
  CHECK(fine_at(3.100f) == std::vector<bool>{false, true, false, false});
  CHECK(fine_at(-1000.0f) == std::vector<bool>{false, true, false, false});
}

TEST_CASE("zeros and what is too small to matter count as zero") {
  for (const float top : {0.0f, -0.0f, 1e-45f, 1e-38f, 0x1p-81f}) {
    const cpu::RowBlock block = quantize_one(std::vector<float>(32, top));
    CHECK(block.d == 0.0f);
    CHECK(block.s == 0.0f);
    for (std::size_t k = 0; k < 32; ++k) CHECK(integer_of(block, k) == 0);
  }
  const cpu::RowBlock least = quantize_one(std::vector<float>(32, cpu::kTinyActivation));
  CHECK(integer_of(least, 31) == 128 * cpu::kLargestDigit);
  CHECK(least.d > 0.0f);
}

TEST_CASE("the largest activations are quantised like all others, and those above are damage") {
  std::vector<float> x(32, cpu::kLargestActivation);
  x[5] = -x[5] / 2;
  const cpu::RowBlock block = quantize_one(x);
  CHECK(std::isfinite(block.d));
  CHECK(integer_of(block, 0) == 128 * cpu::kLargestDigit);
  CHECK(integer_of(block, 5) == -128 * 64);  // 63.5 to even
  x[7] *= 1.001f;
  CHECK(std::isnan(quantize_one(x).d));
}

TEST_CASE("an infinity or a NaN anywhere in a block makes its scale NaN") {
  for (const float damage : {std::numeric_limits<float>::infinity(),
                             -std::numeric_limits<float>::infinity(), std::nanf("")}) {
    for (std::size_t at = 0; at < 32; ++at) {
      std::vector<float> x(32, 1.0f);
      x[at] = damage;
      const cpu::RowBlock block = quantize_one(x);
      CHECK(std::isnan(block.d));
      CHECK(std::isnan(block.s));
      for (std::size_t k = 0; k < 32; ++k) CHECK(integer_of(block, k) == 0);
    }
  }
}
