// SPDX-License-Identifier: Apache-2.0
#include "store/redis_reply.h"

#include <hiredis.h>

#include <exception>
#include <new>
#include <utility>

namespace incipit::store {
namespace {

// Elements that the replies of one reader may still have.
using Budget = std::size_t;

// Where the object that `task` is about belongs: in its array, or on its own. Null for lack of
// memory, which hiredis takes for a failure; exceptions must not pass through it.
RedisReply* place(const redisReadTask* task) noexcept {
  if (task->parent != nullptr && task->parent->obj != nullptr) {
    return &static_cast<RedisReply*>(task->parent->obj)
                ->elements[static_cast<std::size_t>(task->idx)];
  }
  return new (std::nothrow) RedisReply;
}

void destroy(void* object) { delete static_cast<RedisReply*>(object); }

// Of an object that is no one's yet: an element goes with its array.
void* abandon(const redisReadTask* task, RedisReply* object) noexcept {
  if (task->parent == nullptr) destroy(object);
  return nullptr;
}

void* create_string(const redisReadTask* task, char* text, std::size_t size) {
  RedisReply* const object = place(task);
  if (object == nullptr) return nullptr;
  object->kind = task->type == REDIS_REPLY_STATUS  ? RedisReply::Kind::kStatus
                 : task->type == REDIS_REPLY_ERROR ? RedisReply::Kind::kError
                                                   : RedisReply::Kind::kString;
  try {
    object->text.assign(text, size);
  } catch (const std::exception&) {
    return abandon(task, object);
  }
  return object;
}

void* create_array(const redisReadTask* task, int elements) {
  const auto count = static_cast<std::size_t>(elements < 0 ? 0 : elements);
  Budget& budget = *static_cast<Budget*>(task->privdata);
  if (count > budget) return nullptr;
  budget -= count;
  RedisReply* const object = place(task);
  if (object == nullptr) return nullptr;
  object->kind = RedisReply::Kind::kArray;
  try {
    object->elements.resize(count);
  } catch (const std::exception&) {
    return abandon(task, object);
  }
  return object;
}

void* create_integer(const redisReadTask* task, long long value) {
  RedisReply* const object = place(task);
  if (object == nullptr) return nullptr;
  object->kind = RedisReply::Kind::kInteger;
  object->integer = value;
  return object;
}

void* create_nil(const redisReadTask* task) { return place(task); }

}  // namespace

struct RedisReplyReader::Parser {
  Parser() : reader(redisReaderCreateWithFunctions(&functions)) {
    if (reader == nullptr) throw std::bad_alloc();
    reader->privdata = &budget;
  }
  ~Parser() { redisReaderFree(reader); }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  redisReplyObjectFunctions functions = {create_string, create_array, create_integer, create_nil,
                                         destroy};
  Budget budget = kMaxElements;
  redisReader* reader;
};

RedisReplyReader::RedisReplyReader() : parser_(std::make_unique<Parser>()) {}
RedisReplyReader::~RedisReplyReader() = default;

RedisReplyReader::State RedisReplyReader::feed(std::string_view bytes) {
  redisReader* const reader = parser_->reader;
  if (fed_ == 0) limit_ = bytes.starts_with('*') ? kMaxBytes : kMaxBytesOfLine;
  fed_ += bytes.size();
  void* object = nullptr;
  if (fed_ > limit_ || redisReaderFeed(reader, bytes.data(), bytes.size()) != REDIS_OK ||
      redisReaderGetReply(reader, &object) != REDIS_OK) {
    return State::kBad;
  }
  if (object == nullptr) return State::kMore;
  const std::unique_ptr<RedisReply> reply(static_cast<RedisReply*>(object));
  if (reader->pos != reader->len) return State::kBad;
  reply_ = std::move(*reply);
  return State::kDone;
}

}  // namespace incipit::store
