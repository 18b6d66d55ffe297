// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_STORE_REDIS_COMMAND_H_
#define INCIPIT_STORE_REDIS_COMMAND_H_

#include <array>
#include <initializer_list>
#include <string>
#include <string_view>

#include "store/split_value.h"

namespace incipit::store {

/// A command as Redis reads it: an array of strings of any bytes. An item's body is not copied;
/// it must live as long as the command.
class RedisCommand {
 public:
  RedisCommand(std::initializer_list<std::string_view> words);
  /// Of `count` words, which are to be added.
  explicit RedisCommand(std::size_t count);

  RedisCommand& add(std::string_view word);
  /// One item at most.
  RedisCommand& add(ItemKind kind, base::Bytes body);

  /// What is to be sent.
  std::array<base::Bytes, 3> pieces() const {
    return {base::as_bytes(front_), body_, base::as_bytes(back_)};
  }

 private:
  std::string front_;
  base::Bytes body_;
  std::string back_;  // what follows the body; empty where there is none
};

}  // namespace incipit::store

#endif  // INCIPIT_STORE_REDIS_COMMAND_H_
