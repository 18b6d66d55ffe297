// SPDX-License-Identifier: Apache-2.0
#include "store/redis_reply.h"

#include <string>

#include "fuzz/corpus.h"
#include "fuzz/mutations.h"
#include "support/catch.h"

namespace incipit::store {
namespace {

using Kind = RedisReply::Kind;
using State = RedisReplyReader::State;

// What the bytes say, all at once.
RedisReply parse(std::string_view bytes) {
  RedisReplyReader reader;
  REQUIRE(reader.feed(bytes) == State::kDone);
  return reader.take();
}

State state_of(std::string_view bytes) { return RedisReplyReader().feed(bytes); }

TEST_CASE("replies of all kinds are read") {
  CHECK(parse("+OK\r\n").kind == Kind::kStatus);
  CHECK(parse("+OK\r\n").text == "OK");
  CHECK(parse("-ERR no\r\n").kind == Kind::kError);
  CHECK(parse("-ERR no\r\n").text == "ERR no");
  CHECK(parse(":-12\r\n").kind == Kind::kInteger);
  CHECK(parse(":-12\r\n").integer == -12);
  CHECK(parse("$-1\r\n").kind == Kind::kNil);
  CHECK(parse("*-1\r\n").kind == Kind::kNil);
  CHECK(parse("$0\r\n\r\n").kind == Kind::kString);
  CHECK(parse(std::string("$4\r\na\0\r\n\r\n", 10)).text == std::string("a\0\r\n", 4));
  CHECK(parse("*0\r\n").kind == Kind::kArray);
  const RedisReply nested = parse("*2\r\n*2\r\n:1\r\n$1\r\na\r\n*1\r\n*1\r\n$-1\r\n");
  REQUIRE(nested.elements.size() == 2);
  REQUIRE(nested.elements[0].elements.size() == 2);
  CHECK(nested.elements[0].elements[0].integer == 1);
  CHECK(nested.elements[0].elements[1].text == "a");
  CHECK(nested.elements[1].elements.at(0).elements.at(0).kind == Kind::kNil);
}

TEST_CASE("a reply may come in any pieces") {
  const std::string bytes = "*3\r\n:7\r\n*2\r\n$5\r\nhello\r\n+OK\r\n$-1\r\n";
  for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
    RedisReplyReader reader;
    CHECK(reader.feed(bytes.substr(0, cut)) == State::kMore);
    REQUIRE(reader.feed(bytes.substr(cut)) == State::kDone);
    CHECK(reader.take().elements.at(1).elements.at(0).text == "hello");
  }
}

TEST_CASE("what is no reply, or more than one, is bad") {
  for (const char* bytes : {"hello\r\n", "\r\n", "+OK\r\n+OK\r\n", "+OK\r\nx", "$x\r\n", "*x\r\n",
                            "*1\r\n?\r\n", "$-2\r\n", ":x\r\n"}) {
    INFO(bytes);
    CHECK(state_of(bytes) == State::kBad);
  }
}

TEST_CASE("a reply cannot ask for more than its share of memory") {
  CHECK(state_of("*2147483647\r\n") == State::kBad);
  CHECK(state_of("*-2147483648\r\n") == State::kBad);
  CHECK(state_of("*99999999999999999999\r\n") == State::kBad);
  CHECK(state_of("*262144\r\n") == State::kMore);
  CHECK(state_of("*262145\r\n") == State::kBad);
  CHECK(state_of("*2\r\n*262143\r\n") == State::kBad);
  // Deeper than any reply of Redis.
  std::string deep;
  for (int i = 0; i < 32; ++i) deep += "*1\r\n";
  CHECK(state_of(deep) == State::kBad);
}

TEST_CASE("a reply without end ends") {
  const std::string_view start = GENERATE("+", "*1\r\n+", "*1\r\n$4000000000\r\n");
  RedisReplyReader reader;
  State state = reader.feed(start);
  const std::string more(16384, 'a');
  std::size_t fed = 0;
  for (; state == State::kMore; fed += more.size()) {
    REQUIRE(fed <= RedisReplyReader::kMaxBytes);
    state = reader.feed(more);
  }
  CHECK(state == State::kBad);
  if (start == "+") CHECK(fed <= RedisReplyReader::kMaxBytesOfLine + more.size());
}

TEST_CASE("replies of Redis survive mutations") {
  fuzz::run_corpus(fuzz::kRedisReply, "redis_reply");
  fuzz::run_mutations(fuzz::kRedisReply, 20'000);
}

}  // namespace
}  // namespace incipit::store
