// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_DEVICE_DEVICE_H_
#define INCIPIT_DEVICE_DEVICE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/function_ref.h"
#include "device/attention_plan.h"
#include "device/kv_layout.h"
#include "tensor/dtype.h"
#include "tensor/view.h"

// The seam between the forward pass and what computes it. A device offers about fifteen coarse
// operations over plain views; they run in the order of the calls. Activations are f32 at the seam.
//
// The rule that every implementation keeps (docs/guarantees.md): a row's result depends on that
// row's inputs only, never on how many rows are computed with it or on the number of threads.

namespace incipit::device {

using tensor::ConstMatrix;
using tensor::Matrix;

/// Memory of a device. Freed when it goes.
class Buffer {
 public:
  using Free = void (*)(void* data, std::size_t bytes) noexcept;

  Buffer() = default;
  Buffer(void* data, std::size_t bytes, Free free) noexcept
      : data_(data), bytes_(bytes), free_(free) {}
  ~Buffer() { reset(); }
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    if (this != &other) reset();
    swap(other);
    return *this;
  }

  std::byte* data() const noexcept { return static_cast<std::byte*>(data_); }
  std::size_t bytes() const noexcept { return bytes_; }
  template <class T>
  std::span<T> as() const noexcept {
    return {static_cast<T*>(data_), bytes_ / sizeof(T)};
  }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(free_, other.free_);
  }
  void reset() noexcept {
    if (data_ != nullptr) free_(data_, bytes_);
    data_ = nullptr;
    bytes_ = 0;
  }

  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  Free free_ = nullptr;
};

/// A weight matrix [rows (outputs), columns (inputs)] in the layout that the device's kernels want.
class Weight {
 public:
  virtual ~Weight() = default;
  std::size_t rows() const noexcept { return rows_; }
  std::size_t columns() const noexcept { return columns_; }

 protected:
  Weight(std::size_t rows, std::size_t columns) : rows_(rows), columns_(columns) {}

 private:
  std::size_t rows_, columns_;
};

/// One of several products that share their input: out = x * weight^T + bias.
struct Product {
  const Weight* weight = nullptr;
  std::span<const float> bias = {};  // [weight rows] in device memory, or empty
  Matrix out = {};                   // [x rows, weight rows]
};

/// Which elements of a head turn together.
enum class RopePairs {
  kHalves,    // i and i + dim/2 (Hugging Face)
  kAdjacent,  // 2i and 2i + 1 (LLaMA in GGUF)
};

/// What a feed-forward layer bends its inputs with.
enum class Activation {
  kSilu,      // x / (1 + e^-x)
  kGeluTanh,  // x / (1 + e^-2u) = x (1 + tanh u) / 2, u = sqrt(2 / pi) (x + 0.044715 x^3)
  kRelu,      // max(x, 0)
};

/// How one layer's attention scores its keys: score = soft_cap(scale * q.k) + slope * (key -
/// query).
struct AttentionParams {
  std::size_t layer = 0;
  std::size_t heads = 0;  // a multiple of the pool's kv_heads
  float scale = 1.0f;
  float soft_cap = 0.0f;     // cap * tanh(x / cap); 0: none
  std::uint32_t window = 0;  // a row sees the last `window` keys, itself included; 0: all
  std::span<const float> alibi_slopes = {};  // [heads] in device memory, or empty
};

struct DeviceInfo {
  // Names the arithmetic, KV order included. Two devices with equal names give equal bits.
  std::string numerics = {};
  unsigned threads = 1;
  bool exact = true;         // false: how many rows are computed together may show in the last bits
  bool host_memory = false;  // the host reads buffers as they are: no need to download
  KvFormat default_kv_type = KvFormat::kF16;
  PlanOptions plan = {};  // segment_tokens is part of the numerics
};

class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceInfo& info() const noexcept = 0;

  /// Throws Error{kInvalidArgument} where the device cannot keep and read such KV.
  virtual void check_kv(const KvShape&) const {}
  /// Bytes of the device's own memory that a KV pool may take; 0: it has none of its own.
  virtual std::size_t spare_bytes() { return 0; }

  /// Zeroed memory, aligned to 64 bytes; large buffers take physical memory as they are touched.
  /// Throws Error{kOutOfMemory}.
  virtual Buffer allocate(std::size_t bytes) = 0;
  /// These two may be called by any thread at any time, for memory that no operation under way
  /// touches: KV goes to and comes from colder places while steps run.
  virtual void upload(base::Bytes from, std::byte* to) = 0;
  virtual void download(const std::byte* from, std::span<std::byte> to) = 0;

  /// Fills `next` with the bytes of the rows that follow those it gave before.
  using ReadRows = base::FunctionRef<void(std::span<std::byte> next)>;

  /// Repacks a weight, whose rows lie row-major as in the file. Reads them once, a few MiB of whole
  /// rows at a time, so that a model takes little more memory while it loads than later.
  virtual std::unique_ptr<Weight> make_weight(tensor::DType type, std::size_t rows,
                                              std::size_t columns, ReadRows read) = 0;
  /// The same from memory.
  std::unique_ptr<Weight> make_weight(tensor::DType type, std::size_t rows, std::size_t columns,
                                      base::Bytes bytes) {
    auto weight = make_weight(type, rows, columns, [&](std::span<std::byte> next) {
      INCIPIT_CHECK(next.size() <= bytes.size());
      std::ranges::copy(bytes.first(next.size()), next.begin());
      bytes = bytes.subspan(next.size());
    });
    INCIPIT_CHECK(bytes.empty());
    return weight;
  }

  /// out[i] = table row ids[i], times scale.
  virtual void embed(const Weight& table, std::span<const std::int32_t> ids, float scale,
                     Matrix out) = 0;
  /// Each row of x by its root mean square (plus epsilon under the root), times weight. May be in
  /// place. Per-head norms are the same call over a [rows * heads, head_dim] view.
  virtual void rms_norm(ConstMatrix x, std::span<const float> weight, float epsilon,
                        Matrix out) = 0;
  /// Each row of x less its mean, by its standard deviation (epsilon added to the variance), times
  /// weight, plus bias. May be in place.
  virtual void layer_norm(ConstMatrix x, std::span<const float> weight, std::span<const float> bias,
                          float epsilon, Matrix out) = 0;
  /// All products of one input; x is prepared (quantised) once.
  virtual void matmul(ConstMatrix x, std::span<const Product> products) = 0;
  /// x += y.
  virtual void add(Matrix x, ConstMatrix y) = 0;
  /// Turns each head of x [rows, heads * head_dim] by angles [rows, 2 * half]: the cosines of the
  /// row's position, then the sines. half <= head_dim / 2; the rest of a head stays.
  virtual void rope(Matrix x, std::size_t head_dim, ConstMatrix angles, RopePairs pairs) = 0;
  /// out = activation(gate) * up; without data in `up`, activation(gate). May be in place.
  virtual void activate(Activation activation, ConstMatrix gate, ConstMatrix up, Matrix out) = 0;
  /// x = cap * tanh(x / cap).
  virtual void soft_cap(Matrix x, float cap) = 0;
  /// Writes k and v [rows, kv_heads * head_dim] of one layer into the pool, rounded to its type.
  virtual void append_kv(const KvPoolView& pool, std::size_t layer, ConstMatrix k, ConstMatrix v,
                         std::span<const KvSlot> slots) = 0;
  /// Softmax attention of q [rows, heads * head_dim] over the pool's keys, as the plan says.
  virtual void attention(const KvPoolView& pool, const AttentionParams& params,
                         const AttentionPlan& plan, ConstMatrix q, Matrix out) = 0;
  /// out[i] = x row rows[i].
  virtual void gather_rows(ConstMatrix x, std::span<const std::uint32_t> rows, Matrix out) = 0;
  /// Calls work(i) for each i < count, in any order, on the host's threads that wait while the
  /// device computes, if there are any. For what is done to logits.
  virtual void for_each_on_host(std::size_t count, base::FunctionRef<void(std::size_t)> work) {
    for (std::size_t i = 0; i < count; ++i) work(i);
  }
  virtual void copy_block(const KvPoolView& pool, BlockId from, BlockId to) = 0;
  /// The operations from here to end_step() are those of one step of a model, for so many rows. A
  /// device may put off all but uploads until then, so what it gives is there after end_step().
  virtual void begin_step(std::size_t /*rows*/) {}
  virtual void end_step() {}
  /// Returns when all operations so far are done; throws what went wrong with them.
  virtual void finish() {}
};

}  // namespace incipit::device

#endif  // INCIPIT_DEVICE_DEVICE_H_
