// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_EXAMPLES_OPTION_NAMES_H_
#define INCIPIT_EXAMPLES_OPTION_NAMES_H_

#include <incipit/engine.h>

#include <map>
#include <string>

// What the values of EngineOptions are called on a command line.

namespace examples {

inline const std::map<std::string, incipit::KvType> kKvTypes = {{"auto", incipit::KvType::kAuto},
                                                                {"f32", incipit::KvType::kF32},
                                                                {"f16", incipit::KvType::kF16},
                                                                {"bf16", incipit::KvType::kBF16},
                                                                {"int8", incipit::KvType::kInt8}};

inline const std::map<std::string, incipit::CpuPath> kCpuPaths = {
    {"auto", incipit::CpuPath::kAuto},
    {"scalar", incipit::CpuPath::kScalar},
    {"avx2", incipit::CpuPath::kAvx2},
    {"avx512", incipit::CpuPath::kAvx512}};

inline const std::map<std::string, incipit::Activations> kActivations = {
    {"mixed", incipit::Activations::kMixed},
    {"int8", incipit::Activations::kInt8},
    {"float", incipit::Activations::kFloat}};

inline const std::map<std::string, incipit::GpuMath> kGpuMath = {
    {"exact", incipit::GpuMath::kExact}, {"fast", incipit::GpuMath::kFast}};

}  // namespace examples

#endif  // INCIPIT_EXAMPLES_OPTION_NAMES_H_
