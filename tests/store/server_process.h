// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_STORE_SERVER_PROCESS_H_
#define INCIPIT_TESTS_STORE_SERVER_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "support/temporary_directory.h"

namespace incipit::test {

/// True where the program is installed; warns where not, so that a test that returns then is seen
/// to skip.
bool installed(const std::string& program);

/// A server on a free port of loopback, with a folder of its own. Killed in the destructor, and by
/// the system where the test dies.
class ServerProcess {
 public:
  /// The words of the command line, the program first, that make the server listen on `port` and
  /// keep its files in `directory`.
  using CommandLine =
      std::function<std::vector<std::string>(std::uint16_t port, const std::string& directory)>;

  /// Starts it and waits until it accepts connections. Throws where it does not.
  explicit ServerProcess(CommandLine command_line);
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  std::uint16_t port() const noexcept { return port_; }
  /// As a crash would.
  void kill();
  /// Again, on the same port, with the same folder.
  void restart();
  /// Stops without being gone: it holds its connections and answers nothing.
  void freeze();
  void thaw();

 private:
  void start();
  bool runs();

  CommandLine command_line_;
  TemporaryDirectory directory_;
  std::uint16_t port_ = 0;
  pid_t child_ = -1;
};

/// `redis-server` without persistence, with these further options.
ServerProcess::CommandLine redis_server(std::vector<std::string> options = {});
/// `memcached` with these further options.
ServerProcess::CommandLine memcached_server(std::vector<std::string> options = {});

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_STORE_SERVER_PROCESS_H_
