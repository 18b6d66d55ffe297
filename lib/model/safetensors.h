// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_MODEL_SAFETENSORS_H_
#define INCIPIT_MODEL_SAFETENSORS_H_

#include <cstddef>
#include <filesystem>
#include <vector>

#include "base/file.h"
#include "model/tensor_source.h"

namespace incipit::model {

/// The tensors of a .safetensors file: u64 length | JSON header | data. The data is covered without
/// holes or overlaps and ends where the file ends, so that nothing can hide in it. A scalar has the
/// shape [1]. `index` becomes TensorInfo::file. Throws Error{kModelUnreadable}.
std::vector<TensorInfo> read_safetensors_header(const base::ReadFile& file, std::size_t index);

/// A directory's model.safetensors, or the shards that its model.safetensors.index.json lists.
/// Throws Error{kModelUnreadable}.
TensorSource open_safetensors(const std::filesystem::path& directory);

}  // namespace incipit::model

#endif  // INCIPIT_MODEL_SAFETENSORS_H_
