// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_FUZZ_MUTATIONS_H_
#define INCIPIT_TESTS_FUZZ_MUTATIONS_H_

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "fuzz/target.h"
#include "support/catch.h"

namespace incipit::fuzz {

/// Changes valid inputs here and there, always in the same way.
class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  std::string mutate(const std::vector<std::string>& seeds) {
    std::string bytes = seeds[below(seeds.size())];
    const std::size_t count = 1 + below(4);
    for (std::size_t i = 0; i < count && !bytes.empty(); ++i) change(bytes, seeds);
    return bytes;
  }

 private:
  std::size_t below(std::size_t bound) { return random_() % bound; }

  void change(std::string& bytes, const std::vector<std::string>& seeds) {
    const std::size_t at = below(bytes.size());
    const std::size_t length = std::min(1 + below(16), bytes.size() - at);
    switch (below(6)) {
      case 0:
        bytes[at] = static_cast<char>(random_());
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 2:
        bytes.erase(at, length);
        break;
      case 3:
        bytes.insert(at, bytes.substr(below(bytes.size()), length));
        break;
      case 4: {
        const std::string& other = seeds[below(seeds.size())];
        bytes.replace(at, length, other.substr(below(other.size()), length));
        break;
      }
      default:
        bytes.replace(at, length, length, below(2) == 0 ? '\0' : '\xff');
    }
  }

  std::mt19937 random_;
};

/// Runs `count` mutations of a target's seeds, the same ones each time.
inline void run_mutations(const Target& target, int count) {
  const std::vector<std::string> seeds = target.seeds();
  for (const std::string& seed : seeds) target.run(seed);
  target.run("");
  Mutator mutator(1);
  for (int i = 0; i < count; ++i) {
    INFO("mutation " << i);
    target.run(mutator.mutate(seeds));
  }
  SUCCEED("nothing was thrown");
}

}  // namespace incipit::fuzz

#endif  // INCIPIT_TESTS_FUZZ_MUTATIONS_H_
