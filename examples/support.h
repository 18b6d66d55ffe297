// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_EXAMPLES_SUPPORT_H_
#define INCIPIT_EXAMPLES_SUPPORT_H_

#include <CLI/CLI.hpp>
#include <chrono>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

// What the example programs share: a frame for main(), files, and JSON.

namespace examples {

/// Exit codes of the programs, 0 being success.
inline constexpr int kFailure = 1, kUsage = 2;

/// Parses the command line and runs `body`, which returns the exit code. What goes wrong is one
/// line on stderr.
inline int run_main(CLI::App& app, int argc, char** argv, const std::function<int()>& body) {
  app.failure_message([](const CLI::App* program, const CLI::Error& error) {
    return program->get_name() + ": " + error.what() + " (--help shows the options)\n";
  });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  try {
    return body();
  } catch (const std::exception& error) {
    std::cerr << app.get_name() << ": " << error.what() << "\n";
    return kFailure;
  }
}

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file.is_open() || std::filesystem::is_directory(path)) {
    throw std::runtime_error("cannot read " + path);
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Where a program talks to people: stderr where stdout is taken by JSON.
inline std::ostream& console(const std::string& json_path) {
  return json_path == "-" ? std::cerr : std::cout;
}

/// Writes to a file, or to stdout for "-". Floats are written so that they read back exactly.
inline void write_json(const std::string& path, const nlohmann::ordered_json& value, int indent) {
  // What is no UTF-8 (a strange file's names) is replaced.
  const std::string text =
      value.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::ofstream file;
  if (path != "-") file.open(path, std::ios::binary);
  std::ostream& out = path == "-" ? std::cout : file;
  out << text << "\n" << std::flush;
  if (!out) throw std::runtime_error("cannot write " + path);
}

inline double milliseconds(std::chrono::microseconds time) {
  return static_cast<double>(time.count()) / 1000.0;
}

}  // namespace examples

#endif  // INCIPIT_EXAMPLES_SUPPORT_H_
