// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <stdexcept>

#include "fuzz/target.h"
#include "incipit/error.h"
#include "text/chat_format.h"

namespace incipit::fuzz {
namespace {

constexpr char kBetween = '\x01';  // parts of an input

std::string_view next_part(std::string_view& rest) {
  const std::size_t end = std::min(rest.find(kBetween), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

// A role by its first letter, a call of a tool for 'c', else text.
Message to_message(std::string_view part) {
  Message message;
  const char kind = part.empty() ? 'u' : part.front();
  const std::string text(part.substr(std::min<std::size_t>(1, part.size())));
  if (kind == 's') message.role = Role::kSystem;
  if (kind == 'a' || kind == 'c') message.role = Role::kAssistant;
  if (kind == 't') message.role = Role::kTool;
  if (kind == 'c') {
    message.tool_calls = {{text.substr(0, 9), text, text}};
  } else {
    message.text = text;
  }
  message.tool_call_id = text.substr(0, 9);
  return message;
}

// The input is a chat template, a tool (or nothing), and messages.
void run(std::string_view bytes) {
  text::ChatTemplate chat{std::string(next_part(bytes)), "<s>", "</s>"};
  const auto format = text::recognize_chat_format(chat);
  if (format == nullptr) return;
  ChatOptions options;
  if (const std::string_view tool = next_part(bytes); !tool.empty())
    options.tools = {std::string(tool)};
  std::vector<Message> messages;
  while (!bytes.empty()) messages.push_back(to_message(next_part(bytes)));
  try {
    const auto pieces = format->render(messages, options);
    if (pieces.empty()) throw std::logic_error("a conversation became nothing");
    for (const Message& message : messages) format->render_turn(message);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidArgument) throw;
  }
}

std::vector<std::string> seeds() {
  const std::string conversation = std::string(1, kBetween) + R"({"function": {"name": "f"}})" +
                                   kBetween + "sBe brief." + kBetween + "uHi" + kBetween +
                                   "a<think>x</think>Hello" + kBetween + "c{}abcdefgh" + kBetween +
                                   "t0abcdefgh" + kBetween + "u\xe3\x80\x80 \n";
  const std::string chatml =
      "{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}"
      "{{ '<|im_start|>assistant\\n' }}";
  const std::string tools =
      "{{ '\\n<tools>' }}{{ '\\n</tools><|im_end|>\\n' }}{{ '\\n<tool_call>\\n{\"name\": \"' }}"
      "{{ '\", \"arguments\": ' }}{{ '\\n<tool_response>\\n' }}{{ ns.last_query_index }}";
  const std::string turn =
      "{{ bos_token }}{{ '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' + "
      "message.content | trim + '<|eot_id|>' }}"
      "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}";
  const std::string llama31 =
      turn +
      "{{ 'Environment: ipython\\n' }}{{ 'Cutting Knowledge Date' }}{{ 'Today Date: ' }}"
      "{{ 'Given the following functions' }}{{ 'Do not use variables' }}"
      "{% set date_string = 'd' %}{% set tools_in_user_message = true %}";
  const std::string mistral =
      "{{ bos_token }}{% if loop.last and system_message is defined %}"
      "{{ '[INST] ' + message.content + '[/INST]' }}{{ message.content + eos_token }}"
      "{{ '[AVAILABLE_TOOLS] [' }}{{ '[TOOL_CALLS] [' }}{{ '[TOOL_RESULTS] {\"content\": ' }}";
  const std::string gemma =
      "{{ '<start_of_turn>' + role + '\\n' + message.content | trim + '<end_of_turn>\\n' }}"
      "{{ '<start_of_turn>model\\n' }}";
  std::vector<std::string> inputs;
  for (const std::string& text : {chatml, chatml + tools, turn, llama31, mistral, gemma}) {
    inputs.push_back(text + conversation);
  }
  return inputs;
}

}  // namespace

constexpr Target kChat = {run, seeds};

}  // namespace incipit::fuzz
