// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/append_kv.cuh"

#include "cpu/kv_order.h"
#include "cpu/scalar/kernels.h"
#include "cuda/kernel_test.h"

using namespace incipit;
using namespace incipit::testing;

namespace {

template <class Stored>
constexpr device::KvFormat kFormat = std::is_same_v<Stored, cuda::F16>    ? device::KvFormat::kF16
                                     : std::is_same_v<Stored, cuda::BF16> ? device::KvFormat::kBF16
                                     : sizeof(Stored) == 1                ? device::KvFormat::kInt8
                                                                          : device::KvFormat::kF32;

struct Shape {
  unsigned heads = 3, kv_heads = 2, head_dim = 64, half = 32;
  device::RopePairs pairs = device::RopePairs::kHalves;
  bool with_queries = true;
};

/// Rows that go to slots of several blocks, in no order; one of them has no slot.
template <class Stored>
class Problem {
 public:
  explicit Problem(const Shape& shape_in)
      : shape(shape_in),
        layout({2, shape.kv_heads, shape.head_dim, kFormat<Stored>}),
        pool(4 * layout.block_bytes(), 0x5a) {
    std::mt19937 random(shape.head_dim + shape.half);
    q = random_values<float>(random, kRows * (shape.heads * shape.head_dim + kGap), 3.0f);
    k = random_values<float>(random, kRows * kv_stride(), 3.0f);
    v = random_values<float>(random, kRows * kv_stride(), 0.1f);
    angles = random_values<float>(random, kRows * 2 * std::max(1u, shape.half));
  }

  unsigned kv_stride() const { return shape.kv_heads * shape.head_dim + kGap; }
  unsigned q_stride() const { return shape.heads * shape.head_dim + kGap; }

  /// The pool, and behind it the queries.
  std::vector<unsigned char> run_on(cuda::Stream stream) const {
    DeviceArray<float> device_q(q), device_k(k), device_v(v), device_angles(angles);
    DeviceArray<unsigned char> device_pool(pool);
    DeviceArray<device::KvSlot> device_slots(slots);
    cuda::AppendKvParams params;
    if (shape.with_queries) params.q = device_q.data();
    params.q_stride = q_stride();
    params.k = device_k.data();
    params.v = device_v.data();
    params.k_stride = params.v_stride = kv_stride();
    params.angles = device_angles.data();
    params.angles_stride = 2 * shape.half;
    params.half = shape.half;
    params.pairs = shape.pairs;
    params.slots = device_slots.data();
    params.pool = device_pool.data();
    params.block_bytes = static_cast<std::int64_t>(layout.block_bytes());
    params.k_offset = static_cast<std::int64_t>(layout.k_offset(kLayer, 0));
    params.v_offset = static_cast<std::int64_t>(layout.v_offset(kLayer, 0));
    params.head_bytes = static_cast<std::int64_t>(layout.head_bytes());
    params.rows = kRows;
    params.heads = shape.heads;
    params.kv_heads = shape.kv_heads;
    params.head_dim = shape.head_dim;
    cuda::append_kv<Stored>(stream, params);
    return joined(device_pool.read(), bytes_of(device_q.read()));
  }

  /// By the CPU's scalar kernels, bit for bit; only the order of the values differs.
  std::vector<unsigned char> wanted() const {
    std::vector<float> turned_q = q, turned_k = k;
    if (shape.half > 0) {
      const tensor::ConstMatrix turns = {angles.data(), kRows, 2 * shape.half, 2 * shape.half};
      const auto turn = [&](std::vector<float>& x, unsigned heads, unsigned stride) {
        cpu::scalar::rope({x.data(), kRows, heads * shape.head_dim, stride}, shape.head_dim, turns,
                          shape.pairs);
      };
      if (shape.with_queries) turn(turned_q, shape.heads, q_stride());
      turn(turned_k, shape.kv_heads, kv_stride());
    }
    std::vector<unsigned char> all = pool;
    for (unsigned row = 0; row < kRows; ++row) {
      if (slots[row].block != cuda::kNoBlock) append(row, turned_k, all);
    }
    return joined(all, bytes_of(turned_q));
  }

  static constexpr unsigned kRows = 5, kGap = 8, kLayer = 1;
  Shape shape;
  device::KvLayout layout;
  std::vector<unsigned char> pool;
  std::vector<float> q, k, v, angles;
  std::vector<device::KvSlot> slots = {{3, 15}, {0, 0}, {cuda::kNoBlock, 7}, {3, 14}, {2, 5}};

 private:
  static std::vector<unsigned char> bytes_of(const std::vector<float>& values) {
    std::vector<unsigned char> bytes(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }

  /// The scalar kernel writes one row to a pool of one block, from which the values are taken.
  void append(unsigned row, const std::vector<float>& turned_k,
              std::vector<unsigned char>& all) const {
    std::vector<std::byte> block(layout.block_bytes());
    const unsigned columns = shape.kv_heads * shape.head_dim, offset = slots[row].offset;
    const device::KvSlot slot = {0, offset};
    cpu::scalar::append_kv({block.data(), 1, layout}, kLayer,
                           {turned_k.data() + row * kv_stride(), 1, columns, columns},
                           {v.data() + row * kv_stride(), 1, columns, columns}, &slot);
    for (unsigned head = 0; head < shape.kv_heads; ++head) {
      for (const bool is_v : {false, true}) {
        const std::size_t from =
            is_v ? layout.v_offset(kLayer, head) : layout.k_offset(kLayer, head);
        unsigned char* const to = &all[slots[row].block * layout.block_bytes() + from];
        const auto copy = [&](std::size_t to_byte, std::size_t from_byte, std::size_t bytes) {
          std::memcpy(to + to_byte, &block[from + from_byte], bytes);
        };
        for (std::size_t i = 0; i < shape.head_dim; ++i) {
          copy((offset * shape.head_dim + i) * sizeof(Stored),
               place(is_v, offset, i) * sizeof(Stored), sizeof(Stored));
        }
        if (sizeof(Stored) == 1) {
          const std::size_t scale = layout.scales_offset() + offset * sizeof(float);
          copy(scale, scale, sizeof(float));
        }
      }
    }
  }

  std::size_t place(bool is_v, std::size_t offset, std::size_t i) const {
    if (kFormat<Stored> == device::KvFormat::kF32) {
      return is_v ? cpu::v_index_f32(offset, i, shape.head_dim) : cpu::k_index_f32(offset, i);
    }
    return is_v ? cpu::v_index_pairs(offset, i, shape.head_dim) : cpu::k_index_pairs(offset, i);
  }
};

template <class Stored>
void check(const Problem<Stored>& problem) {
  CAPTURE(problem.shape.head_dim, problem.shape.half, static_cast<int>(problem.shape.pairs));
  const auto got = run([&](cuda::Stream stream) { return problem.run_on(stream); });
  CHECK(same_bits(got, problem.wanted()));
}

}  // namespace

TEMPLATE_TEST_CASE("append_kv writes the bits of the scalar CPU kernels", "", float, cuda::F16,
                   cuda::BF16, std::int8_t) {
  for (const unsigned head_dim : {64u, 80u, 112u, 128u, 256u}) {
    Shape shape;
    shape.head_dim = head_dim;
    for (const auto pairs : {device::RopePairs::kHalves, device::RopePairs::kAdjacent}) {
      shape.pairs = pairs;
      for (const unsigned half : {head_dim / 2, 8u, 0u}) {
        shape.half = half;
        check(Problem<TestType>(shape));
      }
    }
    shape.half = head_dim / 2;
    shape.with_queries = false;
    check(Problem<TestType>(shape));
  }
  Shape odd;  // pairs that end within a group of four
  odd.pairs = device::RopePairs::kAdjacent;
  odd.half = 7;
  check(Problem<TestType>(odd));
}

TEST_CASE("append_kv as int8: rows of zeros, tiny, huge and damaged ones") {
  Shape shape;
  shape.half = 0;
  Problem<std::int8_t> problem(shape);
  const auto set = [&](std::vector<float>& x, unsigned row, float value) {
    for (unsigned i = 0; i < shape.head_dim; ++i) x[row * problem.kv_stride() + i] = value;
  };
  set(problem.k, 0, 0.0f);
  set(problem.v, 0, -0.0f);
  set(problem.k, 1, 1e-31f);
  set(problem.v, 1, 1e-30f);
  set(problem.k, 3, -3e38f);
  set(problem.v, 3, 0.5f);
  problem.k[4 * problem.kv_stride() + 9] = HUGE_VALF;
  problem.v[4 * problem.kv_stride() + 63] = std::nanf("");
  check(problem);
}

#if INCIPIT_CUDA_EMULATED
TEST_CASE("append_kv moves whole sectors") {
  Shape shape;
  shape.head_dim = 128;
  shape.half = 64;
  const Problem<cuda::BF16> problem(shape);
  const auto counters = count([&](cuda::Stream stream) { problem.run_on(stream); });
  // 4 rows of K and V, 5 of queries; the row without a slot writes nothing.
  CHECK(counters.global_store_bytes == 4 * 2 * 2 * 128 * 2 + 5 * 3 * 128 * 4);
  CHECK(counters.global_store_sectors * 32 == counters.global_store_bytes);
}

TEST_CASE("append_kv as the device calls it reads K once and V twice, as int8 once") {
  Shape shape;
  shape.head_dim = 128;
  shape.half = 0;
  shape.with_queries = false;
  const auto read = [](const auto& problem) {
    const auto counters = count([&](cuda::Stream stream) { problem.run_on(stream); });
    return counters.global_load_sectors * 32;
  };
  constexpr std::size_t kMatrix = 4 * 2 * 128 * 4, kSlots = 5 * 2 * 2 * 2 * 32;
  const std::size_t wide = read(Problem<cuda::F16>(shape));
  CHECK(wide <= 3 * kMatrix + kSlots);  // V of 16 bits is looked at for K, too: is it finite?
  const std::size_t bytes = read(Problem<std::int8_t>(shape));
  CHECK(bytes <= 2 * kMatrix + kSlots);
}
#endif
