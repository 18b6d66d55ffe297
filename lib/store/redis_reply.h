// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_STORE_REDIS_REPLY_H_
#define INCIPIT_STORE_REDIS_REPLY_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace incipit::store {

/// What a Redis server answered.
struct RedisReply {
  enum class Kind { kNil, kStatus, kError, kInteger, kString, kArray };
  Kind kind = Kind::kNil;
  std::string text = {};  // of a status, an error, a string
  long long integer = 0;
  std::vector<RedisReply> elements = {};  // of an array
};

/// Reads one reply (RESP 2) from bytes of a stranger, by hiredis' parser. Values of any length do
/// not come this way; what does is limited, before memory is taken for it.
class RedisReplyReader {
 public:
  RedisReplyReader();
  ~RedisReplyReader();
  RedisReplyReader(const RedisReplyReader&) = delete;
  RedisReplyReader& operator=(const RedisReplyReader&) = delete;

  enum class State {
    kMore,  ///< The reply has not ended yet.
    kDone,
    kBad,  ///< No reply, too large a one, or something behind it.
  };
  /// The next bytes. After kDone or kBad the reader has had its day.
  State feed(std::string_view bytes);
  /// Once, after kDone.
  RedisReply take() { return std::move(reply_); }

  /// The map of a large cluster: 16,384 ranges of slots with three nodes each.
  static constexpr std::size_t kMaxBytes = 8u << 20;
  static constexpr std::size_t kMaxBytesOfLine = 1u << 16;  // of what is no array
  static constexpr std::size_t kMaxElements = 1u << 18;

 private:
  struct Parser;  // of hiredis

  std::unique_ptr<Parser> parser_;
  std::size_t fed_ = 0, limit_ = 0;  // bytes
  RedisReply reply_;
};

}  // namespace incipit::store

#endif  // INCIPIT_STORE_REDIS_REPLY_H_
