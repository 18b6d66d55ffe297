// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_MODEL_FILES_H_
#define INCIPIT_MODEL_FILES_H_

#include <filesystem>
#include <string>
#include <system_error>

#include "base/check.h"

namespace incipit::model {

/// Throws Error{kModelUnreadable}: which file, what is wrong with it and what to do.
[[noreturn]] inline void fail(const std::filesystem::path& file, const std::string& why) {
  base::throw_error(ErrorCode::kModelUnreadable, file.string() + ": " + why);
}

/// The command that makes safetensors of a PyTorch checkpoint.
inline std::string convert_command(const std::filesystem::path& directory) {
  return "python3 -c \"from transformers import AutoModelForCausalLM as M; "
         "M.from_pretrained('" +
         directory.string() + "').save_pretrained('" + directory.string() + "')\"";
}

/// Whether there is anything of that path that this process can see.
inline bool is_present(const std::filesystem::path& path) noexcept {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

}  // namespace incipit::model

#endif  // INCIPIT_MODEL_FILES_H_
