// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BENCHMARKS_COMPRESSION_EVAL_CONVERSATION_H_
#define INCIPIT_BENCHMARKS_COMPRESSION_EVAL_CONVERSATION_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "incipit/message.h"

namespace bench {

/// Asked once the message that holds turn `after` is there. `evidence` are the turns that answer
/// it.
struct Question {
  std::size_t after = 0;
  std::string text;
  std::vector<std::size_t> evidence;
};

struct Conversation {
  std::vector<incipit::Message> turns;
  std::vector<Question> questions;
};

/// {"conversations": [{"turns": [{"id", "role", "text"}...],
///                     "questions": [{"after", "text", "evidence"}...]}...]}
/// A turn may also have "tool_calls" ([{"id", "name", "arguments"}...]) or a "tool_call_id".
/// Throws std::runtime_error for anything else.
std::vector<Conversation> conversations_from(const nlohmann::json& document);
nlohmann::ordered_json to_json(const std::vector<Conversation>& conversations);

/// Neighbouring turns of one role as one message, tool calls and their results aside.
/// `message_of[turn]` is the message that holds a turn.
struct Merged {
  std::vector<incipit::Message> messages;
  std::vector<std::size_t> message_of;
};
Merged merge_turns(const std::vector<incipit::Message>& turns);

}  // namespace bench

#endif  // INCIPIT_BENCHMARKS_COMPRESSION_EVAL_CONVERSATION_H_
