// SPDX-License-Identifier: Apache-2.0
#include "store/redis_command.h"

namespace incipit::store {
namespace {

// What is in front of an array or a string: "*3\r\n", "$5\r\n".
void append_count(std::string& text, char kind, std::size_t count) {
  text += kind;
  text += std::to_string(count);
  text += "\r\n";
}

}  // namespace

RedisCommand::RedisCommand(std::size_t count) { append_count(front_, '*', count); }

RedisCommand::RedisCommand(std::initializer_list<std::string_view> words)
    : RedisCommand(words.size()) {
  for (const std::string_view word : words) add(word);
}

RedisCommand& RedisCommand::add(std::string_view word) {
  std::string& text = back_.empty() ? front_ : back_;
  append_count(text, '$', word.size());
  text += word;
  text += "\r\n";
  return *this;
}

RedisCommand& RedisCommand::add(ItemKind kind, base::Bytes body) {
  append_count(front_, '$', body.size() + 1);
  front_ += static_cast<char>(kind);
  body_ = body;
  back_ = "\r\n";
  return *this;
}

}  // namespace incipit::store
