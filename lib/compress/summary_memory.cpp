// SPDX-License-Identifier: Apache-2.0
#include "compress/summary_memory.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "compress/history.h"

namespace incipit::compress {
namespace {

// Of one plan there are few.
constexpr std::size_t kMostSummaries = 8;

struct Known {
  base::Digest128 request = {};
  std::string summary = {};
};

base::Digest128 digest_of_request(const SummaryRequest& request) {
  base::StreamHash128 hash;
  const std::uint64_t limit = request.max_tokens;
  hash.update(std::as_bytes(std::span(&limit, 1)));
  for (const Message& message : request.segment) hash.update(digest_of(message));
  return hash.digest();
}

}  // namespace

Summarizer remembering(Summarizer summarizer) {
  if (!summarizer) return {};
  auto memory = std::make_shared<std::vector<Known>>();
  return [summarizer = std::move(summarizer), memory](const SummaryRequest& request) {
    const base::Digest128 digest = digest_of_request(request);
    const auto found = std::ranges::find(*memory, digest, &Known::request);
    if (found != memory->end()) {
      std::rotate(found, found + 1, memory->end());  // the last one used is the last one to go
      return memory->back().summary;
    }
    Known known{digest, {}};
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
