// SPDX-License-Identifier: Apache-2.0
#include "text/stream_decoder.h"

#include "text/utf8.h"

namespace incipit::text {

std::string StreamDecoder::push(std::string_view bytes) {
  if (strip_space_ && !bytes.empty()) {
    strip_space_ = false;
    if (bytes.front() == ' ') bytes.remove_prefix(1);
  }
  pending_ += bytes;
  std::string text;
  pending_.erase(0, append_replaced(text, pending_));
  return text;
}

std::string StreamDecoder::finish() {
  const bool begun = !pending_.empty();
  pending_.clear();
  return begun ? std::string(kReplacementCharacter) : std::string();
}

}  // namespace incipit::text
