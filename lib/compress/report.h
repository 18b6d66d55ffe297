// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_COMPRESS_REPORT_H_
#define INCIPIT_COMPRESS_REPORT_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "compress/draft.h"
#include "compress/log.h"

namespace incipit::compress {

/// What a prompt makes of messages, as far as their fates go.
struct Outcome {
  std::span<const SegmentPtr> segments = {};
  std::size_t window_first = 0, window_end = 0;
  std::vector<Applied::Part> cut = {};
  std::span<const Quote> evidence = {};
};
Outcome outcome_of(const Draft& draft);

/// Tells the fate of messages in one prompt.
class Reporter {
 public:
  Reporter(const View& view, const Outcome& outcome);
  MessageReport report(std::size_t i) const;

 private:
  void report_covered(MessageReport& report, std::size_t i, const Segment& segment) const;

  const View& view_;
  const Outcome& outcome_;
  struct Quoted {
    std::size_t entry = 0, tokens = 0;
  };
  std::vector<Quoted> in_segments_;  // by entry
};

/// Messages whose fate may differ between two prompts, the first of which knew `known` messages.
std::vector<std::size_t> changed_messages(const Outcome& before, const Outcome& after,
                                          std::size_t known, std::size_t size);

}  // namespace incipit::compress

#endif  // INCIPIT_COMPRESS_REPORT_H_
