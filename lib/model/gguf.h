// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_MODEL_GGUF_H_
#define INCIPIT_MODEL_GGUF_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "base/file.h"
#include "model/gguf_metadata.h"
#include "model/tensor_source.h"

namespace incipit::model {

/// The front of a GGUF file, versions 2 and 3:
///
///     "GGUF" | version u32 | tensors u64 | entries u64
///     entries x (key | type u32 | value)
///     tensors x (name | dimensions u32 | dimensions x u64 | type u32 | offset u64)
///     padding to the alignment, then the tensors' bytes, each aligned
///
/// Strings stand behind their u64 length. Every number is the file's word against its size.
struct GgufHeader {
  std::unique_ptr<std::byte[]> bytes;  // what the metadata's values point into
  GgufMetadata metadata;
  std::vector<TensorInfo> tensors;  // they do not overlap
};

/// Throws Error{kModelUnreadable}.
GgufHeader read_gguf_header(const base::ReadFile& file);

}  // namespace incipit::model

#endif  // INCIPIT_MODEL_GGUF_H_
