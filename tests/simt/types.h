// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_SIMT_TYPES_H_
#define INCIPIT_TESTS_SIMT_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>

// Words that the emulator, its users and the kernels share. README.md explains the emulator.

namespace incipit::simt {

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

/// A place in the source of a kernel.
struct Site {
  const char* file;
  int line;

  bool operator==(const Site& other) const {
    return line == other.line && (file == other.file || std::strcmp(file, other.file) == 0);
  }
};

/// Which thread runs next where one has to wait.
enum class Schedule {
  kForward,  // the lowest that can go on, of the same warp first
  kReverse,  // the highest
  kRandom,   // any, and any may take over at each barrier, warp operation and atomic
};

struct Options {
  Schedule schedule = Schedule::kForward;
  std::uint64_t seed = 1;       // of kRandom and of permuted blocks
  bool permute_blocks = false;  // blocks run in an order drawn from the seed
  unsigned architecture = 80;   // 75: no cp.async, no bf16 products; 90: sm_90a
  bool conflicts_fail = false;  // a bank conflict is a failure, not only counted
  bool count_accesses = true;   // of prim::load and store: bank conflicts and sectors
};

/// Dynamic shared memory that a block can have (CUDA C++ programming guide, table "Technical
/// specifications per compute capability").
constexpr std::size_t shared_limit(unsigned architecture) {
  if (architecture < 80) return 64 * 1024;
  if (architecture >= 90) return 227 * 1024;
  return (architecture == 80 ? 163 : 99) * 1024;
}

struct Counters {
  std::uint64_t blocks = 0;
  std::uint64_t threads = 0;
  std::uint64_t switches = 0;
  std::uint64_t barriers = 0;         // of blocks: one for all its threads
  std::uint64_t warp_operations = 0;  // shuffles, votes, ldmatrix, mma: one per warp
  std::uint64_t matrix_loads = 0;     // ldmatrix instructions
  std::uint64_t products = 0;         // mma instructions
  std::uint64_t atomics = 0;
  std::uint64_t async_copies = 0;
  std::uint64_t async_copy_bytes = 0;  // read from global memory
  std::uint64_t tensor_copies = 0;     // cp.async.bulk.tensor
  std::uint64_t tensor_copy_bytes = 0;
  std::uint64_t group_products = 0;  // wgmma.mma_async instructions, one per warpgroup
  std::uint64_t bank_conflicts = 0;  // extra passes that shared memory needs
  std::uint64_t global_loads = 0;    // instructions of warps
  std::uint64_t global_load_bytes = 0;
  std::uint64_t global_load_sectors = 0;  // of 32 bytes
  std::uint64_t global_stores = 0;
  std::uint64_t global_store_bytes = 0;
  std::uint64_t global_store_sectors = 0;
};

/// The emulated twin of CUtensorMap: an array of 16-bit values in global memory, the fastest
/// dimension first, of which boxes are copied.
struct TensorMap {
  const void* base = nullptr;
  std::uint64_t extents[3] = {};  // values; beyond them a copy gives zeros
  std::uint64_t strides[2] = {};  // bytes, of the second and third dimension
  std::uint32_t box[2] = {};      // values, of the first and second dimension; one of the third
};

/// What a kernel did wrong, with the place and the thread.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A queue of launches: how they run, and what they did so far. The emulated twin of a stream.
struct Machine {
  Options options = {};
  Counters counters = {};
};

}  // namespace incipit::simt

#endif  // INCIPIT_TESTS_SIMT_TYPES_H_
