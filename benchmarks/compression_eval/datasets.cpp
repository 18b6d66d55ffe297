// SPDX-License-Identifier: Apache-2.0
#include "datasets.h"

#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "examples/support.h"

namespace bench {
namespace {

using incipit::Message;
using incipit::Role;
using nlohmann::json;

std::string string_or_empty(const json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::vector<json> json_lines(const std::string& text) {
  std::vector<json> values;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) values.push_back(json::parse(line));
  }
  return values;
}

void say(Conversation& conversation, Role role, std::string text) {
  conversation.turns.push_back(
      {.role = role, .text = std::move(text), .id = std::to_string(conversation.turns.size() + 1)});
}

Conversation trajectory(const json& messages) {
  Conversation conversation;
  for (const json& value : messages) {
    const std::string role = value.at("role").get<std::string>();
    if (role == "system") continue;  // the replay has its own
    say(conversation, role == "user" ? Role::kUser : Role::kAssistant,
        string_or_empty(value.at("content")));
    Message& turn = conversation.turns.back();
    if (role == "tool") {
      turn.role = Role::kTool;
      turn.tool_call_id = value.at("tool_call_id").get<std::string>();
    }
    if (!value.contains("tool_calls") || value["tool_calls"].is_null()) continue;
    for (const json& call : value["tool_calls"]) {
      turn.tool_calls.push_back({call.at("id").get<std::string>(),
                                 call.at("function").at("name").get<std::string>(),
                                 call["function"].at("arguments").get<std::string>()});
    }
  }
  return conversation;
}

std::vector<Conversation> tau_bench(const std::string& text) {
  std::vector<Conversation> conversations;
  for (const json& run : json::parse(text)) conversations.push_back(trajectory(run.at("traj")));
  return conversations;
}

Conversation meeting(const json& value) {
  const json& transcript = value.at("meeting_transcripts");
  Conversation conversation;
  for (const json& part : transcript) {
    say(conversation, conversation.turns.size() % 2 == 0 ? Role::kUser : Role::kAssistant,
        part.at("speaker").get<std::string>() + ": " + part.at("content").get<std::string>());
  }
  for (const json& query : value.at("specific_query_list")) {
    Question question{conversation.turns.size() - 1, query.at("query").get<std::string>(), {}};
    std::set<std::size_t> evidence;
    for (const json& span : query.at("relevant_text_span")) {
      const std::size_t last = std::stoul(span.at(1).get<std::string>());
      for (std::size_t turn = std::stoul(span.at(0).get<std::string>());
           turn <= last && turn < conversation.turns.size(); ++turn) {
        evidence.insert(turn);
      }
    }
    question.evidence.assign(evidence.begin(), evidence.end());
    conversation.questions.push_back(std::move(question));
  }
  return conversation;
}

std::vector<Conversation> qmsum(const std::string& text) {
  std::vector<Conversation> conversations;
  for (const json& value : json_lines(text)) conversations.push_back(meeting(value));
  return conversations;
}

std::vector<Conversation> mt_bench(const std::string& text) {
  constexpr std::size_t kDialogues = 40;
  std::vector<Conversation> conversations;
  std::size_t count = 0;
  for (const json& dialogue : json_lines(text)) {
    if (count++ % kDialogues == 0) conversations.emplace_back();
    for (const json& round : dialogue.at("history")) {
      say(conversations.back(), Role::kUser, round.at("user").get<std::string>());
      say(conversations.back(), Role::kAssistant, round.at("bot").get<std::string>());
    }
  }
  return conversations;
}

/// What the system tells in a dialogue of CrossWOZ, as questions that name the place.
class CrossWoz {
 public:
  explicit CrossWoz(Conversation& conversation) : conversation_(conversation) {}

  void add(const json& dialogue) {
    std::map<std::string, std::string> place;  // the last one named, by domain
    for (const json& value : dialogue.at("messages")) {
      const bool user = value.at("role") == "usr";
      say(conversation_, user ? Role::kUser : Role::kAssistant,
          value.at("content").get<std::string>());
      for (const json& act : value.at("dialog_act")) {
        if (act.at(0) == "Inform" && act.at(2) == "名称") {
          place[act.at(1).get<std::string>()] = string_or_empty(act.at(3));
        }
      }
      if (!user) ask(value["dialog_act"], place);
    }
  }

 private:
  void ask(const json& acts, const std::map<std::string, std::string>& place) {
    std::set<std::string> asked;
    for (const json& act : acts) {
      const std::string slot = string_or_empty(act.at(2));
      const auto named = place.find(string_or_empty(act.at(1)));
      if (act.at(0) != "Inform" || slot == "名称" || named == place.end()) continue;
      if (named->second.empty() || !asked.insert(slot).second) continue;
      conversation_.questions.push_back(
          {0, named->second + "的" + slot + "是什么？", {conversation_.turns.size() - 1}});
    }
  }

  Conversation& conversation_;
};

std::vector<Conversation> crosswoz(const std::string& text) {
  constexpr std::size_t kDialogues = 20;
  std::vector<Conversation> conversations;
  std::size_t count = 0;
  const auto dialogues = nlohmann::ordered_json::parse(text);
  for (const nlohmann::ordered_json& dialogue : dialogues) {
    if (count++ % kDialogues == 0) conversations.emplace_back();
    CrossWoz(conversations.back()).add(dialogue);
  }
  for (Conversation& conversation : conversations) {
    for (Question& question : conversation.questions) {
      question.after = conversation.turns.size() - 1;
    }
  }
  return conversations;
}

std::vector<Conversation> parse(std::string_view dataset, const std::string& text) {
  if (dataset == "tau-bench") return tau_bench(text);
  if (dataset == "qmsum") return qmsum(text);
  if (dataset == "mt-bench-101") return mt_bench(text);
  if (dataset == "crosswoz") return crosswoz(text);
  return conversations_from(json::parse(text));
}

}  // namespace

std::vector<Conversation> read_dataset(std::string_view dataset, const std::string& path) {
  const std::string text = examples::read_file(path);
  try {
    return parse(dataset, text);
  } catch (const std::exception& error) {
    throw std::runtime_error(path + " is no " + std::string(dataset) + ": " + error.what());
  }
}

}  // namespace bench
