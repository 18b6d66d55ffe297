// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_SIMT_DEVICE_H_
#define INCIPIT_TESTS_SIMT_DEVICE_H_

#include <cstdint>
#include <cstring>
#include <functional>

#include "simt/access_log.h"
#include "simt/thread_info.h"

// What a kernel under emulation calls: the counterparts of CUDA's built-ins and of a few PTX
// instructions. Everything that touches memory of the kernel is inline, so that the sanitizers see
// it in the thread that does it.

namespace incipit::simt {

/// Runs body once per thread of the grid. Throws Failure.
void launch(Machine& machine, Dim3 grid, Dim3 block, std::size_t shared_bytes,
            const std::function<void()>& body);

/// Ends the launch: what __trap is to a GPU.
[[noreturn]] void fail(const char* message, Site site);

void sync_threads(Site site);
/// The only warp operation that orders memory, as on a GPU.
void sync_warp(std::uint32_t mask, Site site);

enum class Shuffle { kIndex, kXor, kUp, kDown };
/// The value of another lane, whole warps wide. Reading a lane outside of the mask is a failure.
std::uint64_t shuffle(std::uint32_t mask, std::uint64_t value, Shuffle kind, unsigned argument,
                      Site site);
std::uint32_t ballot(std::uint32_t mask, bool predicate, Site site);

unsigned char* dynamic_shared();
void* static_shared(const void* key, std::size_t bytes);

void note_access(Access access, const void* address, unsigned bytes, Site site);
void note_atomic();

// Asynchronous copies from global to shared memory, at their worst: the target is garbage from the
// moment of issue and holds the data not before its thread has waited; a barrier brings it to
// others.

void check_async_copy(const void* to, const void* from, unsigned bytes, unsigned from_bytes,
                      Site site);
void queue_async_copy(const AsyncCopy& copy);
void commit_async_copies();
/// The next copy of all groups but the last `pending`; false if there is none.
bool next_async_copy(unsigned pending, AsyncCopy& copy);

/// bytes: 4, 8 or 16; the last bytes - from_bytes become zero.
inline void async_copy(void* to, const void* from, unsigned bytes, unsigned from_bytes, Site site) {
  check_async_copy(to, from, bytes, from_bytes, site);
  std::memset(to, 0xff, bytes);
  if (from_bytes > 0) {  // the source must be readable now
    unsigned char now[16];
    std::memcpy(now, from, from_bytes);
  }
  queue_async_copy({to, from, bytes, from_bytes});
}
inline void wait_async_copies(unsigned pending) {
  for (AsyncCopy copy; next_async_copy(pending, copy);) {
    auto* const to = static_cast<unsigned char*>(copy.to);
    if (copy.from_bytes > 0) std::memcpy(to, copy.from, copy.from_bytes);
    if (copy.bytes > copy.from_bytes) {
      std::memset(to + copy.from_bytes, 0, copy.bytes - copy.from_bytes);
    }
  }
}

/// ldmatrix: `count` (1, 2 or 4) 8 x 8 matrices of 16 bits, of which lanes 0 to 8 * count - 1 name
/// the rows. Register j of lane l gets row l / 4, columns 2 (l % 4) and one more of matrix j; with
/// `transposed`, of its transpose.
void exchange_matrix_rows(std::uint32_t* out, const void* row, const std::uint16_t* values,
                          unsigned count, bool transposed, Site site);
bool names_matrix_row(const void* row, unsigned count, Site site);

inline void load_matrix(std::uint32_t* out, const void* row, unsigned count, bool transposed,
                        Site site) {
  std::uint16_t values[8] = {};
  if (names_matrix_row(row, count, site)) std::memcpy(values, row, sizeof values);
  exchange_matrix_rows(out, row, values, count, transposed, site);
}

enum class Element { kF16, kBF16 };
/// mma.sync.m16n8k16 (or k8: two registers of a, one of b) row.col with f32 accumulators: d += a b.
/// Fragments as in the PTX manual, section "Matrix fragments for mma.m16n8k16".
void multiply(Element type, unsigned depth, float* d, const std::uint32_t* a,
              const std::uint32_t* b, Site site);

// sm_90a: warpgroups, barriers with phases, copies of boxes. See warpgroup.h, phase_barriers.h.

/// Where 128-byte swizzle puts the byte of a shared address.
constexpr std::uint32_t swizzled(std::uint32_t address) {
  return address ^ (address >> 7 & 7u) << 4;
}
/// In the state space: 32 bits, as descriptors have them.
std::uint32_t shared_address(const void* pointer);

/// wgmma.mma_async.m64nNk16 with f32 accumulators: d = a b, + d where `keep`.
struct GroupProduct {
  Element type;
  unsigned columns;  // N
  bool rows_of_b;    // b lies by rows: MN-major; else by columns: K-major
  bool keep;
  std::uint64_t a, b;  // descriptors
};
/// `a`: four registers, or null for the descriptor. They and d must live until the wait.
void multiply_async(const GroupProduct& product, float* d, const std::uint32_t* a, Site site);
void fence_products(Site site);
void commit_products(Site site);
void wait_products(unsigned pending, Site site);

/// mbarrier.init; publish_barriers: fence.mbarrier_init.
void init_barrier(const void* barrier, unsigned count, Site site);
void publish_barriers(Site site);
/// mbarrier.arrive, which first expects so many bytes more of copies.
void arrive(const void* barrier, std::uint32_t bytes, Site site);
/// mbarrier.try_wait.parity until it is true.
void wait_phase(const void* barrier, unsigned parity, Site site);
/// cp.async.bulk.tensor.3d with 128-byte swizzle.
void copy_box(void* to, const TensorMap& map, std::int32_t x, std::int32_t y, std::int32_t z,
              const void* barrier, Site site);
/// fence.proxy.async
void fence_async_proxy();

}  // namespace incipit::simt

#endif  // INCIPIT_TESTS_SIMT_DEVICE_H_
