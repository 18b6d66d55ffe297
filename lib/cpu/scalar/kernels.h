// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CPU_SCALAR_KERNELS_H_
#define INCIPIT_CPU_SCALAR_KERNELS_H_

#include <cstddef>

#include "cpu/kernels.h"

// The members of Kernels on the scalar path.

namespace incipit::cpu::scalar {

void quantize_groups(ConstMatrix x, float fine_ratio, std::size_t begin, std::size_t end,
                     RowBlock* out);
void product(const ProductPart& part);
void rms_norm(ConstMatrix x, const float* weight, float epsilon, Matrix out);
void layer_norm(ConstMatrix x, const float* weight, const float* bias, float epsilon, Matrix out);
void add(Matrix x, ConstMatrix y);
void rope(Matrix x, std::size_t head_dim, ConstMatrix angles, device::RopePairs pairs);
void activate(device::Activation activation, ConstMatrix gate, ConstMatrix up, Matrix out);
void soft_cap(Matrix x, float cap);
void append_kv(const device::KvPoolView& pool, std::size_t layer, ConstMatrix k, ConstMatrix v,
               const device::KvSlot* slots);

}  // namespace incipit::cpu::scalar

#endif  // INCIPIT_CPU_SCALAR_KERNELS_H_
