// SPDX-License-Identifier: Apache-2.0
#include "cpu/cpu_device.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/machine.h"
#include "base/target.h"
#include "base/thread_pool.h"
#include "cpu/attention.h"
#include "cpu/kernels.h"
#include "cpu/memory.h"
#include "cpu/packed_weight.h"
#include "cpu/quantized_rows.h"

namespace incipit::cpu {
namespace {

using device::Buffer;
using device::KvPoolView;
using device::Product;
using tensor::DType;

// Goes up with every change of the bits that a kernel gives or of the KV order.
constexpr int kRevision = 4;

// Up to this many rows each thread quantises for itself: it costs less than waiting for the others.
constexpr std::size_t kOwnRows = 16;
// Elements of a simple operation that are worth waking a thread.
constexpr std::size_t kWorthAThread = 16384;

// Of a weight's file that are in memory at a time while it is packed.
constexpr std::size_t kLoadBytes = std::size_t{4} << 20;
// Panels are shared out in pairs, which the kernels take at a time.
constexpr std::size_t kPanelsTogether = 2;

struct Path {
  CpuPath path;
  const char* name;
  std::optional<Kernels> kernels;  // none: this machine cannot run them
  base::CpuFeatures features;      // what of the machine's the path uses
};

Path choose_path(CpuPath asked, Activations activations, const base::CpuFeatures& machine) {
  Path paths[] = {{CpuPath::kAvx512, "avx512", {}, machine},
                  {CpuPath::kAvx2, "avx2", {}, {.avx2 = machine.avx2}},
                  {CpuPath::kScalar, "scalar", scalar_kernels(), {}}};
#if INCIPIT_CPU_X86
  if (machine.avx512) {
    paths[0].kernels = avx512::kernels();
    const bool rounds = activations != Activations::kFloat;
    if (rounds && machine.uses_bf16_dots()) avx512::use_bf16_dots(*paths[0].kernels);
  }
  if (machine.avx2) paths[1].kernels = avx2::kernels();
#endif
  for (const Path& path : paths) {
    if (asked != CpuPath::kAuto && asked != path.path) continue;
    if (path.kernels) return path;
    if (asked == path.path) {
      base::throw_error(ErrorCode::kInvalidArgument,
                        "this machine cannot run the CPU path " + std::string(path.name) +
                            "; ask for kAuto, which takes the fastest that it can");
    }
  }
  base::throw_error(ErrorCode::kInvalidArgument, "unknown CPU path");
}

template <class T>
tensor::MatrixView<T> rows_of(tensor::MatrixView<T> matrix, std::size_t begin, std::size_t end) {
  return {matrix.row(begin), end - begin, matrix.columns, matrix.stride};
}

bool same_shape(ConstMatrix a, ConstMatrix b) { return a.rows == b.rows && a.columns == b.columns; }

const PackedWeight& packed(const device::Weight& weight) {
  return static_cast<const PackedWeight&>(weight);  // made by make_weight() of this device
}

/// Which blocks of activations get a second digit: those whose largest magnitude is above 2 or 6
/// times the row's root mean square. Measured on SmolLM2-135M: docs/numerics.md.
float fine_ratio(Activations activations) noexcept {
  return activations == Activations::kMixed ? 4.0f : 36.0f;
}

const char* name(Activations activations) noexcept {
  switch (activations) {
    case Activations::kMixed:
      return "/mixed/";
    case Activations::kInt8:
      return "/int8/";
    case Activations::kFloat:
      break;
  }
  return "/float/";
}

/// What products read of an input besides its floats; see ProductPart.
struct PreparedRows {
  RowBlock* quantized = nullptr;
  std::uint16_t* rounded = nullptr;
};

constexpr std::size_t aligned(std::size_t bytes) noexcept { return (bytes + 63) / 64 * 64; }

class CpuDevice final : public device::Device {
 public:
  CpuDevice(const Path& path, Activations activations, unsigned threads)
      : kernels_(*path.kernels),
        features_(path.features),
        integers_(activations != Activations::kFloat),
        fine_ratio_(fine_ratio(activations)),
        pool_(threads) {
    info_.numerics = std::string("cpu/") + path.name + name(activations) +
                     attention_numerics(features_) + "/" + std::to_string(kRevision);
    info_.threads = threads;
    info_.host_memory = true;
    info_.default_kv_type =
        features_.avx512_bf16 ? device::KvFormat::kBF16 : device::KvFormat::kF16;
    info_.plan = attention_plan_options(threads);
  }

  const device::DeviceInfo& info() const noexcept override { return info_; }

  Buffer allocate(std::size_t bytes) override { return allocate_pages(bytes); }
  void upload(base::Bytes from, std::byte* to) override {
    if (!from.empty()) std::memcpy(to, from.data(), from.size());
  }
  void download(const std::byte* from, std::span<std::byte> to) override {
    if (!to.empty()) std::memcpy(to.data(), from, to.size());
  }

  std::unique_ptr<device::Weight> make_weight(DType type, std::size_t rows, std::size_t columns,
                                              ReadRows read) override;
  void embed(const device::Weight& table, std::span<const std::int32_t> ids, float scale,
             Matrix out) override;
  void rms_norm(ConstMatrix x, std::span<const float> weight, float epsilon, Matrix out) override;
  void layer_norm(ConstMatrix x, std::span<const float> weight, std::span<const float> bias,
                  float epsilon, Matrix out) override;
  void matmul(ConstMatrix x, std::span<const Product> products) override;
  void add(Matrix x, ConstMatrix y) override;
  void rope(Matrix x, std::size_t head_dim, ConstMatrix angles, device::RopePairs pairs) override;
  void activate(device::Activation activation, ConstMatrix gate, ConstMatrix up,
                Matrix out) override;
  void soft_cap(Matrix x, float cap) override;
  void append_kv(const KvPoolView& pool, std::size_t layer, ConstMatrix k, ConstMatrix v,
                 std::span<const device::KvSlot> slots) override;
  void attention(const KvPoolView& pool, const device::AttentionParams& params,
                 const device::AttentionPlan& plan, ConstMatrix q, Matrix out) override;
  void gather_rows(ConstMatrix x, std::span<const std::uint32_t> rows, Matrix out) override;
  void for_each_on_host(std::size_t count, base::FunctionRef<void(std::size_t)> work) override {
    pool_.for_each(count, [&](std::size_t item, unsigned) { work(item); });
  }
  void copy_block(const KvPoolView& pool, device::BlockId from, device::BlockId to) override;

 private:
  /// Calls work(begin, end) on ranges of rows that are worth a thread.
  template <class Work>
  void for_rows(std::size_t rows, std::size_t columns, const Work& work) {
    pool_.for_ranges(
        rows, std::max<std::size_t>(1, kWorthAThread / std::max<std::size_t>(1, columns)), work);
  }
  void pack_panels(PackedWeight& weight, DType type, std::size_t first, std::size_t last,
                   const std::byte* bytes);
  std::byte* scratch(std::size_t bytes);
  void prepare(ConstMatrix x, std::size_t first_group, std::size_t last_group, PreparedRows out);
  void multiply_panels(ConstMatrix x, std::span<const Product> products, PreparedRows prepared,
                       std::size_t begin, std::size_t end) const;

  const Kernels kernels_;
  const base::CpuFeatures features_;
  const bool integers_;     // quantised weights meet integers
  const float fine_ratio_;  // see quantized_rows.h
  base::ThreadPool pool_;
  device::DeviceInfo info_;
  WeightArena arena_;
  Buffer scratch_;  // prepared rows
  AttentionScratch attention_scratch_;
};

std::unique_ptr<device::Weight> CpuDevice::make_weight(DType type, std::size_t rows,
                                                       std::size_t columns, ReadRows read) {
  const bool expand = tensor::is_quantized(type) && !integers_;
  auto weight = std::make_unique<PackedWeight>(expand ? DType::kF32 : type, rows, columns,
                                               kernels_.panel_outputs, arena_);
  const std::size_t row_bytes = tensor::row_bytes(type, columns);
  const std::size_t panel_bytes = std::max<std::size_t>(1, kernels_.panel_outputs * row_bytes);
  const std::size_t step = std::max<std::size_t>(1, kLoadBytes / panel_bytes);
  std::vector<std::byte> slice;
  for (std::size_t panel = 0; panel < weight->panels(); panel += step) {
    const std::size_t end = std::min(panel + step, weight->panels());
    const std::size_t first_row = weight->first_row(panel);
    slice.resize((std::min(rows, weight->first_row(end)) - first_row) * row_bytes);
    read(slice);
    pack_panels(*weight, type, panel, end, slice.data());
  }
  return weight;
}

/// Packs panels [begin, end) from their rows, of `type`.
void CpuDevice::pack_panels(PackedWeight& weight, DType type, std::size_t first, std::size_t last,
                            const std::byte* bytes) {
  const bool expand = weight.type() != type;
  const std::size_t columns = weight.columns(), row_bytes = tensor::row_bytes(type, columns);
  pool_.for_ranges(last - first, 1, [&](std::size_t begin, std::size_t end) {
    std::vector<float> floats(expand ? kernels_.panel_outputs * columns : 0);
    for (std::size_t p = first + begin; p < first + end; ++p) {
      const std::byte* panel_rows =
          bytes + (weight.first_row(p) - weight.first_row(first)) * row_bytes;
      if (expand) {
        for (std::size_t r = 0; r < weight.row_count(p); ++r) {
          tensor::dequantize_row(type, panel_rows + r * row_bytes,
                                 std::span(floats).subspan(r * columns, columns));
        }
        panel_rows = std::as_bytes(std::span(floats)).data();
      }
      weight.pack(p, panel_rows);
    }
  });
}

void CpuDevice::embed(const device::Weight& table, std::span<const std::int32_t> ids, float scale,
                      Matrix out) {
  INCIPIT_CHECK(out.rows == ids.size() && out.columns == table.columns());
  for (const std::int32_t id : ids) {
    INCIPIT_CHECK(id >= 0 && static_cast<std::size_t>(id) < table.rows());
  }
  for_rows(out.rows, out.columns, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      const std::span<float> values(out.row(row), out.columns);
      packed(table).unpack_row(static_cast<std::size_t>(ids[row]), values);
      for (float& value : values) value *= scale;
    }
  });
}

void CpuDevice::rms_norm(ConstMatrix x, std::span<const float> weight, float epsilon, Matrix out) {
  INCIPIT_CHECK(same_shape(x, out) && weight.size() == x.columns);
  for_rows(x.rows, x.columns, [&](std::size_t begin, std::size_t end) {
    kernels_.rms_norm(rows_of(x, begin, end), weight.data(), epsilon, rows_of(out, begin, end));
  });
}

void CpuDevice::layer_norm(ConstMatrix x, std::span<const float> weight,
                           std::span<const float> bias, float epsilon, Matrix out) {
  INCIPIT_CHECK(same_shape(x, out) && weight.size() == x.columns && bias.size() == x.columns);
  for_rows(x.rows, x.columns, [&](std::size_t begin, std::size_t end) {
    kernels_.layer_norm(rows_of(x, begin, end), weight.data(), bias.data(), epsilon,
                        rows_of(out, begin, end));
  });
}

/// Room for so many bytes; what was there is lost.
std::byte* CpuDevice::scratch(std::size_t bytes) {
  if (scratch_.bytes() < bytes) {
    scratch_ = Buffer();
    scratch_ = allocate_pages(bytes);
  }
  return scratch_.data();
}

void CpuDevice::prepare(ConstMatrix x, std::size_t first_group, std::size_t last_group,
                        PreparedRows out) {
  if (out.quantized != nullptr) {
    kernels_.quantize_groups(x, fine_ratio_, first_group, last_group, out.quantized);
  }
  if (out.rounded != nullptr) {
    const RowGroups groups(x.rows, kernels_.group_rows);
    kernels_.round_rows(x, groups.begin(first_group), groups.begin(last_group), out.rounded);
  }
}

std::size_t panels_of(std::span<const Product> products) {
  std::size_t panels = 0;
  for (const Product& product : products) panels += packed(*product.weight).panels();
  return panels;
}

/// Panels [begin, end) of all products, laid end to end: they follow each other in memory.
void CpuDevice::multiply_panels(ConstMatrix x, std::span<const Product> products,
                                PreparedRows prepared, std::size_t begin, std::size_t end) const {
  std::size_t first = 0;  // panel of this product
  for (const Product& product : products) {
    const PackedWeight& weight = packed(*product.weight);
    const std::size_t part_begin = std::max(begin, first);
    const std::size_t part_end = std::min(end, first + weight.panels());
    if (part_begin < part_end) {
      kernels_.product({.weight = &weight,
                        .bias = product.bias.empty() ? nullptr : product.bias.data(),
                        .x = x,
                        .quantized = prepared.quantized,
                        .rounded = prepared.rounded,
                        .out = product.out,
                        .panel_begin = part_begin - first,
                        .panel_end = part_end - first});
    }
    first += weight.panels();
  }
}

void CpuDevice::matmul(ConstMatrix x, std::span<const Product> products) {
  bool quantized = false, rounded = false;
  for (const Product& product : products) {
    const PackedWeight& weight = packed(*product.weight);
    INCIPIT_CHECK(weight.columns() == x.columns && product.out.columns == weight.rows());
    INCIPIT_CHECK(product.out.rows == x.rows);
    INCIPIT_CHECK(product.bias.empty() || product.bias.size() == weight.rows());
    quantized |= tensor::is_quantized(weight.type());
    rounded |= weight.type() == DType::kBF16 && kernels_.round_rows != nullptr;
  }
  if (x.rows == 0) return;

  const std::size_t blocks = quantized ? x.rows * (x.columns / kBlock) : 0;
  const std::size_t values = rounded ? x.rows * rounded_columns(x.columns) : 0;
  const std::size_t quantized_bytes = aligned(blocks * sizeof(RowBlock));
  const std::size_t bytes = quantized_bytes + aligned(values * sizeof(std::uint16_t));
  const auto rows_at = [&](std::byte* memory) {
    PreparedRows rows;
    if (quantized) rows.quantized = reinterpret_cast<RowBlock*>(memory);
    if (rounded) rows.rounded = reinterpret_cast<std::uint16_t*>(memory + quantized_bytes);
    return rows;
  };
  const RowGroups groups(x.rows, kernels_.group_rows);
  base::Shares shares(panels_of(products), kPanelsTogether, pool_.members());
  const auto multiply = [&](unsigned member, PreparedRows prepared) {
    shares.take(member, [&](std::size_t begin, std::size_t end) {
      multiply_panels(x, products, prepared, begin, end);
    });
  };
  if (x.rows <= kOwnRows) {
    std::byte* const memory = scratch(bytes * pool_.members());
    pool_.run([&](unsigned member) {
      const PreparedRows own = rows_at(memory + member * bytes);
      prepare(x, 0, groups.count, own);
      multiply(member, own);
    });
    return;
  }
  const PreparedRows all = rows_at(scratch(bytes));
  if (bytes > 0) {
    pool_.for_ranges(groups.count, 1,
                     [&](std::size_t begin, std::size_t end) { prepare(x, begin, end, all); });
  }
  pool_.run([&](unsigned member) { multiply(member, all); });
}

void CpuDevice::add(Matrix x, ConstMatrix y) {
  INCIPIT_CHECK(same_shape(x, y));
  for_rows(x.rows, x.columns, [&](std::size_t begin, std::size_t end) {
    kernels_.add(rows_of(x, begin, end), rows_of(y, begin, end));
  });
}

void CpuDevice::rope(Matrix x, std::size_t head_dim, ConstMatrix angles, device::RopePairs pairs) {
  INCIPIT_CHECK(head_dim > 0 && x.columns % head_dim == 0);
  INCIPIT_CHECK(angles.rows == x.rows && angles.columns % 2 == 0 && angles.columns <= head_dim);
  for_rows(x.rows, x.columns, [&](std::size_t begin, std::size_t end) {
    kernels_.rope(rows_of(x, begin, end), head_dim, rows_of(angles, begin, end), pairs);
  });
}

void CpuDevice::activate(device::Activation activation, ConstMatrix gate, ConstMatrix up,
                         Matrix out) {
  const bool gated = up.data != nullptr;
  INCIPIT_CHECK(same_shape(gate, out) && (!gated || same_shape(up, out)));
  for_rows(out.rows, out.columns, [&](std::size_t begin, std::size_t end) {
    kernels_.activate(activation, rows_of(gate, begin, end),
                      gated ? rows_of(up, begin, end) : ConstMatrix{}, rows_of(out, begin, end));
  });
}

void CpuDevice::soft_cap(Matrix x, float cap) {
  INCIPIT_CHECK(cap > 0.0f);
  for_rows(x.rows, x.columns, [&](std::size_t begin, std::size_t end) {
    kernels_.soft_cap(rows_of(x, begin, end), cap);
  });
}

void CpuDevice::append_kv(const KvPoolView& pool, std::size_t layer, ConstMatrix k, ConstMatrix v,
                          std::span<const device::KvSlot> slots) {
  const device::KvShape& shape = pool.layout.shape();
  INCIPIT_CHECK(same_shape(k, v) && k.rows == slots.size() && layer < shape.layers);
  INCIPIT_CHECK(k.columns == shape.kv_heads * shape.head_dim);
  INCIPIT_CHECK(shape.type == device::KvFormat::kF32 || shape.head_dim % 2 == 0);
  for (const device::KvSlot& slot : slots) {
    INCIPIT_CHECK(slot.block < pool.blocks && slot.offset < device::kBlockTokens);
  }
  for_rows(k.rows, k.columns, [&](std::size_t begin, std::size_t end) {
    kernels_.append_kv(pool, layer, rows_of(k, begin, end), rows_of(v, begin, end),
                       slots.data() + begin);
  });
}

void CpuDevice::attention(const KvPoolView& pool, const device::AttentionParams& params,
                          const device::AttentionPlan& plan, ConstMatrix q, Matrix out) {
  cpu::attention(attention_kernel(features_, pool.layout.shape()), {pool, params, &plan, q, out},
                 pool_, attention_scratch_);
}

void CpuDevice::gather_rows(ConstMatrix x, std::span<const std::uint32_t> rows, Matrix out) {
  INCIPIT_CHECK(out.rows == rows.size() && out.columns == x.columns);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    INCIPIT_CHECK(rows[i] < x.rows);
    std::copy_n(x.row(rows[i]), x.columns, out.row(i));
  }
}

void CpuDevice::copy_block(const KvPoolView& pool, device::BlockId from, device::BlockId to) {
  INCIPIT_CHECK(from < pool.blocks && to < pool.blocks && from != to);
  std::memcpy(pool.block(to), pool.block(from), pool.layout.block_bytes());
}

}  // namespace

std::unique_ptr<device::Device> make_cpu_device(const CpuDeviceOptions& options) {
  const Path path = choose_path(options.path, options.activations, base::cpu_features());
  const unsigned threads = options.threads > 0 ? options.threads : base::available_cpus();
  return std::make_unique<CpuDevice>(path, options.activations, threads);
}

}  // namespace incipit::cpu
