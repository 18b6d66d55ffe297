// SPDX-License-Identifier: Apache-2.0
// One target as a libFuzzer program. Its mutations start from the target's own seeds, so that it
// runs well without a corpus:
//     build/fuzz/tests/fuzz/fuzz_gguf -max_len=32768 -len_control=0 CORPUS_DIRECTORY
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "fuzz/target.h"

extern "C" {
// libFuzzer's own mutation, and the hooks that it calls.
std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                    unsigned seed);
}

namespace {

constexpr const incipit::fuzz::Target& kTarget = incipit::fuzz::INCIPIT_FUZZ_TARGET;

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  kTarget.run({reinterpret_cast<const char*>(data), size});
  return 0;
}

std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                    unsigned seed) {
  // Now and then, and for a start, a seed takes the input's place.
  if (size < 8 || seed % 256 == 0) {
    static const std::vector<std::string> seeds = kTarget.seeds();
    const std::string& chosen = seeds[seed / 256 % seeds.size()];
    if (chosen.size() <= max_size) {
      std::memcpy(data, chosen.data(), chosen.size());
      size = chosen.size();
    }
  }
  return LLVMFuzzerMutate(data, size, max_size);
}
