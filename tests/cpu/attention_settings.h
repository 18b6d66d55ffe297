// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_CPU_ATTENTION_SETTINGS_H_
#define INCIPIT_TESTS_CPU_ATTENTION_SETTINGS_H_

#include <array>
#include <cstddef>
#include <functional>

#include "cpu/attention_fixture.h"
#include "support/catch.h"

// What the tests of equal bits run over.

namespace incipit::testing::attention {

inline constexpr std::array<float, 4> kSlopes = {0.5f, 0.125f, 0.03125f, 0.0f};

inline constexpr std::size_t kWidth = 4 * 32;  // of a row of queries: heads * head_dim

struct Setting {
  Path path;
  KvFormat type = KvFormat::kF32;
  device::KvShape shape = {};
  device::AttentionParams params = {};
};

/// One setting per path and KV type. Window, ALiBi and cap go by turns, the more so as the kernels
/// treat all of them in one place.
inline void for_each_setting(const std::function<void(const Setting&)>& body) {
  std::size_t turn = 0;
  for (const Path& path : paths()) {
    for (const KvFormat type : {KvFormat::kF32, KvFormat::kF16, KvFormat::kBF16, KvFormat::kInt8}) {
      for (const bool curved : {false, true}) {
        Setting setting{path, type, {2, 2, 32, type}, {}};
        setting.params.layer = 1;
        setting.params.heads = 4;
        setting.params.scale = 0.25f;
        if (curved) {
          ++turn;
          setting.params.window = std::array{37u, 300u, 16u}[turn % 3];
          setting.params.soft_cap = turn % 2 == 0 ? 4.0f : 0.0f;
          if (turn % 3 != 1) setting.params.alibi_slopes = kSlopes;
        }
        CAPTURE(path.name, device::name(type), curved, setting.params.window);
        body(setting);
      }
    }
  }
}

}  // namespace incipit::testing::attention

#endif  // INCIPIT_TESTS_CPU_ATTENTION_SETTINGS_H_
