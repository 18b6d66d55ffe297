// SPDX-License-Identifier: Apache-2.0
// The operands and the arithmetic of wgmma (PTX ISA, section "Asynchronous Warpgroup Level Matrix
// Instructions": register fragments, shared memory matrix layouts, matrix descriptors).
#include <algorithm>
#include <bit>
#include <cstring>

#include "simt/sanitizers.h"
#include "simt/scheduler.h"
#include "simt/sixteen_bits.h"

namespace incipit::simt {
namespace {

constexpr unsigned kRows = 64, kDepth = 16;
constexpr unsigned kChunk = 8;                  // values of 16 bytes
constexpr std::uint32_t kPoison = 0xffbadbadu;  // a NaN that no arithmetic gives

/// A matrix descriptor of 128-byte swizzle: rows of 128 bytes, by eights, whose 16-byte chunks are
/// permuted by address bits 7 to 9.
class SwizzledMatrix {
 public:
  SwizzledMatrix(std::uint64_t descriptor, Site site)
      : start_(field(descriptor, 0)),
        leading_(field(descriptor, 16)),
        stride_(field(descriptor, 32)),
        site_(site) {
    if (descriptor >> 62 != 1 || (descriptor >> 49 & 7) != 0) {
      Scheduler::running().fail(
          {"wgmma: of descriptors only those of 128-byte swizzle at base 0 are emulated", site});
    }
  }

  /// 8 values from column k of row r: K-major.
  void along_k(unsigned r, unsigned k, std::uint16_t* values) const {
    read(start_ + r / 8 * stride_ + r % 8 * 128 + k * 2, values);
  }
  /// 8 values from row r of column k: MN-major.
  void along_rows(unsigned r, unsigned k, std::uint16_t* values) const {
    read(start_ + r / 64 * leading_ + r % 64 * 2 + k / 8 * stride_ + k % 8 * 128, values);
  }

 private:
  static std::uint32_t field(std::uint64_t descriptor, unsigned bit) {
    return static_cast<std::uint32_t>(descriptor >> bit & 0x3fff) << 4;
  }

  void read(std::uint32_t address, std::uint16_t* values) const {
    Scheduler& scheduler = Scheduler::running();
    const unsigned char* const there = scheduler.shared().at(swizzled(address), 16);
    if (there == nullptr) {
      scheduler.fail({"wgmma: a descriptor leads out of shared memory", site_});
    }
    const int writer = scheduler.shared().unfenced_writer(there, 16);
    if (writer >= 0) {
      scheduler.fail({"wgmma: reads what thread ", static_cast<unsigned>(writer),
                      " has stored without fence.proxy.async", site_});
    }
    std::memcpy(values, there, 16);
  }

  std::uint32_t start_, leading_, stride_;
  Site site_;
};

}  // namespace

void IssuedProduct::gather(GroupOperands& now) const {
  const GroupProduct& what = parts[0].product;
  {
    const OverlookRaces overlook;
    now.a.resize(kRows * kDepth);
    now.b.resize(std::size_t{kDepth} * what.columns);
  }
  std::uint16_t values[kChunk];
  if (parts[0].a == nullptr) {
    const SwizzledMatrix matrix(what.a, site);
    for (unsigned row = 0; row < kRows; ++row) {
      for (unsigned k = 0; k < kDepth; k += kChunk) {
        matrix.along_k(row, k, &now.a[row * kDepth + k]);
      }
    }
  } else {
    for (unsigned i = 0; i < kGroupLanes; ++i) {
      for (unsigned j = 0; j < 4; ++j) {
        const unsigned row = i / 32 * 16 + i % 32 / 4 + j % 2 * 8, k = i % 4 * 2 + j / 2 * 8;
        now.a[row * kDepth + k] = static_cast<std::uint16_t>(parts[i].a[j]);
        now.a[row * kDepth + k + 1] = static_cast<std::uint16_t>(parts[i].a[j] >> 16);
      }
    }
  }
  const SwizzledMatrix matrix(what.b, site);
  for (unsigned i = 0; i < kDepth * what.columns / kChunk; ++i) {
    if (what.rows_of_b) {
      const unsigned k = i % kDepth, column = i / kDepth * kChunk;
      matrix.along_rows(column, k, &now.b[k * what.columns + column]);
    } else {
      const unsigned column = i / 2, k = i % 2 * kChunk;
      matrix.along_k(column, k, values);
      for (unsigned j = 0; j < kChunk; ++j) now.b[(k + j) * what.columns + column] = values[j];
    }
  }
}

/// Calls visit(register, index into values).
template <class Visit>
void Accumulator::for_each_register(const Visit& visit) const {
  for (unsigned i = 0; i < kGroupLanes; ++i) {
    for (unsigned j = 0; j < columns / 2; ++j) {
      const unsigned row = i / 32 * 16 + i % 32 / 4 + j / 2 % 2 * 8;
      visit(registers[i][j], row * columns + j / 4 * 8 + i % 4 * 2 + j % 2);
    }
  }
}

void Accumulator::read() {
  values.resize(std::size_t{kRows} * columns);
  for_each_register([&](float& there, unsigned index) { values[index] = there; });
}

void Accumulator::poison() const {
  for_each_register([](float& there, unsigned) { there = std::bit_cast<float>(kPoison); });
}

bool Accumulator::is_poisoned() const {
  bool poisoned = true;
  for_each_register([&](const float& there, unsigned) {
    poisoned = poisoned && std::bit_cast<std::uint32_t>(there) == kPoison;
  });
  return poisoned;
}

void Accumulator::deliver() const {
  for_each_register([&](float& there, unsigned index) { there = values[index]; });
}

void Accumulator::add(Element type, const GroupOperands& operands) {
  const OverlookRaces overlook;
  const auto value = [&](std::uint16_t bits) {
    return type == Element::kF16 ? from_f16(bits) : from_bf16(bits);
  };
  std::vector<float> b(operands.b.size()), sums(columns);
  std::transform(operands.b.begin(), operands.b.end(), b.begin(), value);
  for (unsigned row = 0; row < kRows; ++row) {
    std::fill(sums.begin(), sums.end(), 0.0f);
    for (unsigned k = 0; k < kDepth; ++k) {
      const float a = value(operands.a[row * kDepth + k]);
      const float* const from = &b[std::size_t{k} * columns];
      for (unsigned n = 0; n < columns; ++n) sums[n] += a * from[n];
    }
    for (unsigned n = 0; n < columns; ++n) values[row * columns + n] += sums[n];
  }
}

}  // namespace incipit::simt
