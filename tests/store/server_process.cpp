// SPDX-License-Identifier: Apache-2.0
#include "store/server_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "store/fake_server.h"
#include "store/server_socket.h"
#include "support/catch.h"

namespace incipit::test {
namespace {

using namespace std::chrono_literals;

bool accepts(std::uint16_t port) {
  return store::ServerSocket({"127.0.0.1", port}, std::chrono::steady_clock::now() + 1s).good();
}

}  // namespace

bool installed(const std::string& program) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  }
  WARN("skipped: " << program << " is not installed");
  return false;
}

ServerProcess::ServerProcess(CommandLine command_line) : command_line_(std::move(command_line)) {
  // Another program may take a free port before the server does.
  for (int attempt = 0;; ++attempt) {
    port_ = free_port();
    try {
      start();
      return;
    } catch (const std::runtime_error&) {
      kill();
      if (attempt == 2) throw;
    }
  }
}

ServerProcess::~ServerProcess() { kill(); }

void ServerProcess::start() {
  std::vector<std::string> words = command_line_(port_, directory_.path().string());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  child_ = ::fork();
  if (child_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int nowhere = ::open("/dev/null", O_RDWR);
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, stream);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  const auto until = std::chrono::steady_clock::now() + 10s;
  while (!accepts(port_)) {
    if (!runs() || std::chrono::steady_clock::now() > until) {
      throw std::runtime_error("cannot start " + words[0]);
    }
    std::this_thread::sleep_for(5ms);
  }
}

bool ServerProcess::runs() {
  if (child_ > 0 && ::waitpid(child_, nullptr, WNOHANG) != 0) child_ = -1;
  return child_ > 0;
}

void ServerProcess::kill() {
  if (child_ <= 0) return;
  ::kill(child_, SIGKILL);
  ::waitpid(child_, nullptr, 0);
  child_ = -1;
}

void ServerProcess::restart() {
  kill();
  start();
}

void ServerProcess::freeze() { ::kill(child_, SIGSTOP); }
void ServerProcess::thaw() { ::kill(child_, SIGCONT); }

ServerProcess::CommandLine redis_server(std::vector<std::string> options) {
  return [options = std::move(options)](std::uint16_t port, const std::string& directory) {
    std::vector<std::string> words = {
        "redis-server", "--port", std::to_string(port), "--bind", "127.0.0.1", "--dir", directory,
        "--save",       "",       "--appendonly",       "no"};
    words.insert(words.end(), options.begin(), options.end());
    return words;
  };
}

ServerProcess::CommandLine memcached_server(std::vector<std::string> options) {
  return [options = std::move(options)](std::uint16_t port, const std::string&) {
    // "-u" is for root only, whom it would not run as.
    std::vector<std::string> words = {
        "memcached", "-p", std::to_string(port), "-l", "127.0.0.1", "-U", "0", "-u", "nobody"};
    words.insert(words.end(), options.begin(), options.end());
    return words;
  };
}

}  // namespace incipit::test
