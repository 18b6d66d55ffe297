// SPDX-License-Identifier: Apache-2.0
#include "store/redis_slots.h"

#include <string>

#include "support/catch.h"

namespace incipit::store {
namespace {

using Kind = RedisReply::Kind;

const Endpoint kAsked = {"10.0.0.1", 7000};

RedisReply integer(long long value) { return {Kind::kInteger, {}, value, {}}; }
RedisReply text(std::string value) { return {Kind::kString, std::move(value), 0, {}}; }
RedisReply array(std::vector<RedisReply> elements) { return {Kind::kArray, {}, 0, elements}; }
RedisReply error(std::string value) { return {Kind::kError, std::move(value), 0, {}}; }

RedisReply range(long long first, long long last, RedisReply host, RedisReply port) {
  return array({integer(first), integer(last), array({host, port, text("id")}),
                array({text("10.0.0.9"), integer(7009), text("replica")})});
}

TEST_CASE("keys have the slots that Redis gives them") {
  // As CLUSTER KEYSLOT answers.
  CHECK(redis_slot("") == 0);
  CHECK(redis_slot("123456789") == 12739);  // 0x31c3
  CHECK(redis_slot("foo") == 12182);
  CHECK(redis_slot("somekey") == 11058);
  CHECK(redis_slot("foo{hash_tag}") == 2515);
  CHECK(redis_slot("bar{hash_tag}") == 2515);
  // The first tag counts, if something is in it.
  CHECK(redis_slot("{foo}{bar}") == redis_slot("foo"));
  CHECK(redis_slot("a{foo}b") == redis_slot("foo"));
  CHECK(redis_slot("a{{foo}}") == redis_slot("{foo"));
  CHECK(redis_slot("a{}{foo}") != redis_slot("foo"));
  CHECK(redis_slot("a{foo") != redis_slot("foo"));
  CHECK(redis_slot("}foo{") != redis_slot("foo"));
}

TEST_CASE("a map of slots is read") {
  const auto ranges = parse_redis_slots(
      array({range(0, 5460, text("10.0.0.2"), integer(7001)),
             range(5461, 16383, text(""), integer(7002)), range(7, 7, RedisReply(), integer(7003)),
             range(8, 8, text("?"), integer(7004))}),
      kAsked);
  REQUIRE(ranges);
  REQUIRE(ranges->size() == 4);
  CHECK(ranges->at(0).first == 0);
  CHECK(ranges->at(0).last == 5460);
  CHECK(ranges->at(0).master == Endpoint{"10.0.0.2", 7001});
  CHECK(ranges->at(1).master == Endpoint{"10.0.0.1", 7002});
  CHECK(ranges->at(2).master == Endpoint{"10.0.0.1", 7003});
  CHECK(ranges->at(3).master == Endpoint{"10.0.0.1", 7004});
}

TEST_CASE("a map of slots that is out of order is no map") {
  const RedisReply good = range(0, 1, text("h"), integer(1));
  REQUIRE(parse_redis_slots(array({good}), kAsked));
  const std::vector<RedisReply> bad = {
      integer(1),
      RedisReply(),
      array({}),
      array({}),
      array({integer(0)}),
      array({integer(0), integer(1)}),
      array({integer(0), text("1"), array({text("h"), integer(1)})}),
      array({integer(0), integer(1), text("h")}),
      array({integer(0), integer(1), array({text("h")})}),
      range(-1, 1, text("h"), integer(1)),
      range(2, 1, text("h"), integer(1)),
      range(0, 16384, text("h"), integer(1)),
      range(0, 1, integer(1), integer(1)),
      range(0, 1, text("h"), text("1")),
      range(0, 1, text("h"), integer(0)),
      range(0, 1, text("h"), integer(65536)),
      range(0, 1, text(std::string(254, 'h')), integer(1)),
  };
  for (std::size_t i = 0; i < bad.size(); ++i) {
    INFO(i);
    CHECK_FALSE(parse_redis_slots(array({good, bad[i]}), kAsked));
    CHECK_FALSE(parse_redis_slots(bad[i], kAsked));
  }
  CHECK_FALSE(parse_redis_slots(array(std::vector<RedisReply>(kRedisSlots + 1, good)), kAsked));
  CHECK_FALSE(parse_redis_slots(error("ERR This instance has cluster support disabled"), kAsked));
}

TEST_CASE("redirections are read") {
  const auto moved = parse_redis_redirection(error("MOVED 3999 127.0.0.1:6381"), kAsked);
  REQUIRE(moved);
  CHECK_FALSE(moved->ask);
  CHECK(moved->to == Endpoint{"127.0.0.1", 6381});
  const auto ask = parse_redis_redirection(error("ASK 1 ::1:6381"), kAsked);
  REQUIRE(ask);
  CHECK(ask->ask);
  CHECK(ask->to == Endpoint{"::1", 6381});
  const auto itself = parse_redis_redirection(error("MOVED 3999 :6381"), kAsked);
  REQUIRE(itself);
  CHECK(itself->to == Endpoint{"10.0.0.1", 6381});
  for (const char* other :
       {"", "MOVED", "MOVED ", "MOVED 1", "MOVED 1 ", "MOVED 1 host", "ASK 1 h:", "MOVED 1 h:0",
        "MOVED 1 h:65536", "MOVED 1 h:1x", "MOVED 1 h:-1", "OOM x", "MOVEDX 1 h:1"}) {
    INFO(other);
    CHECK_FALSE(parse_redis_redirection(error(other), kAsked));
  }
  CHECK_FALSE(parse_redis_redirection(text("MOVED 3999 127.0.0.1:6381"), kAsked));
}

}  // namespace
}  // namespace incipit::store
