// SPDX-License-Identifier: Apache-2.0
#include "retrieve/runs.h"

#include <array>
#include <numeric>
#include <vector>

#include "support/catch.h"

using incipit::retrieve::Runs;

TEST_CASE("runs stay what and where they were, in a copy, too") {
  Runs<int> runs;
  std::vector<Runs<int>::Run> all;
  std::vector<std::vector<int>> values;
  for (const std::size_t size : std::array<std::size_t, 9>{0, 1, 255, 1, 256, 10'000, 3, 5000, 2}) {
    std::vector<int>& next = values.emplace_back(size);
    std::iota(next.begin(), next.end(), static_cast<int>(all.size()) * 100);
    all.push_back(runs.add(next));
  }
  const int* const first = runs[all[1]].data();
  const Runs<int> copy = runs;
  for (int i = 0; i < 10'000; ++i) runs[runs.add(std::size_t{1})][0] = i;
  CHECK(runs[all[1]].data() == first);
  for (const Runs<int>& some : {runs, copy}) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto run = some[all[i]];
      CHECK(std::vector<int>(run.begin(), run.end()) == values[i]);
    }
  }
}
