// SPDX-License-Identifier: Apache-2.0
#include "text/text_encoder.h"

#include <string>

#include "text/nfc.h"
#include "text/utf8.h"

namespace incipit::text {

TextEncoder::TextEncoder(const EncodingRules& rules, std::vector<TokenId>& out)
    : rules_(rules), out_(out), scanner_(rules.pattern) {}

void TextEncoder::raw(std::string_view text) {
  for (std::size_t done = 0; done < text.size();) {
    const SpecialTokens::Match match = rules_.specials.find(text, done);
    plain(text.substr(done, match.begin - done));
    if (match.id >= 0) out_.push_back(match.id);
    done = match.end;
  }
}

void TextEncoder::pieces(std::span<const TextPiece> pieces) {
  std::string between;  // special tokens, across the borders of pieces
  for (const TextPiece& piece : pieces) {
    if (!piece.control) {
      between += piece.text;
      continue;
    }
    for (std::size_t done = 0; done < piece.text.size();) {
      const SpecialTokens::Match match = rules_.specials.find(piece.text, done);
      between += std::string_view(piece.text).substr(done, match.begin - done);
      if (match.id >= 0) {
        plain(between);
        between.clear();
        out_.push_back(match.id);
      }
      done = match.end;
    }
  }
  plain(between);
}

std::size_t TextEncoder::raw_stable(std::string_view text) {
  std::size_t done = 0;
  while (true) {
    const SpecialTokens::Match match = rules_.specials.find_in_open_text(text, done);
    const std::string_view before = text.substr(done, match.begin - done);
    if (match.id < 0) return done + plain_stable(before);
    plain(before);
    out_.push_back(match.id);
    done = match.end;
  }
}

void TextEncoder::plain(std::string_view text) {
  while (!text.empty()) {
    const std::size_t front = valid_front(text);
    valid(text.substr(0, front));
    text.remove_prefix(front);
    if (text.empty()) return;
    const std::size_t bad = first_unit(text).bytes;
    invalid(text.substr(0, bad));
    text.remove_prefix(bad);
  }
}

std::size_t TextEncoder::plain_stable(std::string_view text) {
  std::size_t done = 0;
  while (true) {
    const std::string_view rest = text.substr(done);
    const std::size_t front = valid_front(rest);
    if (front == rest.size()) return done + valid_stable(rest);
    const Utf8Unit bad = first_unit(rest.substr(front));
    if (bad.kind == Utf8Unit::Kind::kIncomplete) return done + valid_stable(rest.substr(0, front));
    valid(rest.substr(0, front));
    invalid(rest.substr(front, bad.bytes));
    done += front + bad.bytes;
  }
}

void TextEncoder::valid(std::string_view text) {
  const auto encode = [&](std::string_view form) {
    while (!form.empty()) {
      const std::size_t size = scanner_.next(form);
      rules_.bpe.encode(form.substr(0, size), scratch_, out_);
      form.remove_prefix(size);
    }
  };
  if (rules_.normalize_nfc) {
    encode(NfcText(text).text());
  } else {
    encode(text);
  }
}

std::size_t TextEncoder::valid_stable(std::string_view text) {
  if (rules_.normalize_nfc) text = text.substr(0, NfcText::closed_front(text));
  NfcText normalized(rules_.normalize_nfc ? text : std::string_view());
  const std::string_view form = rules_.normalize_nfc ? normalized.text() : text;

  std::size_t stable = 0;  // of `text`
  std::size_t stable_ids = out_.size();
  for (std::size_t done = 0; done < form.size();) {
    const std::size_t size = scanner_.next_in_open_text(form.substr(done));
    if (size == 0) break;
    rules_.bpe.encode(form.substr(done, size), scratch_, out_);
    done += size;
    const auto source = rules_.normalize_nfc ? normalized.source_position(done) : done;
    if (!source) continue;
    stable = *source;
    stable_ids = out_.size();
  }
  out_.resize(stable_ids);
  return stable;
}

void TextEncoder::invalid(std::string_view bytes) {
  for (const char byte : bytes) rules_.bpe.encode_byte(byte, out_);
}

}  // namespace incipit::text
