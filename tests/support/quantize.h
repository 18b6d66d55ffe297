// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_SUPPORT_QUANTIZE_H_
#define INCIPIT_TESTS_SUPPORT_QUANTIZE_H_

#include <span>
#include <string>

#include "tensor/dtype.h"

namespace incipit::test {

/// Values in a file's form, the simple way: round to nearest within each block's range. The number
/// of values is a multiple of the block's.
std::string encode(tensor::DType type, std::span<const float> values);

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_SUPPORT_QUANTIZE_H_
