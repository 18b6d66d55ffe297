// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_device.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/machine.h"
#include "base/thread_pool.h"
#include "cuda/host_array.h"
#include "cuda/kernels/append_kv.cuh"
#include "cuda/kernels/attention.cuh"
#include "cuda/kernels/layer_norm.cuh"
#include "cuda/kernels/rms_norm.cuh"
#include "cuda/kernels/rope.cuh"
#include "cuda/launch/attention.h"
#include "cuda/launch/rows.h"
#include "cuda/launch/weights.h"
#include "cuda/products.h"
#include "cuda/runtime.h"
#include "cuda/step_queue.h"
#include "cuda/transfers.h"
#include "cuda/workspace.h"

namespace incipit::cuda {
namespace {

using device::Buffer;
using device::ConstMatrix;
using device::KvFormat;
using device::KvPoolView;
using device::Matrix;
using device::Product;
using tensor::DType;

// Goes up with every change of the bits that a kernel gives or of the KV order.
constexpr int kRevision = 1;

// Of a weight's file that are in memory at a time while it is loaded.
constexpr std::size_t kLoadBytes = std::size_t{4} << 20;
constexpr std::size_t kTileRows = 8;  // that are packed together
constexpr std::uint32_t kSegmentTokens = 256;

bool same_shape(ConstMatrix a, ConstMatrix b) { return a.rows == b.rows && a.columns == b.columns; }

class CudaDevice final : public device::Device {
 public:
  CudaDevice(std::shared_ptr<Runtime> runtime, Activations activations, unsigned threads,
             GpuMath math)
      : runtime_(std::move(runtime)),
        floats_(activations == Activations::kFloat),
        math_{math == GpuMath::kFast, runtime_->properties().architecture},
        compute_(runtime_->make_stream()),
        transfers_(*runtime_, compute_),
        queue_(*runtime_, compute_),
        ids_(*runtime_, queue_),
        slots_(*runtime_, queue_),
        plan_(*runtime_, queue_),
        rows_(*runtime_, queue_),
        workspace_(*runtime_, queue_),
        products_(*runtime_, queue_, math_, workspace_),
        pool_(threads) {
    const DeviceProperties& gpu = runtime_->properties();
    info_.numerics = "cuda/" + gpu.arithmetic + (floats_ ? "/float" : "/16-bit") +
                     (math_.fast ? "/fast/" : "/exact/") + std::to_string(kRevision);
    info_.exact = !math_.fast;
    info_.threads = threads;
    info_.default_kv_type = has_bf16() ? KvFormat::kBF16 : KvFormat::kF16;
    info_.plan.segment_tokens = kSegmentTokens;
    info_.plan.wanted_items = gpu.multiprocessors;
    start_kernel();
  }

  const device::DeviceInfo& info() const noexcept override { return info_; }
  void check_kv(const device::KvShape& shape) const override;
  std::size_t spare_bytes() override { return runtime_->free_memory() / 4 * 3; }

  Buffer allocate(std::size_t bytes) override {
    Buffer buffer = runtime_->allocate(bytes);
    if (bytes > 0) runtime_->fill(compute_, buffer.data(), std::byte{0}, bytes);
    return buffer;
  }
  void upload(base::Bytes from, std::byte* to) override { transfers_.upload(from, to); }
  void download(const std::byte* from, std::span<std::byte> to) override {
    transfers_.download(from, to);
  }

  using Device::make_weight;
  std::unique_ptr<device::Weight> make_weight(DType type, std::size_t rows, std::size_t columns,
                                              ReadRows read) override;
  void embed(const device::Weight& table, std::span<const std::int32_t> ids, float scale,
             Matrix out) override;
  void rms_norm(ConstMatrix x, std::span<const float> weight, float epsilon, Matrix out) override;
  void layer_norm(ConstMatrix x, std::span<const float> weight, std::span<const float> bias,
                  float epsilon, Matrix out) override;
  void matmul(ConstMatrix x, std::span<const Product> products) override {
    products_.multiply(x, products);
  }
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
  void for_each_on_host(std::size_t items, base::FunctionRef<void(std::size_t)> work) override {
    pool_.for_each(items, [&](std::size_t item, unsigned) { work(item); });
  }
  void copy_block(const KvPoolView& pool, device::BlockId from, device::BlockId to) override;
  void begin_step(std::size_t rows) override {
    queue_.begin(rows);
    for (HostArray* const array : {&ids_, &slots_, &plan_, &rows_}) array->begin();
  }
  void end_step() override { queue_.end(); }
  void finish() override {
    queue_.flush();
    runtime_->synchronize(compute_);
  }

 private:
  bool has_bf16() const noexcept { return runtime_->properties().architecture >= 80; }
  void start_kernel();
  template <class Params>
  void launch(void (*kernel)(Stream, const Params&), const Params& params) {
    queue_.launch([kernel, params](void* native) { kernel(static_cast<Stream>(native), params); });
  }

  const std::shared_ptr<Runtime> runtime_;
  const bool floats_;  // weights expanded to f32
  const Math math_;
  const StreamRef compute_;
  Transfers transfers_;
  StepQueue queue_;
  HostArray ids_, slots_, plan_, rows_;
  Workspace workspace_;
  Products products_;
  base::ThreadPool pool_;
  device::DeviceInfo info_;
};

/// Whether there is machine code for this GPU shows when the first kernel starts.
void CudaDevice::start_kernel() {
  const Buffer memory = allocate(sizeof(float));
  auto* const value = memory.as<float>().data();
  add({value, 1, 1, 1}, {value, 1, 1, 1});
  runtime_->synchronize(compute_);
}

void CudaDevice::check_kv(const device::KvShape& shape) const {
  const bool arithmetic = shape.type == KvFormat::kF16 || has_bf16();
  if (arithmetic && has_attention(shape.type, shape.head_dim)) return;
  base::throw_error(ErrorCode::kInvalidArgument,
                    "there are no CUDA kernels for attention over " +
                        std::string(device::name(shape.type)) + " with a head size of " +
                        std::to_string(shape.head_dim) + " on " + runtime_->properties().name +
                        "; ask for another KvType, or for DeviceKind::kCpu");
}

std::unique_ptr<device::Weight> CudaDevice::make_weight(DType type, std::size_t rows,
                                                        std::size_t columns, ReadRows read) {
  const WeightKind kind = floats_ ? WeightKind::kF32 : kind_of(type, has_bf16());
  const std::size_t row_bytes = tensor::row_bytes(type, columns);
  auto weight = std::make_unique<CudaWeight>(kind, rows, columns,
                                             allocate(weight_bytes(kind, rows, columns)));
  const std::size_t tile_bytes = weight_bytes(kind, kTileRows, columns);
  const std::size_t step = std::max<std::size_t>(1, kLoadBytes / tile_bytes) * kTileRows;
  std::vector<std::byte> slice, packed;
  for (std::size_t first = 0; first < rows; first += step) {
    const std::size_t part = std::min(step, rows - first);
    slice.resize(part * row_bytes);
    read(slice);
    packed.assign(weight_bytes(kind, part, columns), std::byte{0});
    pool_.for_ranges((part + kTileRows - 1) / kTileRows, 1,
                     [&](std::size_t begin, std::size_t end) {
                       const std::size_t row = begin * kTileRows;
                       const std::size_t count = std::min(end * kTileRows, part) - row;
                       pack_weight(kind, type, count, columns,
                                   std::span(slice).subspan(row * row_bytes, count * row_bytes),
                                   std::span(packed).subspan(weight_bytes(kind, row, columns),
                                                             weight_bytes(kind, count, columns)));
                     });
    upload(packed, weight->data() + weight_bytes(kind, first, columns));
  }
  return weight;
}

void CudaDevice::embed(const device::Weight& table, std::span<const std::int32_t> ids, float scale,
                       Matrix out) {
  INCIPIT_CHECK(out.rows == ids.size() && out.columns == table.columns());
  for (const std::int32_t id : ids) {
    INCIPIT_CHECK(id >= 0 && static_cast<std::size_t>(id) < table.rows());
  }
  const auto* const there = reinterpret_cast<const std::int32_t*>(ids_.bring({std::as_bytes(ids)}));
  queue_.launch([view = loaded(table).view(), there, scale, out](void* native) {
    launch_embed(static_cast<Stream>(native), view, there, scale, out);
  });
}

void CudaDevice::append_kv(const KvPoolView& pool, std::size_t layer, ConstMatrix k, ConstMatrix v,
                           std::span<const device::KvSlot> slots) {
  const device::KvLayout& layout = pool.layout;
  const device::KvShape& shape = layout.shape();
  INCIPIT_CHECK(same_shape(k, v) && k.rows == slots.size() && layer < shape.layers);
  INCIPIT_CHECK(k.columns == shape.kv_heads * shape.head_dim);
  for (const device::KvSlot& slot : slots) {
    INCIPIT_CHECK(slot.block < pool.blocks && slot.offset < device::kBlockTokens);
  }
  check_kv(shape);
  AppendKvParams params;
  params.k = k.data;
  params.v = v.data;
  params.k_stride = stride(k.stride);
  params.v_stride = stride(v.stride);
  params.slots = reinterpret_cast<const device::KvSlot*>(slots_.bring({std::as_bytes(slots)}));
  params.pool = reinterpret_cast<unsigned char*>(pool.data);
  params.block_bytes = stride(layout.block_bytes());
  params.k_offset = stride(layout.k_offset(layer, 0));
  params.v_offset = stride(layout.v_offset(layer, 0));
  params.head_bytes = stride(layout.head_bytes());
  params.rows = count(k.rows);
  params.kv_heads = count(shape.kv_heads);
  params.head_dim = count(shape.head_dim);
  launch(shape.type == KvFormat::kF16    ? &cuda::append_kv<F16>
         : shape.type == KvFormat::kBF16 ? &cuda::append_kv<BF16>
                                         : &cuda::append_kv<std::int8_t>,
         params);
}

void CudaDevice::rms_norm(ConstMatrix x, std::span<const float> weight, float epsilon, Matrix out) {
  INCIPIT_CHECK(same_shape(x, out) && weight.size() == x.columns);
  launch(&cuda::rms_norm<float>, norm_params(x, weight, epsilon, out));
}

void CudaDevice::layer_norm(ConstMatrix x, std::span<const float> weight,
                            std::span<const float> bias, float epsilon, Matrix out) {
  INCIPIT_CHECK(same_shape(x, out) && weight.size() == x.columns && bias.size() == x.columns);
  NormParams<float> params = norm_params(x, weight, epsilon, out);
  params.bias = bias.data();
  launch(&cuda::layer_norm<float>, params);
}

void CudaDevice::add(Matrix x, ConstMatrix y) {
  INCIPIT_CHECK(same_shape(x, y));
  ElementwiseParams<float> params = elementwise_params(x, x);
  params.other = y.data;
  params.other_stride = stride(y.stride);
  launch(&elementwise<float>, params);
}

void CudaDevice::activate(device::Activation activation, ConstMatrix gate, ConstMatrix up,
                          Matrix out) {
  INCIPIT_CHECK(same_shape(gate, out) && (up.data == nullptr || same_shape(up, out)));
  ElementwiseParams<float> params = elementwise_params(gate, out);
  params.other = up.data;
  params.other_stride = stride(up.stride);
  params.multiplies = true;
  params.activation = kernel_of(activation);
  launch(&elementwise<float>, params);
}

void CudaDevice::soft_cap(Matrix x, float cap) {
  INCIPIT_CHECK(cap > 0.0f);
  ElementwiseParams<float> params = elementwise_params(x, x);
  params.activation = Activation::kSoftCap;
  params.cap = cap;
  launch(&elementwise<float>, params);
}

void CudaDevice::rope(Matrix x, std::size_t head_dim, ConstMatrix angles, device::RopePairs pairs) {
  INCIPIT_CHECK(head_dim > 0 && x.columns % head_dim == 0);
  INCIPIT_CHECK(angles.rows == x.rows && angles.columns % 2 == 0 && angles.columns <= head_dim);
  RopeParams<float> params;
  params.x = x.data;
  params.x_stride = stride(x.stride);
  params.angles = angles.data;
  params.angles_stride = stride(angles.stride);
  params.rows = count(x.rows);
  params.heads = count(x.columns / head_dim);
  params.head_dim = count(head_dim);
  params.half = count(angles.columns / 2);
  queue_.launch(
      [params, pairs](void* native) { cuda::rope(static_cast<Stream>(native), params, pairs); });
}

/// Where the plan's vectors lie in memory of the device, in the order in which they were brought.
class BroughtPlan {
 public:
  BroughtPlan(HostArray& array, const device::AttentionPlan& plan, const AttentionTiles& tiles)
      : at_(array.bring({bytes_of(plan.positions), bytes_of(plan.rows), bytes_of(plan.blocks),
                         bytes_of(plan.items), bytes_of(plan.split_index),
                         bytes_of(plan.split_rows), bytes_of(tiles.narrow), bytes_of(tiles.wide),
                         bytes_of(tiles.vector)})) {
    view.positions = take(plan.positions);
    view.rows = take(plan.rows);
    view.blocks = take(plan.blocks);
    view.items = take(plan.items);
    view.split_index = take(plan.split_index);
    view.split_rows = take(plan.split_rows);
    view.split_row_count = count(plan.split_rows.size());
    view.segment_tokens = plan.segment_tokens;
    lists.narrow = take(tiles.narrow);
    lists.wide = take(tiles.wide);
    lists.narrow_count = count(tiles.narrow.size());
    lists.wide_count = count(tiles.wide.size());
    lists.vector = take(tiles.vector);
    lists.vector_count = count(tiles.vector.size());
    lists.vector_rows = tiles.vector_rows;
  }

  AttentionPlanView view = {};
  TileLists lists = {};

 private:
  template <class T>
  static base::Bytes bytes_of(const std::vector<T>& values) {
    return std::as_bytes(std::span(values));
  }
  template <class T>
  const T* take(const std::vector<T>& values) {
    const std::byte* const piece = at_;
    at_ += HostArray::aligned(values.size() * sizeof(T));
    return reinterpret_cast<const T*>(piece);
  }

  const std::byte* at_;
};

void CudaDevice::attention(const KvPoolView& pool, const device::AttentionParams& params,
                           const device::AttentionPlan& plan, ConstMatrix q, Matrix out) {
  const device::KvLayout& layout = pool.layout;
  const device::KvShape& shape = layout.shape();
  INCIPIT_CHECK(same_shape(q, out) && q.rows == plan.positions.size());
  INCIPIT_CHECK(params.layer < shape.layers && params.heads % shape.kv_heads == 0);
  INCIPIT_CHECK(q.columns == params.heads * shape.head_dim);
  INCIPIT_CHECK(plan.window == 0 || (params.window > 0 && params.window <= plan.window));
  check_kv(shape);
  if (q.rows == 0) return;
  const unsigned group = count(params.heads / shape.kv_heads);
  const AttentionTiles tiles(plan, group, count(shape.head_dim), math_.fast);
  const BroughtPlan brought(plan_, plan, tiles);

  Pieces pieces;
  const std::size_t states = plan.states * params.heads;
  const std::size_t sums = pieces.take(states * sizeof(SoftmaxState));
  const std::size_t values = pieces.take(states * shape.head_dim * sizeof(float));
  std::byte* const memory = workspace_.take(pieces.bytes());

  PagedAttentionParams kernel;
  kernel.q = q.data;
  kernel.q_stride = stride(q.stride);
  kernel.out = out.data;
  kernel.out_stride = stride(out.stride);
  kernel.pool = reinterpret_cast<const unsigned char*>(pool.data);
  kernel.block_bytes = stride(layout.block_bytes());
  kernel.k_offset = stride(layout.k_offset(params.layer, 0));
  kernel.v_offset = stride(layout.v_offset(params.layer, 0));
  kernel.head_bytes = stride(layout.head_bytes());
  kernel.plan = brought.view;
  kernel.states = reinterpret_cast<SoftmaxState*>(memory + sums);
  kernel.state_values = reinterpret_cast<float*>(memory + values);
  kernel.heads = count(params.heads);
  kernel.kv_heads = count(shape.kv_heads);
  kernel.head_dim = count(shape.head_dim);
  set_scores(kernel, params.scale, params.soft_cap, params.window,
             params.alibi_slopes.empty() ? nullptr : params.alibi_slopes.data());
  queue_.launch([math = math_, kernel, type = shape.type, lists = brought.lists](void* native) {
    launch_attention(static_cast<Stream>(native), math, type, kernel, lists);
  });
}

void CudaDevice::gather_rows(ConstMatrix x, std::span<const std::uint32_t> rows, Matrix out) {
  INCIPIT_CHECK(out.rows == rows.size() && out.columns == x.columns);
  for (const std::uint32_t row : rows) INCIPIT_CHECK(row < x.rows);
  GatherParams<float, float> params;
  params.table = x.data;
  params.table_stride = stride(x.stride);
  params.ids = reinterpret_cast<const std::int32_t*>(rows_.bring({std::as_bytes(rows)}));
  params.out = out.data;
  params.out_stride = stride(out.stride);
  params.rows = count(out.rows);
  params.columns = count(out.columns);
  launch(&launch_gather, params);
}

void CudaDevice::copy_block(const KvPoolView& pool, device::BlockId from, device::BlockId to) {
  INCIPIT_CHECK(from < pool.blocks && to < pool.blocks && from != to);
  queue_.flush();
  runtime_->copy(compute_, pool.block(from), pool.block(to), pool.layout.block_bytes());
}

}  // namespace

std::unique_ptr<device::Device> make_cuda_device(std::shared_ptr<Runtime> runtime,
                                                 Activations activations, unsigned threads,
                                                 GpuMath math) {
  return std::make_unique<CudaDevice>(std::move(runtime), activations, threads, math);
}

std::unique_ptr<device::Device> open_cuda_device(const CudaDeviceOptions& options) {
  return make_cuda_device(system_driver()->open(options.number), options.activations,
                          options.threads > 0 ? options.threads : base::available_cpus(),
                          options.math);
}

}  // namespace incipit::cuda
