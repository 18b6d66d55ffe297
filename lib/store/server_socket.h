// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_STORE_SERVER_SOCKET_H_
#define INCIPIT_STORE_SERVER_SOCKET_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"

struct addrinfo;

namespace incipit::store {

using Deadline = std::chrono::steady_clock::time_point;

/// When the first of `count` >= 1 attempts must end that share the time.
inline Deadline share_of(Deadline deadline, std::size_t count) {
  const Deadline now = std::chrono::steady_clock::now();
  return count == 1 || now >= deadline ? deadline
                                       : now + (deadline - now) / static_cast<long>(count);
}

/// Where a server listens.
struct Endpoint {
  std::string host;  // a name or an address
  std::uint16_t port = 0;
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

/// Bytes of a name in the DNS.
inline constexpr std::size_t kMaxHost = 253;

/// "host:port" or "[IPv6 address]:port"; none where it is neither.
std::optional<Endpoint> parse_endpoint(std::string_view text);

/// A TCP connection on which every call ends by its deadline, however the server behaves: client
/// libraries wait for each piece anew, so that a byte a second keeps them for hours. Raises no
/// SIGPIPE. After the first call that fails, all others fail. For one thread at a time.
class ServerSocket {
 public:
  /// Connects, or makes a socket that fails. The time to resolve a name is the system's.
  ServerSocket(const Endpoint& endpoint, Deadline deadline);
  ~ServerSocket();
  ServerSocket(const ServerSocket&) = delete;
  ServerSocket& operator=(const ServerSocket&) = delete;

  /// False after a failure.
  bool good() const noexcept { return descriptor_ >= 0; }
  /// Nothing has arrived, the end included: true of a connection that rests between two calls.
  bool quiet() const noexcept;
  /// The failure was the deadline's.
  bool timed_out() const noexcept { return timed_out_; }
  void close() noexcept;

  /// All pieces, one behind the other.
  bool send(std::span<const base::Bytes> pieces, Deadline deadline);
  /// Makes buffered() hold something.
  bool fill(Deadline deadline);
  /// What has arrived and was not taken yet.
  std::string_view buffered() const noexcept { return {buffer_.data() + begin_, end_ - begin_}; }
  /// Takes the first `size` <= buffered().size() bytes.
  void consume(std::size_t size) noexcept { begin_ += size; }
  /// Takes a line without its "\r\n", valid until the next call. Fails where it is longer than
  /// kMaxLine.
  std::optional<std::string_view> read_line(Deadline deadline);
  /// Takes exactly as many bytes as `out` has.
  bool read(std::span<std::byte> out, Deadline deadline);
  /// Takes `size` bytes and forgets them.
  bool skip(std::uint64_t size, Deadline deadline);

  static constexpr std::size_t kMaxLine = 4096;

 private:
  bool connect_to(const addrinfo& address, Deadline deadline);
  bool fail() noexcept;
  bool late(Deadline deadline) noexcept;  // and then a failure
  bool wait(short events, Deadline deadline);
  /// Bytes received, at least 1; 0 after a failure.
  std::size_t receive(std::span<std::byte> out, Deadline deadline);

  int descriptor_ = -1;
  bool timed_out_ = false;
  std::array<char, 16384> buffer_;  // [begin_, end_) has arrived
  std::size_t begin_ = 0, end_ = 0;
};

}  // namespace incipit::store

#endif  // INCIPIT_STORE_SERVER_SOCKET_H_
