// SPDX-License-Identifier: Apache-2.0
#include "store/server_socket.h"

#include <string>
#include <vector>

#include "store/fake_server.h"
#include "store/server_pool.h"
#include "support/catch.h"

namespace incipit::store {
namespace {

using namespace std::chrono_literals;
using test::FakeServer;
using Clock = std::chrono::steady_clock;

Deadline in(std::chrono::milliseconds time) { return Clock::now() + time; }

Endpoint endpoint_of(const FakeServer& server) { return {"127.0.0.1", server.port()}; }

// Echoes what it gets, a line at a time.
void echo(FakeServer::Connection& connection) {
  for (std::string line; !(line = connection.read_line()).empty();) {
    if (!connection.send(line + "\r\n")) return;
  }
}

TEST_CASE("addresses of servers are read") {
  CHECK(parse_endpoint("localhost:11211") == Endpoint{"localhost", 11211});
  CHECK(parse_endpoint("127.0.0.1:1") == Endpoint{"127.0.0.1", 1});
  CHECK(parse_endpoint("[::1]:65535") == Endpoint{"::1", 65535});
  CHECK(parse_endpoint(std::string(253, 'a') + ":1"));
  CHECK_FALSE(parse_endpoint(std::string(254, 'a') + ":1"));
  for (const char* text : {"", ":", "host", "host:", ":1", "host:0", "host:65536", "host:-1",
                           "host:1x", "host: 1", "::1:11211", "[]:1", "[::1]"}) {
    INFO(text);
    CHECK_FALSE(parse_endpoint(text));
  }
}

TEST_CASE("a socket sends pieces and reads lines and bytes") {
  FakeServer server(echo);
  ServerSocket socket(endpoint_of(server), in(5s));
  REQUIRE(socket.good());
  const std::vector<base::Bytes> pieces = {
      base::as_bytes("one\r"), {}, base::as_bytes("\ntwo\r\n"), base::as_bytes("")};
  REQUIRE(socket.send(pieces, in(5s)));
  CHECK(socket.read_line(in(5s)) == "one");
  std::array<char, 5> bytes = {};
  REQUIRE(socket.read(std::as_writable_bytes(std::span(bytes)), in(5s)));
  CHECK(std::string_view(bytes.data(), 5) == "two\r\n");
  CHECK(socket.quiet());
}

TEST_CASE("a line may be as long as allowed and no longer") {
  const std::string longest(ServerSocket::kMaxLine, 'a');
  FakeServer server([&](FakeServer::Connection& connection) {
    // In pieces that end within the line's end.
    connection.send("\r\nab\r");
    connection.send("\n" + longest + "\r\n");
    connection.send(longest + "a\r\n");
    connection.hang();
  });
  ServerSocket socket(endpoint_of(server), in(5s));
  CHECK(socket.read_line(in(5s)) == "");
  CHECK(socket.read_line(in(5s)) == "ab");
  CHECK(socket.read_line(in(5s)) == longest);
  CHECK_FALSE(socket.read_line(in(5s)));
  CHECK_FALSE(socket.good());
  CHECK_FALSE(socket.timed_out());
  CHECK_FALSE(socket.read_line(in(5s)));
}

TEST_CASE("a byte now and then is not longer than the deadline") {
  FakeServer server(
      [](FakeServer::Connection& connection) { connection.drip(std::string(1000, 'a'), 20ms); });
  ServerSocket socket(endpoint_of(server), in(5s));
  const auto start = Clock::now();
  std::vector<std::byte> bytes(1000);
  CHECK_FALSE(socket.read(bytes, in(150ms)));
  CHECK(socket.timed_out());
  CHECK(Clock::now() - start >= 150ms);
  CHECK(Clock::now() - start < 3s);
}

TEST_CASE("a server that reads nothing costs the deadline") {
  FakeServer server([](FakeServer::Connection& connection) { connection.hang(); });
  ServerSocket socket(endpoint_of(server), in(5s));
  const std::vector<std::byte> large(64u << 20);
  const std::vector<base::Bytes> pieces = {large};
  CHECK_FALSE(socket.send(pieces, in(100ms)));
  CHECK(socket.timed_out());
}

TEST_CASE("a server that is gone is an error and no signal") {
  FakeServer server([](FakeServer::Connection&) {});
  ServerSocket socket(endpoint_of(server), in(5s));
  const std::vector<std::byte> large(8u << 20);
  const std::vector<base::Bytes> pieces = {large};
  CHECK_FALSE((socket.send(pieces, in(5s)) && socket.send(pieces, in(5s))));
  CHECK_FALSE(socket.timed_out());
  CHECK_FALSE(ServerSocket({"127.0.0.1", test::free_port()}, in(5s)).good());
  CHECK_FALSE(ServerSocket({"no such host.invalid", 1}, in(5s)).good());
  CHECK(ServerSocket(endpoint_of(server), Clock::now() - 1s).timed_out());
}

constexpr auto kAsk = [](ServerSocket& socket) {
  const std::vector<base::Bytes> pieces = {base::as_bytes("hello\r\n")};
  return socket.send(pieces, in(5s)) && socket.read_line(in(5s)) == "hello";
};

TEST_CASE("a pool keeps connections that are well") {
  FakeServer server(echo);
  ServerPool pool(endpoint_of(server), 2);
  for (int i = 0; i < 5; ++i) CHECK(pool.run(in(5s), kAsk));
  CHECK(server.connections() == 1);
  // One that had a failure, or more to say, is not used again.
  CHECK(pool.run(in(5s), [](ServerSocket& socket) {
    socket.close();
    return true;
  }));
  CHECK(pool.run(in(5s), kAsk));
  CHECK(server.connections() == 2);
  server.set([](FakeServer::Connection& connection) {
    connection.send(connection.read_line() + "\r\nand more\r\n");
    connection.hang();
  });
  CHECK(pool.run(in(5s), [](ServerSocket& socket) {
    socket.close();
    return true;
  }));
  CHECK(pool.run(in(5s), kAsk));
  CHECK(pool.run(in(5s), kAsk));
  CHECK(server.connections() == 4);
}

TEST_CASE("a pool tries once more where a kept connection breaks") {
  FakeServer server([](FakeServer::Connection& connection) {
    connection.send(connection.read_line() + "\r\n");
    connection.read_line();  // And closes without an answer.
  });
  ServerPool pool(endpoint_of(server), 2);
  int calls = 0;
  const auto counted = [&](ServerSocket& socket) {
    ++calls;
    return kAsk(socket);
  };
  CHECK(pool.run(in(5s), counted));
  CHECK(calls == 1);
  CHECK(pool.run(in(5s), counted));
  CHECK(calls == 3);
  server.set([](FakeServer::Connection&) {});
  CHECK_FALSE(pool.run(in(5s), counted));
  CHECK(calls <= 5);
}

TEST_CASE("a pool has its limit, and a place is free after an exception") {
  FakeServer server(echo);
  ServerPool pool(endpoint_of(server), 1);
  CHECK(pool.run(in(5s), [&](ServerSocket&) {
    CHECK_FALSE(pool.run(in(20ms), kAsk));
    return true;
  }));
  CHECK_THROWS(pool.run(in(5s), [](ServerSocket&) -> bool { throw 1; }));
  CHECK(pool.run(in(5s), kAsk));
}

TEST_CASE("a pool greets each connection, and believes what the greeting says") {
  FakeServer server(echo);
  bool welcome = false;
  ServerPool pool(endpoint_of(server), 1,
                  [&](ServerSocket& socket, Deadline) { return kAsk(socket) && welcome; });
  CHECK_FALSE(pool.run(in(5s), kAsk));
  welcome = true;
  CHECK(pool.run(in(5s), kAsk));
  CHECK(pool.run(in(5s), kAsk));
  CHECK(server.connections() == 2);
}

}  // namespace
}  // namespace incipit::store
