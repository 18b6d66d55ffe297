// SPDX-License-Identifier: Apache-2.0
#include "compress/summary_memory.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace incipit::compress {
namespace {

// Of one plan there are few.
constexpr std::size_t kMostSummaries = 8;

struct Known {
  std::size_t max_tokens = 0;
  std::vector<Message> segment = {};
  std::string summary = {};
};

// Whoever writes the messages could make other ones of the same hash: they are compared in full.
bool is_same(const Message& a, const Message& b) {
  const auto same_call = [](const ToolCall& x, const ToolCall& y) {
    return x.id == y.id && x.name == y.name && x.arguments == y.arguments;
  };
  return a.role == b.role && a.text == b.text && a.tool_call_id == b.tool_call_id &&
         std::ranges::equal(a.tool_calls, b.tool_calls, same_call);
}

bool is_for(const Known& known, const SummaryRequest& request) {
  return known.max_tokens == request.max_tokens &&
         std::ranges::equal(known.segment, request.segment, is_same);
}

}  // namespace

Summarizer remembering(Summarizer summarizer) {
  if (!summarizer) return {};
  auto memory = std::make_shared<std::vector<Known>>();
  return [summarizer = std::move(summarizer), memory](const SummaryRequest& request) {
    const auto found = std::ranges::find_if(
        *memory, [&request](const Known& known) { return is_for(known, request); });
    if (found != memory->end()) {
      std::rotate(found, found + 1, memory->end());  // the last one used is the last one to go
      return memory->back().summary;
    }
    Known known{request.max_tokens, {request.segment.begin(), request.segment.end()}, {}};
    try {
      known.summary = summarizer(request);
    } catch (...) {  // whatever went wrong there: sentences can be selected
      known.summary.clear();
    }
    if (memory->size() == kMostSummaries) memory->erase(memory->begin());
    memory->push_back(std::move(known));
    return memory->back().summary;
  };
}

}  // namespace incipit::compress
