// SPDX-License-Identifier: Apache-2.0
#include "store/redis_node.h"

#include <array>
#include <charconv>
#include <chrono>
#include <utility>

namespace incipit::store {
namespace {

using Clock = std::chrono::steady_clock;
using Reply = std::optional<RedisReply>;

// How long a server that did not answer is not asked, if others can do.
constexpr std::chrono::seconds kRest{1};
// A caller who waits for less says nothing about the server.
constexpr std::chrono::milliseconds kPatience{50};

// An item that nobody wants is read to its end if it is not longer than this; else it is cheaper to
// connect anew.
constexpr std::uint64_t kMaxSkipped = 1u << 16;

Reply broken(ServerSocket& socket) {
  socket.close();
  return std::nullopt;
}

// The rest of an item of `size` bytes, behind its first one.
Reply read_body(ServerSocket& socket, Deadline deadline, ItemKind kind, std::uint64_t size,
                const ItemRoom& room) {
  const std::optional<std::span<std::byte>> body = room(kind, size);
  if (!body && size > kMaxSkipped) {
    socket.close();
    return RedisReply();
  }
  if (body ? !socket.read(*body, deadline) : !socket.skip(size, deadline)) return std::nullopt;
  std::array<char, 2> end = {};
  if (!socket.read(std::as_writable_bytes(std::span(end)), deadline)) return std::nullopt;
  if (end != std::array{'\r', '\n'}) return broken(socket);
  return RedisReply{body ? RedisReply::Kind::kString : RedisReply::Kind::kNil};
}

// "$size\r\n" and as many bytes: straight to where they belong, however many.
Reply read_item(ServerSocket& socket, Deadline deadline, const ItemRoom& room) {
  const std::optional<std::string_view> line = socket.read_line(deadline);
  if (!line) return std::nullopt;
  if (*line == "$-1") return RedisReply();
  std::uint64_t size = 0;
  const char* const last = line->data() + line->size();
  const auto [end, error] = std::from_chars(line->data() + 1, last, size);
  if (error != std::errc() || end != last) return broken(socket);
  ItemKind kind = {};
  if (size > 0 && !socket.read(std::as_writable_bytes(std::span(&kind, 1)), deadline)) {
    return std::nullopt;
  }
  // GETRANGE gives an empty string for a key that is not there, and we store none.
  const auto nowhere = [](ItemKind, std::uint64_t) { return std::nullopt; };
  return size == 0 ? read_body(socket, deadline, kind, 0, nowhere)
                   : read_body(socket, deadline, kind, size - 1, room);
}

Reply read_reply(ServerSocket& socket, Deadline deadline, const ItemRoom* room) {
  if (!socket.fill(deadline)) return std::nullopt;
  if (room != nullptr && socket.buffered().front() == '$') {
    return read_item(socket, deadline, *room);
  }
  RedisReplyReader reader;
  while (true) {
    const std::string_view arrived = socket.buffered();
    const RedisReplyReader::State state = reader.feed(arrived);
    if (state == RedisReplyReader::State::kBad) return broken(socket);
    socket.consume(arrived.size());
    if (state == RedisReplyReader::State::kDone) return reader.take();
    if (!socket.fill(deadline)) return std::nullopt;
  }
}

bool says_ok(ServerSocket& socket, Deadline deadline, const RedisCommand& command) {
  if (!socket.send(command.pieces(), deadline)) return false;
  const Reply reply = read_reply(socket, deadline, nullptr);
  return reply && reply->kind == RedisReply::Kind::kStatus;
}

ServerPool::Greeting greeting_of(const RedisStoreOptions& options) {
  return [user = options.user, password = options.password, database = options.database](
             ServerSocket& socket, Deadline deadline) {
    if (!password.empty()) {
      const RedisCommand login =
          user.empty() ? RedisCommand{"AUTH", password} : RedisCommand{"AUTH", user, password};
      if (!says_ok(socket, deadline, login)) return false;
    }
    return database == 0 || says_ok(socket, deadline, {"SELECT", std::to_string(database)});
  };
}

Reply converse(ServerSocket& socket, const RedisRequest& request, Deadline deadline, bool asking) {
  if (asking && !says_ok(socket, deadline, {"ASKING"})) return broken(socket);
  if (!socket.send(request.command.pieces(), deadline)) return std::nullopt;
  Reply reply = read_reply(socket, deadline, request.room);
  if (!reply) return std::nullopt;
  if (reply->kind == RedisReply::Kind::kError) {
    // A master no longer: behind its name or address another may listen by now.
    if (is_error(*reply, "READONLY")) socket.close();
  } else if (reply->kind != request.expected && reply->kind != RedisReply::Kind::kNil) {
    return broken(socket);  // The answer to another question.
  }
  return reply;
}

}  // namespace

RedisNode::RedisNode(Endpoint endpoint, const RedisStoreOptions& options)
    : pool_(std::move(endpoint), options.connections, greeting_of(options)) {}

Reply RedisNode::call(const RedisRequest& request, Deadline deadline, bool asking) {
  const Deadline start = Clock::now();
  Reply reply;
  pool_.run(deadline, [&](ServerSocket& socket) {
    reply = converse(socket, request, deadline, asking);
    return reply.has_value();
  });
  const Deadline now = Clock::now();
  if (is_answer(reply)) {
    rests_until_.store(0);
  } else if (now < deadline || now - start >= kPatience) {
    rests_until_.store((now + kRest).time_since_epoch().count());
  }
  return reply;
}

bool RedisNode::rests() const noexcept {
  return Clock::now().time_since_epoch().count() < rests_until_.load();
}

bool is_answer(const Reply& reply) {
  return reply && !is_error(*reply, "LOADING") && !is_error(*reply, "MASTERDOWN");
}

bool is_error(const RedisReply& reply, std::string_view word) {
  return reply.kind == RedisReply::Kind::kError && reply.text.starts_with(word);
}

StoreStatus status_of(const Reply& reply) {
  if (!reply) return StoreStatus::kUnavailable;
  // Another program's key: for us there is nothing.
  if (reply->kind == RedisReply::Kind::kNil || is_error(*reply, "WRONGTYPE")) {
    return StoreStatus::kMiss;
  }
  return reply->kind == RedisReply::Kind::kError ? StoreStatus::kUnavailable : StoreStatus::kOk;
}

}  // namespace incipit::store
