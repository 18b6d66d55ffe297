// SPDX-License-Identifier: Apache-2.0
#include "store/fake_server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <utility>

namespace incipit::test {
namespace {

int listen_on(std::uint16_t port) {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  ::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  if (::bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(descriptor, 64) != 0) {
    ::close(descriptor);
    throw std::runtime_error("cannot listen on port " + std::to_string(port));
  }
  return descriptor;
}

std::uint16_t port_of(int descriptor) {
  sockaddr_in address = {};
  socklen_t size = sizeof(address);
  ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

}  // namespace

FakeServer::FakeServer(Script script, std::uint16_t port)
    : listener_(listen_on(port)), script_(std::move(script)) {
  port_ = port_of(listener_);
  acceptor_ = std::thread([this] { accept_all(); });
}

FakeServer::~FakeServer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const int descriptor : open_) ::shutdown(descriptor, SHUT_RDWR);
  }
  stopped_.notify_all();
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  for (std::thread& thread : threads_) thread.join();
  ::close(listener_);
}

void FakeServer::set(Script script) {
  const std::lock_guard lock(mutex_);
  script_ = std::move(script);
}

void FakeServer::accept_all() {
  while (true) {
    const int descriptor = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (descriptor < 0) return;
    const int on = 1;
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    const std::lock_guard lock(mutex_);
    if (stopping_) {
      ::close(descriptor);
      return;
    }
    ++connections_;
    open_.push_back(descriptor);
    threads_.emplace_back([this, descriptor] { serve(descriptor); });
  }
}

void FakeServer::serve(int descriptor) {
  Script script;
  {
    const std::lock_guard lock(mutex_);
    script = script_;
  }
  Connection connection(*this, descriptor);
  script(connection);
  const std::lock_guard lock(mutex_);
  std::erase(open_, descriptor);
  ::close(descriptor);
}

bool FakeServer::Connection::receive() {
  char buffer[65536];
  const ssize_t got = ::recv(descriptor_, buffer, sizeof(buffer), 0);
  if (got <= 0) return false;
  arrived_.append(buffer, static_cast<std::size_t>(got));
  return true;
}

std::string FakeServer::Connection::read_line() {
  std::size_t end;
  while ((end = arrived_.find("\r\n")) == std::string::npos) {
    if (!receive()) return {};
  }
  const std::string line = arrived_.substr(0, end);
  arrived_.erase(0, end + 2);
  return line;
}

std::string FakeServer::Connection::read_bytes(std::size_t size) {
  while (arrived_.size() < size) {
    if (!receive()) return {};
  }
  const std::string bytes = arrived_.substr(0, size);
  arrived_.erase(0, size);
  return bytes;
}

std::vector<std::string> FakeServer::Connection::read_command() {
  const std::string count = read_line();
  if (count.empty()) return {};
  std::vector<std::string> words;
  for (unsigned long left = std::strtoul(count.c_str() + 1, nullptr, 10); left > 0; --left) {
    const std::string size = read_line();
    if (size.empty()) return {};
    words.push_back(read_bytes(std::strtoul(size.c_str() + 1, nullptr, 10)));
    read_bytes(2);
  }
  return words;
}

bool FakeServer::Connection::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

void FakeServer::Connection::drip(std::string_view bytes, std::chrono::milliseconds pause) {
  for (std::size_t i = 0; i < bytes.size() && send(bytes.substr(i, 1)); ++i) {
    std::unique_lock lock(server_.mutex_);
    if (server_.stopped_.wait_for(lock, pause, [this] { return server_.stopping_; })) return;
  }
}

void FakeServer::Connection::hang() {
  std::unique_lock lock(server_.mutex_);
  server_.stopped_.wait(lock, [this] { return server_.stopping_; });
}

FakeServer::Script redis_script(
    std::function<std::string(const std::vector<std::string>& words)> answer) {
  return [answer = std::move(answer)](FakeServer::Connection& connection) {
    while (true) {
      const std::vector<std::string> words = connection.read_command();
      if (words.empty()) return;
      const std::string reply = answer(words);
      if (reply.empty() || !connection.send(reply)) return;
    }
  };
}

std::string redis_string(std::string_view bytes) {
  std::string text = "$";
  text.append(std::to_string(bytes.size())).append("\r\n");
  return text.append(bytes).append("\r\n");
}

std::uint16_t free_port() {
  const int descriptor = listen_on(0);
  const std::uint16_t port = port_of(descriptor);
  ::close(descriptor);
  return port;
}

}  // namespace incipit::test
