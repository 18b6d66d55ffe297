// SPDX-License-Identifier: Apache-2.0
#include "text/normalizer.h"

#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "text/lower_case.h"
#include "text/replace.h"
#include "text/unicode.h"
#include "text/unicode_form.h"
#include "text/utf8.h"

namespace incipit::text {
namespace {

using Kind = NormalizerStep::Kind;

constexpr std::size_t kMaxSteps = 16, kMaxStepBytes = 256;
constexpr std::size_t kMaxGrowth = 256;  // of a text; three times are usual
constexpr std::size_t kMaxTextBytes = UINT32_MAX - 1;

void check_growth(std::size_t bytes) {
  if (bytes <= kMaxTextBytes) return;
  base::throw_error(ErrorCode::kInvalidArgument, "normalised, the text is too long to tokenize: " +
                                                     std::to_string(bytes) + " bytes");
}

std::string without_marks(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Utf8Unit unit = first_unit(text);
    if (!is_mark(unit.code)) out += text.substr(0, unit.bytes);
    text.remove_prefix(unit.bytes);
  }
  return out;
}

std::string with_replaced(std::string_view text, const NormalizerStep& step) {
  std::size_t found = 0;
  for (std::size_t at = text.find(step.text); at != std::string_view::npos;
       at = text.find(step.text, at + step.text.size())) {
    ++found;
  }
  check_growth(text.size() + found * step.by.size());
  return replaced_all(text, step.text, step.by);
}

/// The words between white space, each with `mark` in front.
std::string marked_words(std::string_view text, const std::string& mark) {
  std::string out;
  while (true) {
    text.remove_prefix(white_space_at_front(text));
    if (text.empty()) return out;
    if (!text.starts_with(mark)) out += mark;
    check_growth(out.size());
    while (!text.empty() && white_space_at_front(text.substr(0, first_unit(text).bytes)) == 0) {
      out += text.substr(0, first_unit(text).bytes);
      text.remove_prefix(first_unit(text).bytes);
    }
  }
}

/// `text` with one `by` for each run of two spaces or more.
std::string with_runs_replaced(std::string_view text, const std::string& by) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_not_of(' ', at), text.size());
    if (end - at >= 2) {
      out += by;
      check_growth(out.size());
      at = end;
    } else {
      out += text[at++];
    }
  }
  return out;
}

std::string with_front(std::string_view text, const std::string& front) {
  return text.empty() ? std::string() : front + std::string(text);
}

std::string step_applied(const NormalizerStep& step, std::string_view text, bool begins) {
  switch (step.kind) {
    case Kind::kNfc:
      return in_form(text, UnicodeForm::kC, kMaxTextBytes);
    case Kind::kNfd:
      return in_form(text, UnicodeForm::kD, kMaxTextBytes);
    case Kind::kNfkc:
      return in_form(text, UnicodeForm::kKC, kMaxTextBytes);
    case Kind::kNfkd:
      return in_form(text, UnicodeForm::kKD, kMaxTextBytes);
    case Kind::kLowerCase:
      return lower_case(text);
    case Kind::kStripAccents:
      return without_marks(text);
    case Kind::kStripLeft:
      return std::string(text.substr(white_space_at_front(text)));
    case Kind::kStripRight:
      return std::string(text.substr(0, text.size() - white_space_at_back(text)));
    case Kind::kReplace:
      return with_replaced(text, step);
    case Kind::kReplaceSpaceRuns:
      return with_runs_replaced(text, step.by);
    case Kind::kMarkWords:
      return marked_words(text, step.by);
    case Kind::kPrepend:
      return begins ? with_front(text, step.by) : std::string(text);
    case Kind::kPrependMissing:
      return begins && !text.starts_with(step.by) ? with_front(text, step.by) : std::string(text);
  }
  base::throw_error(ErrorCode::kInternal, "unknown normaliser");
}

/// How many times longer a step can make a text.
std::size_t growth_of(const NormalizerStep& step) {
  switch (step.kind) {
    case Kind::kReplace:
      return std::max<std::size_t>(1, (step.by.size() + step.text.size() - 1) / step.text.size());
    case Kind::kReplaceSpaceRuns:
    case Kind::kMarkWords:
      return 1 + step.by.size();
    default:
      return 1;
  }
}

void check_steps(const std::vector<NormalizerStep>& steps) {
  const auto fail = [](const std::string& why) {
    base::throw_error(ErrorCode::kModelUnreadable, "the tokenizer's normaliser " + why);
  };
  if (steps.size() > kMaxSteps) {
    fail("has " + std::to_string(steps.size()) + " steps; at most " + std::to_string(kMaxSteps) +
         " are supported");
  }
  std::size_t growth = 1;
  for (const NormalizerStep& step : steps) {
    if (step.kind == Kind::kReplace && step.text.empty()) fail("replaces an empty text");
    if (std::max(step.text.size(), step.by.size()) > kMaxStepBytes) {
      fail("has a text of more than " + std::to_string(kMaxStepBytes) + " bytes");
    }
    for (const std::string& text : {step.text, step.by}) {
      if (valid_front(text) != text.size()) fail("has a text that is no UTF-8");
    }
    growth *= growth_of(step);
    if (growth > kMaxGrowth) fail("makes texts too long");
  }
}

}  // namespace

Normalizer::Normalizer(std::vector<NormalizerStep> steps) : steps_(std::move(steps)) {
  check_steps(steps_);
  if (steps_.empty()) {
    kind_ = Kind::kNone;
  } else if (steps_.size() == 1 && steps_[0].kind == NormalizerStep::Kind::kNfc) {
    kind_ = Kind::kNfc;
  } else if (make_local()) {
    kind_ = Kind::kLocal;
  }
}

bool Normalizer::make_local() {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const NormalizerStep& step = steps_[i];
    const bool last = i + 1 == steps_.size();
    if (step.kind == NormalizerStep::Kind::kReplace && is_one_character(step.text)) {
      front_ = replaced_all(front_, step.text, step.by);
      if (find_local(step.text) == nullptr) local_.emplace_back(step.text, step.text);
      for (auto& [from, to] : local_) to = replaced_all(to, step.text, step.by);
    } else if (step.kind == NormalizerStep::Kind::kPrepend) {
      front_ = step.by + front_;
    } else if (step.kind == NormalizerStep::Kind::kPrependMissing && last && front_.empty()) {
      front_ = step.by;
      unless_there_ = true;
    } else {
      return false;
    }
  }
  // What vanishes would leave it open whether a text begins.
  const bool grows = std::none_of(local_.begin(), local_.end(),
                                  [](const auto& one) { return one.second.empty(); });
  for (const auto& [from, to] : local_) begins_local_[static_cast<unsigned char>(from[0])] = true;
  return grows;
}

const std::string* Normalizer::find_local(std::string_view character) const {
  const auto found = std::find_if(local_.begin(), local_.end(),
                                  [&](const auto& one) { return one.first == character; });
  return found == local_.end() ? nullptr : &found->second;
}

std::size_t Normalizer::closed_front(std::string_view text) const {
  if (kind_ == Kind::kNfc) return NfcText::closed_front(text);
  return kind_ == Kind::kOther ? 0 : text.size();
}

std::string Normalizer::apply_local(std::string_view text) const {
  std::string out;
  out.reserve(text.size() + text.size() / 2);
  std::size_t copied = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (!begins_local_[static_cast<unsigned char>(text[at])]) {
      ++at;
      continue;
    }
    const std::size_t size = first_unit(text.substr(at)).bytes;
    if (const std::string* to = find_local(text.substr(at, size))) {
      out += text.substr(copied, at - copied);
      out += *to;
      copied = at + size;
      check_growth(out.size());
    }
    at += size;
  }
  out += text.substr(copied);
  check_growth(out.size());
  return out;
}

std::string Normalizer::apply(std::string_view text, bool begins) const {
  std::string out(text);
  for (const NormalizerStep& step : steps_) {
    out = step_applied(step, out, begins);
    check_growth(out.size());
  }
  return out;
}

NormalizedText::NormalizedText(const Normalizer& normalizer, std::string_view source, bool begins)
    : normalizer_(normalizer), source_(source) {
  switch (normalizer.kind_) {
    case Normalizer::Kind::kNone:
      break;
    case Normalizer::Kind::kNfc:
      nfc_.emplace(source);
      break;
    case Normalizer::Kind::kLocal:
      changed_ = normalizer.apply_local(source);
      if (begins && !changed_.empty() &&
          !(normalizer.unless_there_ && changed_.starts_with(normalizer.front_))) {
        changed_.insert(0, normalizer.front_);
        front_ = normalizer.front_.size();
      }
      break;
    case Normalizer::Kind::kOther:
      changed_ = normalizer.apply(source, begins);
  }
}

std::string_view NormalizedText::text() const noexcept {
  if (normalizer_.empty()) return source_;
  return nfc_ ? nfc_->text() : std::string_view(changed_);
}

std::optional<std::size_t> NormalizedText::source_position(std::size_t position) {
  if (normalizer_.empty()) return position;
  if (nfc_) return nfc_->source_position(position);
  if (normalizer_.kind_ == Normalizer::Kind::kOther || position < front_) return std::nullopt;
  position -= front_;
  while (passed_text_ < position) {
    const std::string_view rest = source_.substr(passed_);
    const std::size_t size = first_unit(rest).bytes;
    const std::string* to = normalizer_.find_local(rest.substr(0, size));
    passed_ += size;
    passed_text_ += to == nullptr ? size : to->size();
  }
  if (passed_text_ == position) return passed_;
  return std::nullopt;
}

}  // namespace incipit::text
