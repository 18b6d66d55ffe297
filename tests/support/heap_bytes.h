// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_SUPPORT_HEAP_BYTES_H_
#define INCIPIT_TESTS_SUPPORT_HEAP_BYTES_H_

#include <malloc.h>

#include <cstddef>

namespace incipit::test {

/// Bytes that the C library has given out. Sanitizers have a heap of their own.
inline std::size_t heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_SUPPORT_HEAP_BYTES_H_
