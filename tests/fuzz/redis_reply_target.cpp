// SPDX-License-Identifier: Apache-2.0
#include "fuzz/target.h"
#include "store/redis_reply.h"
#include "store/redis_slots.h"

namespace incipit::fuzz {
namespace {

// In two pieces, as a socket may deliver it, and then through all who take a reply apart.
void run(std::string_view bytes) {
  store::RedisReplyReader reader;
  const std::size_t half = bytes.size() / 2;
  store::RedisReplyReader::State state = reader.feed(bytes.substr(0, half));
  if (state == store::RedisReplyReader::State::kMore) state = reader.feed(bytes.substr(half));
  if (state != store::RedisReplyReader::State::kDone) return;
  const store::RedisReply reply = reader.take();
  const store::Endpoint asked = {"127.0.0.1", 7000};
  store::parse_redis_slots(reply, asked);
  store::parse_redis_redirection(reply, asked);
}

std::vector<std::string> seeds() {
  return {"+OK\r\n",
          ":-7\r\n",
          "$5\r\nhello\r\n",
          "$-1\r\n",
          "-MOVED 3999 127.0.0.1:6381\r\n",
          "-ASK 3999 :6381\r\n",
          "*2\r\n*4\r\n:0\r\n:5460\r\n*4\r\n$9\r\n127.0.0.1\r\n:30001\r\n$2\r\nid\r\n*0\r\n"
          "*3\r\n$0\r\n\r\n:30004\r\n$2\r\nid\r\n*3\r\n:5461\r\n:16383\r\n*2\r\n$-1\r\n:30002\r\n"};
}

}  // namespace

constexpr Target kRedisReply = {run, seeds};

}  // namespace incipit::fuzz
