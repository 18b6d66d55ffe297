// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_SAMPLER_INVISIBLE_H_
#define INCIPIT_SAMPLER_INVISIBLE_H_

namespace incipit::sampler {

/// Characters that say nothing but in which direction to write and where to break lines.
constexpr bool is_invisible(char32_t code) {
  return code == 0x061C || code == 0x200B || code == 0x200E || code == 0x200F ||
         (code >= 0x202A && code <= 0x202E) || code == 0x2060 ||
         (code >= 0x2066 && code <= 0x2069) || code == 0xFEFF;
}

}  // namespace incipit::sampler

#endif  // INCIPIT_SAMPLER_INVISIBLE_H_
