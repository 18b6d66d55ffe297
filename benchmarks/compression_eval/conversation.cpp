// SPDX-License-Identifier: Apache-2.0
#include "conversation.h"

#include <algorithm>
#include <array>
#include <map>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace bench {
namespace {

using incipit::Message;
using incipit::Role;
using nlohmann::json;

constexpr std::array<std::pair<std::string_view, Role>, 4> kRoles{{{"system", Role::kSystem},
                                                                   {"user", Role::kUser},
                                                                   {"assistant", Role::kAssistant},
                                                                   {"tool", Role::kTool}}};

Role role_of(const std::string& name) {
  for (const auto& [text, role] : kRoles) {
    if (text == name) return role;
  }
  throw std::runtime_error("unknown role \"" + name + "\"");
}

Message turn_from(const json& value) {
  Message turn;
  turn.id = value.at("id").is_string() ? value["id"].get<std::string>() : value["id"].dump();
  turn.role = role_of(value.at("role").get<std::string>());
  turn.text = value.at("text").get<std::string>();
  turn.tool_call_id = value.value("tool_call_id", "");
  for (const json& call : value.value("tool_calls", json::array())) {
    turn.tool_calls.push_back({call.at("id").get<std::string>(), call.at("name").get<std::string>(),
                               call.at("arguments").get<std::string>()});
  }
  return turn;
}

Conversation conversation_from(const json& value) {
  Conversation conversation;
  std::map<std::string, std::size_t> number_of;
  for (const json& turn : value.at("turns")) {
    conversation.turns.push_back(turn_from(turn));
    number_of[conversation.turns.back().id] = conversation.turns.size() - 1;
  }
  const auto number = [&](const json& id) {
    const auto found = number_of.find(id.is_string() ? id.get<std::string>() : id.dump());
    if (found == number_of.end()) throw std::runtime_error("no turn has the id " + id.dump());
    return found->second;
  };
  for (const json& question : value.value("questions", json::array())) {
    Question asked{number(question.at("after")), question.at("text").get<std::string>(), {}};
    for (const json& id : question.at("evidence")) asked.evidence.push_back(number(id));
    conversation.questions.push_back(std::move(asked));
  }
  std::stable_sort(conversation.questions.begin(), conversation.questions.end(),
                   [](const Question& a, const Question& b) { return a.after < b.after; });
  return conversation;
}

bool is_plain(const Message& message) {
  return message.tool_calls.empty() && message.tool_call_id.empty();
}

nlohmann::ordered_json to_json(const Conversation& conversation) {
  nlohmann::ordered_json turns = json::array(), questions = json::array();
  for (const Message& turn : conversation.turns) {
    const auto* const role = std::find_if(kRoles.begin(), kRoles.end(),
                                          [&](const auto& one) { return one.second == turn.role; });
    nlohmann::ordered_json value{{"id", turn.id}, {"role", role->first}, {"text", turn.text}};
    for (const incipit::ToolCall& call : turn.tool_calls) {
      value["tool_calls"].push_back(
          {{"id", call.id}, {"name", call.name}, {"arguments", call.arguments}});
    }
    if (!turn.tool_call_id.empty()) value["tool_call_id"] = turn.tool_call_id;
    turns.push_back(std::move(value));
  }
  for (const Question& question : conversation.questions) {
    nlohmann::ordered_json evidence = json::array();
    for (const std::size_t turn : question.evidence) {
      evidence.push_back(conversation.turns[turn].id);
    }
    questions.push_back({{"after", conversation.turns[question.after].id},
                         {"text", question.text},
                         {"evidence", std::move(evidence)}});
  }
  return {{"turns", std::move(turns)}, {"questions", std::move(questions)}};
}

}  // namespace

std::vector<Conversation> conversations_from(const json& document) {
  std::vector<Conversation> conversations;
  for (const json& value : document.at("conversations")) {
    conversations.push_back(conversation_from(value));
  }
  return conversations;
}

nlohmann::ordered_json to_json(const std::vector<Conversation>& conversations) {
  nlohmann::ordered_json values = json::array();
  for (const Conversation& conversation : conversations) values.push_back(to_json(conversation));
  return {{"conversations", std::move(values)}};
}

Merged merge_turns(const std::vector<Message>& turns) {
  Merged merged;
  for (const Message& turn : turns) {
    Message* const last = merged.messages.empty() ? nullptr : &merged.messages.back();
    if (last != nullptr && last->role == turn.role && is_plain(*last) && is_plain(turn)) {
      last->text += "\n" + turn.text;
    } else {
      merged.messages.push_back(turn);
    }
    merged.message_of.push_back(merged.messages.size() - 1);
  }
  return merged;
}

}  // namespace bench
