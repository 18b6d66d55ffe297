// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_SUPPORT_LARGEST_ALLOCATION_H_
#define INCIPIT_TESTS_SUPPORT_LARGEST_ALLOCATION_H_

#include <cstddef>

namespace incipit::test {

/// Bytes of the largest operator new since the last call of forget_allocations(). Linking
/// largest_allocation.cpp replaces the program's operator new.
std::size_t largest_allocation() noexcept;
void forget_allocations() noexcept;

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_SUPPORT_LARGEST_ALLOCATION_H_
