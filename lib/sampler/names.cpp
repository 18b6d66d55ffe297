// SPDX-License-Identifier: Apache-2.0
#include "incipit/self_consistency.h"

namespace incipit::inline v0 {

std::string_view to_string(SampleStatus status) noexcept {
  switch (status) {
    case SampleStatus::kVoted:
      return "voted";
    case SampleStatus::kNoAnswer:
      return "no_answer";
    case SampleStatus::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

std::string_view to_string(SamplingEnd end) noexcept {
  switch (end) {
    case SamplingEnd::kAllTaken:
      return "all_taken";
    case SamplingEnd::kRule:
      return "rule";
    case SamplingEnd::kStopped:
      return "stopped";
    case SamplingEnd::kTimeout:
      return "timeout";
  }
  return "unknown";
}

}  // namespace incipit::inline v0
