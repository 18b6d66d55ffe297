// SPDX-License-Identifier: Apache-2.0
// ldmatrix and mma.sync, fragment by fragment as the PTX manual lays them out.
#include <algorithm>

#include "simt/device.h"
#include "simt/scheduler.h"
#include "simt/sixteen_bits.h"

namespace incipit::simt {
namespace {

constexpr unsigned kRows = 16, kColumns = 8, kMaxDepth = 16;

struct MatrixLoad {
  std::uint32_t* out;
  const std::uint16_t* values;  // the row that this lane names
  std::uintptr_t address;
  unsigned count;
  bool transposed;
};

void check_conflicts(Meeting& meeting, unsigned matrix) {
  std::uintptr_t addresses[8];
  for (unsigned row = 0; row < 8; ++row) {
    addresses[row] = meeting.payload<MatrixLoad>(matrix * 8 + row).address;
  }
  const unsigned conflicts = bank_conflicts(addresses, 8, 16);
  meeting.machine.counters.bank_conflicts += conflicts;
  if (conflicts > 0 && meeting.machine.options.conflicts_fail) {
    Scheduler::running().fail(
        {"ldmatrix: bank conflict, ", conflicts, " extra passes", meeting.last.site});
  }
}

void execute_matrix_load(Meeting& meeting) {
  const auto& last = meeting.payload<MatrixLoad>(meeting.last.lane);
  ++meeting.machine.counters.matrix_loads;
  for (unsigned matrix = 0; matrix < last.count; ++matrix) {
    check_conflicts(meeting, matrix);
    const std::uint16_t* rows[8];
    for (unsigned row = 0; row < 8; ++row) {
      rows[row] = meeting.payload<MatrixLoad>(matrix * 8 + row).values;
    }
    for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
      const unsigned major = lane / 4, minor = 2 * (lane % 4);
      const std::uint32_t low = last.transposed ? rows[minor][major] : rows[major][minor];
      const std::uint32_t high = last.transposed ? rows[minor + 1][major] : rows[major][minor + 1];
      meeting.payload<MatrixLoad>(lane).out[matrix] = low | high << 16;
    }
  }
}

constexpr WarpOperation kMatrixLoad = {"ldmatrix", true, execute_matrix_load};

struct ProductPart {
  float* d;
  const std::uint32_t* a;
  const std::uint32_t* b;
};

/// The bits of a [16, depth] and b [depth, 8] out of the registers of the lanes.
struct Operands {
  alignas(64) std::uint32_t a[kRows][kMaxDepth];
  alignas(64) std::uint32_t b[kMaxDepth][kColumns];

  Operands(Meeting& meeting, unsigned depth) {
    for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
      const auto& part = meeting.payload<ProductPart>(lane);
      const unsigned group = lane / 4, pair = 2 * (lane % 4);
      for (unsigned i = 0; i < depth / 4; ++i) {
        const unsigned row = group + i % 2 * 8, k = pair + i / 2 * 8;
        a[row][k] = part.a[i] & 0xffffu;
        a[row][k + 1] = part.a[i] >> 16;
      }
      for (unsigned i = 0; i < depth / 8; ++i) {
        b[pair + i * 8][group] = part.b[i] & 0xffffu;
        b[pair + i * 8 + 1][group] = part.b[i] >> 16;
      }
    }
  }
};

template <Element kType, unsigned kDepth>
void execute_product(Meeting& meeting) {
  ++meeting.machine.counters.products;
  const Operands bits(meeting, kDepth);
  const auto value = [](std::uint32_t b) {
    return kType == Element::kF16 ? from_f16(b) : from_bf16(b);
  };
  alignas(64) float b[kDepth][kColumns];
  for (unsigned k = 0; k < kDepth; ++k) {
    for (unsigned n = 0; n < kColumns; ++n) b[k][n] = value(bits.b[k][n]);
  }
  for (unsigned row = 0; row < kRows; ++row) {
    float a[kDepth], sum[kColumns] = {};
    for (unsigned k = 0; k < kDepth; ++k) a[k] = value(bits.a[row][k]);
    for (unsigned k = 0; k < kDepth; ++k) {
      for (unsigned n = 0; n < kColumns; ++n) sum[n] += a[k] * b[k][n];
    }
    for (unsigned n = 0; n < kColumns; ++n) {
      const unsigned lane = row % 8 * 4 + n / 2;
      meeting.payload<ProductPart>(lane).d[row / 8 * 2 + n % 2] += sum[n];
    }
  }
}

constexpr WarpOperation kProducts[] = {
    {"mma of f16, k8", true, execute_product<Element::kF16, 8>},
    {"mma of f16, k16", true, execute_product<Element::kF16, 16>},
    {"mma of bf16, k8", true, execute_product<Element::kBF16, 8>},
    {"mma of bf16, k16", true, execute_product<Element::kBF16, 16>},
};

}  // namespace

bool names_matrix_row(const void* row, unsigned count, Site site) {
  Scheduler& scheduler = Scheduler::running();
  if (scheduler.me().lane >= 8 * count) return false;
  if (reinterpret_cast<std::uintptr_t>(row) % 16 != 0) {
    scheduler.fail({"ldmatrix: misaligned row", site});
  }
  if (!scheduler.shared().contains(row, 16)) {
    scheduler.fail({"ldmatrix: row outside of shared memory", site});
  }
  return true;
}

void exchange_matrix_rows(std::uint32_t* out, const void* row, const std::uint16_t* values,
                          unsigned count, bool transposed, Site site) {
  MatrixLoad part = {out, values, reinterpret_cast<std::uintptr_t>(row), count, transposed};
  Scheduler::running().meet(kMatrixLoad, kFullMask, &part, site);
}

void multiply(Element type, unsigned depth, float* d, const std::uint32_t* a,
              const std::uint32_t* b, Site site) {
  Scheduler& scheduler = Scheduler::running();
  if (scheduler.machine().options.architecture < 80 && (type == Element::kBF16 || depth > 8)) {
    scheduler.fail({"mma of bf16 or with k16 needs sm_80", site});
  }
  ProductPart part = {d, a, b};
  const unsigned index = (type == Element::kBF16 ? 2u : 0u) + (depth == 16 ? 1u : 0u);
  scheduler.meet(kProducts[index], kFullMask, &part, site);
}

}  // namespace incipit::simt
