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

/// The command that makes safetensors of a PyTorch checkpoint, for a POSIX shell.
inline std::string convert_command(const std::filesystem::path& directory) {
  std::string quoted;
  for (const char c : directory.empty() ? "." : directory.string()) {
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return "python3 -c \"import sys; from transformers import AutoModelForCausalLM as M; "
         "p = sys.argv[1]; M.from_pretrained(p).save_pretrained(p)\" '" +
         quoted + "'";
}

/// Whether there is anything of that path that this process can see.
inline bool is_present(const std::filesystem::path& path) noexcept {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

}  // namespace incipit::model

#endif  // INCIPIT_MODEL_FILES_H_
