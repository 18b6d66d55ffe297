// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_NORMALIZER_H_
#define INCIPIT_TEXT_NORMALIZER_H_

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/nfc.h"
#include "text/tokenizer.h"

namespace incipit::text {

/// What is done to a text before it is cut into tokens: the steps of a spec, in order. Immutable.
class Normalizer {
 public:
  /// Throws Error{kModelUnreadable} for a step that cannot be done.
  explicit Normalizer(std::vector<NormalizerStep> steps);

  bool empty() const noexcept { return kind_ == Kind::kNone; }

  /// The end of the front of `text` that becomes the same whatever follows.
  std::size_t closed_front(std::string_view text) const;

 private:
  friend class NormalizedText;
  enum class Kind : std::uint8_t {
    kNone,
    kNfc,
    kLocal,  // something may come in front, and what a character becomes does not depend on others
    kOther,
  };
  bool make_local();
  std::string apply(std::string_view text, bool begins) const;
  std::string apply_local(std::string_view text) const;
  const std::string* find_local(std::string_view character) const;

  std::vector<NormalizerStep> steps_;
  Kind kind_ = Kind::kOther;
  // Of kLocal: what comes in front, and what characters become.
  std::string front_;
  bool unless_there_ = false;  // not where the text begins with it already
  std::vector<std::pair<std::string, std::string>> local_;
  std::array<bool, 256> begins_local_{};  // with this byte begins one of them
};

/// One text and what becomes of it.
class NormalizedText {
 public:
  /// Of a valid UTF-8 text. Only where it `begins` something comes in front. Both must outlive it.
  /// Throws Error{kInvalidArgument} where it becomes longer than 4 GiB.
  NormalizedText(const Normalizer& normalizer, std::string_view source, bool begins);

  std::string_view text() const noexcept;

  /// The place in the source that became `position` of text(), as NfcText has it; nullopt: none, or
  /// not known. Positions must not decrease from one call to the next.
  std::optional<std::size_t> source_position(std::size_t position);

 private:
  const Normalizer& normalizer_;
  std::string_view source_;
  std::optional<NfcText> nfc_;
  std::string changed_;
  std::size_t front_ = 0;   // bytes of changed_ that came in front
  std::size_t passed_ = 0;  // of the source
  std::size_t passed_text_ = 0;
};

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_NORMALIZER_H_
