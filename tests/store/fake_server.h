// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_STORE_FAKE_SERVER_H_
#define INCIPIT_TESTS_STORE_FAKE_SERVER_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace incipit::test {

/// A TCP server on loopback that behaves as a test says, with a thread per connection.
class FakeServer {
 public:
  class Connection;
  /// Has a connection for as long as it runs; it is closed afterwards.
  using Script = std::function<void(Connection&)>;

  /// On any port, or on the given one.
  explicit FakeServer(Script script, std::uint16_t port = 0);
  ~FakeServer();
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  std::uint16_t port() const noexcept { return port_; }
  /// Connections so far.
  unsigned connections() const noexcept { return connections_.load(); }
  /// For connections from now on.
  void set(Script script);

 private:
  void accept_all();
  void serve(int descriptor);

  std::uint16_t port_ = 0;
  int listener_ = -1;
  std::atomic<unsigned> connections_ = 0;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stopping_ = false;
  Script script_;
  std::vector<int> open_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

/// A connection from the server's side. Reading ends with an empty result where the client or the
/// server is gone.
class FakeServer::Connection {
 public:
  Connection(FakeServer& server, int descriptor) : server_(server), descriptor_(descriptor) {}

  /// Without its "\r\n".
  std::string read_line();
  std::string read_bytes(std::size_t size);
  /// A command of Redis: its words.
  std::vector<std::string> read_command();
  /// False where the client is gone.
  bool send(std::string_view bytes);
  /// A byte at a time, with `pause` behind each.
  void drip(std::string_view bytes, std::chrono::milliseconds pause);
  /// Nothing, until the server goes.
  void hang();

 private:
  bool receive();

  FakeServer& server_;
  int descriptor_;
  std::string arrived_;
};

/// A script that has `answer` say something to each command of Redis. Empty: closes.
FakeServer::Script redis_script(
    std::function<std::string(const std::vector<std::string>& words)> answer);

/// "$3\r\nabc\r\n": a string of Redis.
std::string redis_string(std::string_view bytes);

/// A port of loopback that nobody listens on.
std::uint16_t free_port();

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_STORE_FAKE_SERVER_H_
