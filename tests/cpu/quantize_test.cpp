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
  int sum = 0;
  for (const std::int16_t q : block.q) sum += q;
  CHECK(block.offset_8 == -8 * sum);
  CHECK(block.offset_128 == -128 * sum);
  if (!std::isnan(block.d)) CHECK(block.s == block.d * static_cast<float>(sum));
}

// One block, on every path the same.
cpu::RowBlock quantize_one(const std::vector<float>& x) {
  const auto paths = kernel_paths();
  const cpu::RowBlock first = quantize(*paths[0].kernels, view(x, 32))[0];
  for (const KernelPath& path : paths) {
    CAPTURE(path.name);
    const cpu::RowBlock block = quantize(*path.kernels, view(x, 32))[0];
    CHECK(std::equal(std::begin(block.q), std::end(block.q), std::begin(first.q)));
    CHECK(same_bits(std::span(&block.d, 1), std::span(&first.d, 1)));
    CHECK(same_bits(std::span(&block.s, 1), std::span(&first.s, 1)));
    check_consistent(block);
  }
  return first;
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
      CHECK(std::abs(x[i] - block.d * static_cast<float>(block.q[i % 32])) <= 0.51f * block.d);
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
    path.kernels->quantize_groups(view(x, 32), 1, 3, part.data());
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
      {-32767.0f, -32767}, {0.5f, 0}, {1.5f, 2}, {-2.5f, -2}, {32766.5f, 32766}, {-255.0f, -255}};
  std::vector<float> x(32, 0.0f);
  for (std::size_t i = 0; i < cases.size(); ++i) x[i] = cases[i].first;
  const cpu::RowBlock block = quantize_one(x);
  CHECK(block.d == 1.0f);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    CHECK(block.q[i] == cases[i].second);
  }
}

TEST_CASE("zeros and what is too small to matter count as zero") {
  for (const float top : {0.0f, -0.0f, 1e-45f, 1e-38f, 0x1p-101f}) {
    const cpu::RowBlock block = quantize_one(std::vector<float>(32, top));
    CHECK(block.d == 0.0f);
    CHECK(block.s == 0.0f);
    for (const std::int16_t q : block.q) CHECK(q == 0);
  }
  const cpu::RowBlock least = quantize_one(std::vector<float>(32, cpu::kTinyActivation));
  CHECK(least.q[31] == cpu::kLargestInteger);
  CHECK(least.d > 0.0f);
}

TEST_CASE("the largest floats are quantised like all others") {
  std::vector<float> x(32, std::numeric_limits<float>::max());
  x[5] = -x[5] / 2;
  const cpu::RowBlock block = quantize_one(x);
  CHECK(std::isfinite(block.d));
  CHECK(block.q[0] == cpu::kLargestInteger);
  CHECK(block.q[5] == -16384);  // -16383.5
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
      for (const std::int16_t q : block.q) CHECK(q == 0);
    }
  }
}
