// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include "base/check.h"
#include "store/redis_topology.h"
#include "store/split_value.h"

namespace incipit::inline v0 {
namespace {

using store::ItemKind;
using store::RedisCommand;
using store::RedisReply;
using store::RedisRequest;
using Kind = store::RedisReply::Kind;

// Room for a manifest; less makes no sense anyhow.
constexpr std::uint64_t kMinValue = 1024;

class RedisStore final : public store::SplitStore {
 public:
  explicit RedisStore(const RedisStoreOptions& options)
      : SplitStore(options.key_prefix, options.max_value_bytes - 1),
        name_(options.cluster ? "redis_cluster" : "redis"),
        servers_(options.cluster ? store::make_redis_cluster(options)
                                 : store::make_redis_single(options)) {}

  std::string_view name() const noexcept override { return name_; }

 private:
  StoreStatus read_item(const std::string& name, bool front, Deadline deadline,
                        store::ItemRoom room) override {
    const RedisCommand command =
        front ? RedisCommand{"GETRANGE", name, "0", std::to_string(kManifestBytes)}
              : RedisCommand{"GET", name};
    return store::status_of(
        servers_->call(RedisRequest{name, command, Kind::kString, &room}, true, deadline));
  }

  StoreStatus write_item(const std::string& name, ItemKind kind, base::Bytes body,
                         std::chrono::seconds time_to_live, Deadline deadline) override {
    const bool expires = time_to_live.count() > 0;
    RedisCommand command(expires ? 5 : 3);
    command.add("SET").add(name).add(kind, body);
    if (expires) command.add("EX").add(std::to_string(time_to_live.count()));
    return change({name, command, Kind::kStatus}, deadline);
  }

  StoreStatus erase_item(const std::string& name, Deadline deadline) override {
    return change({name, {"DEL", name}, Kind::kInteger}, deadline);
  }

  StoreStatus change(const RedisRequest& request, Deadline deadline) {
    // There is no miss here: that would be nil, which neither command answers.
    const StoreStatus status = store::status_of(servers_->call(request, false, deadline));
    return status == StoreStatus::kOk ? status : StoreStatus::kUnavailable;
  }

  std::string_view name_;
  std::unique_ptr<store::RedisTopology> servers_;
};

void check(bool good, const char* message) {
  if (!good) base::throw_error(ErrorCode::kInvalidArgument, message);
}

void check(const RedisStoreOptions& options) {
  check(!options.host.empty() && options.port != 0, "a Redis store needs host and port");
  for (const auto& [host, port] : options.replicas) {
    check(!host.empty() && port != 0, "a replica of a Redis store needs host and port");
  }
  check(!options.cluster || (options.replicas.empty() && options.database == 0),
        "a Redis Cluster has no database but 0, and knows its replicas itself");
  check(options.user.empty() || !options.password.empty(),
        "a user of a Redis store needs a password");
  check(options.database >= 0, "the database of a Redis store must not be negative");
  check(options.key_prefix.size() <= store::SplitStore::kMaxPrefix,
        "the key prefix of a Redis store must not exceed 128 bytes");
  check(options.connections > 0, "a Redis store needs at least one connection");
  check(options.max_value_bytes >= kMinValue, "max_value_bytes must be at least 1024");
}

}  // namespace

std::shared_ptr<Store> make_redis_store(RedisStoreOptions options) {
  check(options);
  return std::make_shared<RedisStore>(options);
}

}  // namespace incipit::inline v0
