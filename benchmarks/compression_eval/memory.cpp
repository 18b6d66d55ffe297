// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

#include <stdexcept>

#include "baselines.h"

namespace bench {
namespace {

class Compressed final : public Memory {
 public:
  Compressed(const incipit::CompressorOptions& options, const incipit::TokenCounter& counter)
      : compressor_(options, counter) {}

  void add(const incipit::Message& message) override { compressor_.add(message); }
  std::vector<incipit::Message> prompt() override { return compressor_.apply().messages; }
  std::vector<incipit::Message> probe(const incipit::Message& question) const override {
    return compressor_.plan(question).messages;
  }

 private:
  incipit::Compressor compressor_;
};

}  // namespace

std::unique_ptr<Memory> make_memory(std::string_view policy, incipit::CompressorOptions options,
                                    const incipit::TokenCounter& counter) {
  using incipit::CompressionPolicy;
  const std::size_t budget = options.token_budget;
  if (policy == "summary_buffer") return std::make_unique<SummaryBuffer>(budget, counter);
  if (policy == "query_rewrite") return std::make_unique<QueryRewrite>(budget, counter);
  for (const CompressionPolicy own :
       {CompressionPolicy::kWindow, CompressionPolicy::kDedupSummaryTruncate,
        CompressionPolicy::kFrozenSegments}) {
    if (incipit::to_string(own) != policy) continue;
    options.policy = own;
    return std::make_unique<Compressed>(options, counter);
  }
  throw std::runtime_error("unknown policy " + std::string(policy));
}

}  // namespace bench
