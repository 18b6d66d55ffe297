// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "store/memcached_ring.h"
#include "store/server_pool.h"
#include "store/split_value.h"

// memcached's text protocol over our own sockets: libmemcached, which chooses the server, waits for
// each piece of a reply anew and can so keep a caller for any time.

namespace incipit::inline v0 {
namespace {

using store::ItemKind;
using store::ServerSocket;
using Seconds = std::chrono::seconds;
using Status = std::optional<StoreStatus>;  // none: no answer, or no sound one

// What an item takes besides its body: the server's header, the key, our first byte.
constexpr std::uint64_t kItemOverhead = 512;
constexpr std::uint64_t kMinValue = 1024;
// Longer times to live are dates for the server.
constexpr Seconds kLongestTime = std::chrono::hours(24 * 30);

std::int64_t expiry_of(Seconds time_to_live) {
  if (time_to_live <= kLongestTime) return time_to_live.count();
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const Seconds date = std::chrono::duration_cast<Seconds>(now) + time_to_live;
  return std::min<std::int64_t>(date.count(), std::numeric_limits<std::int32_t>::max());
}

Status broken(ServerSocket& socket) {
  socket.close();
  return std::nullopt;
}

// "VALUE name flags size" of the item that was asked for.
std::optional<std::uint64_t> size_of_item(std::string_view line, std::string_view name) {
  for (const std::string_view expected : {std::string_view("VALUE "), name}) {
    if (!line.starts_with(expected)) return std::nullopt;
    line.remove_prefix(expected.size());
  }
  std::array<std::uint64_t, 2> numbers = {};  // flags, size
  for (std::uint64_t& number : numbers) {
    if (!line.starts_with(' ')) return std::nullopt;
    line.remove_prefix(1);
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
    if (error != std::errc()) return std::nullopt;
    line = {end, static_cast<std::size_t>(line.data() + line.size() - end)};
  }
  return line.empty() ? std::optional(numbers[1]) : std::nullopt;
}

// Where a server does not understand us, what follows on the connection is not to be trusted.
Status refusal(ServerSocket& socket, std::string_view line) {
  if (!line.starts_with("SERVER_ERROR")) return broken(socket);
  return line.find("too large") == std::string_view::npos ? StoreStatus::kUnavailable
                                                          : StoreStatus::kTooLarge;
}

class MemcachedStore final : public store::SplitStore {
 public:
  MemcachedStore(const MemcachedStoreOptions& options, const std::vector<store::Endpoint>& servers)
      : SplitStore(options.key_prefix, options.max_value_bytes - kItemOverhead), ring_(servers) {
    for (const store::Endpoint& server : servers) {
      pools_.push_back(std::make_unique<store::ServerPool>(server, options.connections));
    }
  }

  std::string_view name() const noexcept override { return "memcached"; }

 private:
  StoreStatus read_item(const std::string& name, bool, Deadline deadline,
                        store::ItemRoom room) override {
    const std::string line = "get " + name + "\r\n";
    const std::array<base::Bytes, 1> pieces = {base::as_bytes(line)};
    return converse(name, pieces, deadline, [&](ServerSocket& socket) {
      return read_item_reply(socket, name, deadline, room);
    });
  }

  StoreStatus write_item(const std::string& name, ItemKind kind, base::Bytes body,
                         Seconds time_to_live, Deadline deadline) override {
    std::string line = "set " + name + " 0 " + std::to_string(expiry_of(time_to_live)) + " " +
                       std::to_string(body.size() + 1) + "\r\n";
    line += static_cast<char>(kind);
    const std::array<base::Bytes, 3> pieces = {base::as_bytes(line), body, base::as_bytes("\r\n")};
    return converse(name, pieces, deadline, [&](ServerSocket& socket) -> Status {
      const std::optional<std::string_view> reply = socket.read_line(deadline);
      if (!reply) return std::nullopt;
      if (*reply == "STORED") return StoreStatus::kOk;
      return refusal(socket, *reply);
    });
  }

  StoreStatus erase_item(const std::string& name, Deadline deadline) override {
    const std::string line = "delete " + name + "\r\n";
    const std::array<base::Bytes, 1> pieces = {base::as_bytes(line)};
    return converse(name, pieces, deadline, [&](ServerSocket& socket) -> Status {
      const std::optional<std::string_view> reply = socket.read_line(deadline);
      if (!reply) return std::nullopt;
      if (*reply == "DELETED" || *reply == "NOT_FOUND") return StoreStatus::kOk;
      return refusal(socket, *reply);
    });
  }

  Status read_item_reply(ServerSocket& socket, std::string_view name, Deadline deadline,
                         const store::ItemRoom& room) {
    const std::optional<std::string_view> line = socket.read_line(deadline);
    if (!line) return std::nullopt;
    if (*line == "END") return StoreStatus::kMiss;
    if (!line->starts_with("VALUE ")) return refusal(socket, *line);
    const std::optional<std::uint64_t> size = size_of_item(*line, name);
    if (!size) return broken(socket);
    if (*size == 0 || *size - 1 > max_body()) {  // Not ours, and perhaps without end.
      socket.close();
      return StoreStatus::kMiss;
    }
    ItemKind kind = {};
    if (!socket.read(std::as_writable_bytes(std::span(&kind, 1)), deadline)) return std::nullopt;
    const std::optional<std::span<std::byte>> body = room(kind, *size - 1);
    if (body ? !socket.read(*body, deadline) : !socket.skip(*size - 1, deadline)) {
      return std::nullopt;
    }
    std::array<char, 7> end = {};
    if (!socket.read(std::as_writable_bytes(std::span(end)), deadline)) return std::nullopt;
    if (std::string_view(end.data(), end.size()) != "\r\nEND\r\n") return broken(socket);
    return body ? StoreStatus::kOk : StoreStatus::kMiss;
  }

  // Sends `pieces` to the server that has `name`, and has `reply` read what it says.
  StoreStatus converse(std::string_view name, std::span<const base::Bytes> pieces,
                       Deadline deadline, base::FunctionRef<Status(ServerSocket&)> reply) {
    StoreStatus status = StoreStatus::kUnavailable;
    pools_[ring_.server_of(name)]->run(deadline, [&](ServerSocket& socket) {
      if (!socket.send(pieces, deadline)) return false;
      const Status answer = reply(socket);
      if (answer) status = *answer;
      return answer.has_value();
    });
    return status;
  }

  store::MemcachedRing ring_;
  std::vector<std::unique_ptr<store::ServerPool>> pools_;  // one per server
};

void check(bool good, const std::string& message) {
  if (!good) base::throw_error(ErrorCode::kInvalidArgument, message);
}

void check(const MemcachedStoreOptions& options) {
  check(!options.servers.empty(), "a memcached store needs at least one server");
  check(options.key_prefix.size() <= store::SplitStore::kMaxPrefix &&
            std::all_of(options.key_prefix.begin(), options.key_prefix.end(),
                        [](char c) { return c > ' ' && c != '\x7f'; }),
        "the key prefix of a memcached store must be at most 128 visible ASCII characters");
  check(options.connections > 0, "a memcached store needs at least one connection");
  check(options.max_value_bytes >= kMinValue, "max_value_bytes must be at least 1024");
}

}  // namespace

std::shared_ptr<Store> make_memcached_store(MemcachedStoreOptions options) {
  check(options);
  std::vector<store::Endpoint> servers;
  for (const std::string& text : options.servers) {
    const std::optional<store::Endpoint> server = store::parse_endpoint(text);
    check(server.has_value(), "'" + text + "' is no address of a memcached server; say host:port");
    servers.push_back(*server);
  }
  return std::make_shared<MemcachedStore>(options, servers);
}

}  // namespace incipit::inline v0
