// SPDX-License-Identifier: Apache-2.0
#include "examples/run_program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <stdexcept>

#include "support/catch.h"
#include "support/tiny_model.h"

namespace incipit::test {

namespace {

// Files for the three standard streams: nobody has to read a pipe while the program runs.
class StandardStreams {
 public:
  explicit StandardStreams(const std::filesystem::path& directory) : directory_(directory) {
    posix_spawn_file_actions_init(&actions_);
    add(STDIN_FILENO, "in", O_RDONLY);
    add(STDOUT_FILENO, "out", O_WRONLY | O_CREAT | O_TRUNC);
    add(STDERR_FILENO, "err", O_WRONLY | O_CREAT | O_TRUNC);
  }
  ~StandardStreams() { posix_spawn_file_actions_destroy(&actions_); }
  StandardStreams(const StandardStreams&) = delete;
  StandardStreams& operator=(const StandardStreams&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }

 private:
  void add(int descriptor, const char* name, int flags) {
    posix_spawn_file_actions_addopen(&actions_, descriptor, (directory_ / name).c_str(), flags,
                                     0600);
  }

  std::filesystem::path directory_;
  posix_spawn_file_actions_t actions_;
};

}  // namespace

Outcome run_example(const std::string& program, const std::vector<std::string>& arguments,
                    const std::string& input) {
  std::vector<std::string> words = {std::string(INCIPIT_EXAMPLE_PROGRAMS) + "/" + program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  const TemporaryDirectory directory;
  write_file(directory.path() / "in", input);
  const StandardStreams streams(directory.path());
  pid_t child = 0;
  if (posix_spawn(&child, argv[0], streams.actions(), nullptr, argv.data(), environ) != 0) {
    throw std::runtime_error("cannot start " + words[0]);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) throw std::runtime_error("lost " + words[0]);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          read_file(directory.path() / "out"), read_file(directory.path() / "err")};
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

TinyModelOnDisk::TinyModelOnDisk() {
  TinyModelOptions options;
  options.context = 8192;
  make_tiny_model(options).write_gguf(path());
}

std::string real_model() {
  const std::string path = INCIPIT_TEST_MODEL;
  if (!path.empty() && std::filesystem::exists(path)) return path;
  WARN("skipped: no model at '" << path << "'");
  return {};
}

nlohmann::json lasting_part(nlohmann::json document) {
  for (nlohmann::json& result : document.at("results")) {
    result.erase("reused_tokens");
    result.erase("time_to_first_token_ms");
  }
  return document;
}

}  // namespace incipit::test
