// SPDX-License-Identifier: Apache-2.0
#include "compress/summary_memory.h"

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
    for (const Known& known : *memory) {
      if (known.request == digest) return known.summary;
    }
    std::string summary = summarizer(request);
    if (memory->size() == kMostSummaries) memory->erase(memory->begin());
    memory->push_back({digest, summary});
    return summary;
  };
}

}  // namespace incipit::compress
