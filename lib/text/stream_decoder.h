// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_STREAM_DECODER_H_
#define INCIPIT_TEXT_STREAM_DECODER_H_

#include <string>
#include <string_view>

namespace incipit::text {

/// Turns bytes that arrive token by token into whole UTF-8 characters. What can never become a
/// character is replaced by U+FFFD, one per maximal invalid part (Unicode 15, section 3.9), so that
/// the joined output equals the replacement of the joined input.
class StreamDecoder {
 public:
  /// Text that is complete after these bytes; a begun character waits for its rest.
  std::string push(std::string_view bytes);
  /// What still waits, as U+FFFD; the decoder is then as new.
  std::string finish();

 private:
  std::string pending_;  // a begun character, < 4 bytes
};

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_STREAM_DECODER_H_
