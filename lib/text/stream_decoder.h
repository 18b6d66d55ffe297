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
  /// Leaves out a space at the very beginning where `strip_space` is set.
  explicit StreamDecoder(bool strip_space = false) : strip_space_(strip_space) {}

  /// Text that is complete after these bytes; a begun character waits for its rest.
  std::string push(std::string_view bytes);
  /// What still waits, as U+FFFD; the decoder is then within the text.
  std::string finish();

 private:
  std::string pending_;  // a begun character, < 4 bytes
  bool strip_space_;     // nothing has come yet
};

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_STREAM_DECODER_H_
