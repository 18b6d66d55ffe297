// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_EXAMPLES_RUN_PROGRAM_H_
#define INCIPIT_TESTS_EXAMPLES_RUN_PROGRAM_H_

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/temporary_directory.h"

namespace incipit::test {

/// What a program left behind.
struct Outcome {
  int exit_code = -1;  // 128 + signal where one ended it
  std::string out, err;
};

/// Runs one of the example programs and waits for it. Throws where it cannot be started.
Outcome run_example(const std::string& program, const std::vector<std::string>& arguments,
                    const std::string& input = {});

std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, const std::string& text);

/// A tiny random model on disk whose context has room for long prompts.
class TinyModelOnDisk {
 public:
  TinyModelOnDisk();
  std::string path() const { return (directory_.path() / "tiny.gguf").string(); }
  const std::filesystem::path& directory() const { return directory_.path(); }

 private:
  TemporaryDirectory directory_;
};

/// The real model, or "" with a warning where it is missing.
std::string real_model();

/// A result of `generate` without what may depend on cache, threads and time.
nlohmann::json lasting_part(nlohmann::json document);

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_EXAMPLES_RUN_PROGRAM_H_
