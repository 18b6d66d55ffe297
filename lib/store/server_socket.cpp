// SPDX-License-Identifier: Apache-2.0
#include "store/server_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

namespace incipit::store {
namespace {

using Clock = std::chrono::steady_clock;

// Of the iovecs of one sendmsg; no request of ours has more pieces.
constexpr std::size_t kMaxPieces = 16;

struct FreeAddresses {
  void operator()(addrinfo* list) const noexcept { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses resolve(const Endpoint& endpoint) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const std::string port = std::to_string(endpoint.port);
  if (::getaddrinfo(endpoint.host.c_str(), port.c_str(), &hints, &list) != 0) return nullptr;
  return Addresses(list);
}

bool passing(int error) { return error == EAGAIN || error == EINTR; }

}  // namespace

std::optional<Endpoint> parse_endpoint(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return std::nullopt;  // An IPv6 address without brackets, or more than a host.
  }
  const std::string_view port = text.substr(colon + 1);
  Endpoint endpoint = {std::string(host), 0};
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), endpoint.port);
  if (error != std::errc() || end != port.data() + port.size()) return std::nullopt;
  if (host.empty() || host.size() > kMaxHost || endpoint.port == 0) return std::nullopt;
  return endpoint;
}

ServerSocket::ServerSocket(const Endpoint& endpoint, Deadline deadline) {
  const Addresses addresses = resolve(endpoint);
  std::size_t left = 0;
  for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) ++left;
  for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next, --left) {
    // An address that does not answer leaves the others their share of the time.
    if (connect_to(*a, share_of(deadline, left))) return;
  }
  timed_out_ = timed_out_ || Clock::now() >= deadline;
}

ServerSocket::~ServerSocket() { close(); }

void ServerSocket::close() noexcept {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

bool ServerSocket::fail() noexcept {
  close();
  return false;
}

bool ServerSocket::connect_to(const addrinfo& address, Deadline deadline) {
  timed_out_ = false;
  descriptor_ = ::socket(address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
                         address.ai_protocol);
  if (descriptor_ < 0) return false;
  const int on = 1;
  ::setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (::connect(descriptor_, address.ai_addr, address.ai_addrlen) == 0) return true;
  if (errno != EINPROGRESS || !wait(POLLOUT, deadline)) return fail();
  int error = 0;
  socklen_t size = sizeof(error);
  if (::getsockopt(descriptor_, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
    return fail();
  }
  return true;
}

bool ServerSocket::quiet() const noexcept {
  if (descriptor_ < 0 || begin_ != end_) return false;
  char byte;
  const ssize_t got = ::recv(descriptor_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got < 0 && passing(errno);
}

bool ServerSocket::wait(short events, Deadline deadline) {
  while (true) {
    if (late(deadline)) return false;
    const auto left = deadline - Clock::now();
    // Rounded up, so that the last millisecond is no busy loop.
    const auto milliseconds =
        std::clamp(std::chrono::duration_cast<std::chrono::milliseconds>(left).count() + 1,
                   std::int64_t{1}, std::int64_t{60'000});
    pollfd polled = {descriptor_, events, 0};
    const int ready = ::poll(&polled, 1, static_cast<int>(milliseconds));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return fail();
  }
}

bool ServerSocket::send(std::span<const base::Bytes> pieces, Deadline deadline) {
  std::array<iovec, kMaxPieces> parts = {};
  if (descriptor_ < 0 || pieces.size() > kMaxPieces) return fail();
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    parts[i] = {const_cast<std::byte*>(pieces[i].data()), pieces[i].size()};
  }
  std::size_t first = 0;
  while (true) {
    while (first < pieces.size() && parts[first].iov_len == 0) ++first;
    if (first == pieces.size()) return true;
    msghdr message = {};
    message.msg_iov = &parts[first];
    message.msg_iovlen = pieces.size() - first;
    const ssize_t sent = ::sendmsg(descriptor_, &message, MSG_NOSIGNAL);
    if (sent < 0) {
      if (!passing(errno)) return fail();
      if (!wait(POLLOUT, deadline)) return false;
      continue;
    }
    for (std::size_t left = static_cast<std::size_t>(sent); left > 0;) {
      const std::size_t taken = std::min(left, parts[first].iov_len);
      parts[first].iov_base = static_cast<std::byte*>(parts[first].iov_base) + taken;
      parts[first].iov_len -= taken;
      left -= taken;
      if (parts[first].iov_len == 0) ++first;
    }
    if (late(deadline)) return false;
  }
}

bool ServerSocket::late(Deadline deadline) noexcept {
  if (Clock::now() < deadline) return false;
  timed_out_ = true;
  fail();
  return true;
}

std::size_t ServerSocket::receive(std::span<std::byte> out, Deadline deadline) {
  while (descriptor_ >= 0) {
    const ssize_t got = ::recv(descriptor_, out.data(), out.size(), 0);
    if (got > 0) {
      // A server that sends a byte now and then never lets poll() see the time.
      return late(deadline) ? 0 : static_cast<std::size_t>(got);
    }
    if (got == 0 || !passing(errno)) {
      fail();
    } else if (!wait(POLLIN, deadline)) {
      break;
    }
  }
  return 0;
}

bool ServerSocket::fill(Deadline deadline) {
  if (begin_ < end_) return true;
  begin_ = 0;
  end_ = receive(std::as_writable_bytes(std::span(buffer_)), deadline);
  return end_ > 0;
}

std::optional<std::string_view> ServerSocket::read_line(Deadline deadline) {
  std::size_t searched = 0;
  while (true) {
    const std::string_view arrived = buffered();
    const std::size_t end = arrived.substr(0, kMaxLine + 2).find("\r\n", searched);
    if (end != std::string_view::npos) {
      consume(end + 2);
      return arrived.substr(0, end);
    }
    if (arrived.size() > kMaxLine) {
      fail();
      return std::nullopt;
    }
    searched = arrived.empty() ? 0 : arrived.size() - 1;
    // What there is of the line moves to the front, where the rest fits behind it.
    std::memmove(buffer_.data(), arrived.data(), arrived.size());
    begin_ = 0;
    end_ = arrived.size();
    const std::size_t got =
        receive(std::as_writable_bytes(std::span(buffer_).subspan(end_)), deadline);
    if (got == 0) return std::nullopt;
    end_ += got;
  }
}

bool ServerSocket::read(std::span<std::byte> out, Deadline deadline) {
  const std::size_t ready = std::min(out.size(), end_ - begin_);
  if (ready > 0) std::memcpy(out.data(), buffer_.data() + begin_, ready);
  consume(ready);
  out = out.subspan(ready);
  while (!out.empty()) {
    const std::size_t got = receive(out, deadline);
    if (got == 0) return false;
    out = out.subspan(got);
  }
  return true;
}

bool ServerSocket::skip(std::uint64_t size, Deadline deadline) {
  while (size > 0) {
    if (!fill(deadline)) return false;
    const std::size_t taken =
        static_cast<std::size_t>(std::min<std::uint64_t>(size, buffered().size()));
    consume(taken);
    size -= taken;
  }
  return true;
}

}  // namespace incipit::store
