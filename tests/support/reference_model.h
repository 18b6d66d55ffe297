// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_SUPPORT_REFERENCE_MODEL_H_
#define INCIPIT_TESTS_SUPPORT_REFERENCE_MODEL_H_

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "incipit/sampling.h"
#include "model/config.h"

namespace incipit::test {

/// Values of a model's tensors by their Hugging Face names.
using ModelTensors = std::map<std::string, std::vector<float>>;

/// Those of a Hugging Face directory.
ModelTensors read_tensors(const std::filesystem::path& directory);

/// Logits [ids][vocabulary] of a whole sequence in double precision, computed the way that the
/// papers write it: one sequence, no cache, no blocks. Shares no arithmetic with the library.
/// `config` says which order the rows of q and k have (Hugging Face's is kHalves).
std::vector<std::vector<double>> reference_logits(const model::ModelConfig& config,
                                                  const ModelTensors& tensors,
                                                  std::span<const TokenId> ids);

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_SUPPORT_REFERENCE_MODEL_H_
