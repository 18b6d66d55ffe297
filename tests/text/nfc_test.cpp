// SPDX-License-Identifier: Apache-2.0
#include "text/nfc.h"

#include <utf8proc.h>

#include <cstdlib>
#include <memory>

#include "support/catch.h"
#include "text/fixture.h"
#include "text/utf8.h"

namespace incipit::text {
namespace {

/// utf8proc's own, for texts short enough for it.
std::string reference(std::string_view text) {
  utf8proc_uint8_t* out = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &out,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(out, &std::free);
  REQUIRE(size >= 0);
  return {reinterpret_cast<const char*>(out), static_cast<std::size_t>(size)};
}

std::string nfc(std::string_view text) { return std::string(NfcText(text).text()); }

/// Valid texts around the things that compose.
std::vector<std::string> texts() {
  std::vector<std::string> texts = corpus();
  std::mt19937 random(11);
  while (texts.size() < 5000) {
    std::string text;
    append_replaced(text, random_text(random, 6));
    texts.push_back(std::move(text));
  }
  return texts;
}

TEST_CASE("equals utf8proc on whole texts and on each character") {
  for (const std::string& text : texts()) {
    if (nfc(text) != reference(text)) FAIL_CHECK(text);
  }
  for (char32_t code = 0; code <= 0x10FFFF; ++code) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    std::string text = "a";
    append_utf8(text, code);
    append_utf8(text, code);
    if (nfc(text) != reference(text)) FAIL_CHECK(std::uint32_t{code});
  }
}

TEST_CASE("a text that is in form C is not copied") {
  const std::string text = "caf\u00e9 \u4eba\u4eba \uac01";
  CHECK(NfcText(text).text().data() == text.data());
  CHECK(NfcText("").text().empty());
}

TEST_CASE("hundreds of thousands of marks in the wrong order take no quadratic time") {
  constexpr std::size_t kTimes = 100'000;
  const std::string text =
      std::string("x") + repeated("\u0315\u0323", kTimes);  // classes 232 and 220
  CHECK(nfc(text) == std::string("x") + repeated("\u0323", kTimes) + repeated("\u0315", kTimes));
}

TEST_CASE("where a place has a source, both sides can be normalised alone") {
  std::size_t places = 0;
  for (const std::string& text : texts()) {
    NfcText normalized(text);
    const std::string form(normalized.text());
    for (std::size_t position = 1; position <= form.size(); ++position) {
      if (valid_front(form.substr(0, position)) < position) continue;  // inside a character
      const auto source = normalized.source_position(position);
      if (!source) continue;
      ++places;
      if (nfc(text.substr(0, *source)) != form.substr(0, position) ||
          nfc(text.substr(*source)) != form.substr(position)) {
        FAIL_CHECK(text << " at " << position);
      }
    }
    CHECK(normalized.source_position(form.size()) == text.size());
  }
  CHECK(places > 10'000);
}

TEST_CASE("a place that normalising made has no source") {
  NfcText normalized("xe\u0301 y");
  CHECK(normalized.text() == "x\u00e9 y");
  CHECK(normalized.source_position(1) == 1);
  CHECK(normalized.source_position(2) == std::nullopt);  // inside the letter
  CHECK(normalized.source_position(3) == 4);
  CHECK(normalized.source_position(5) == 6);
}

TEST_CASE("nothing that follows changes the closed front") {
  const std::vector<std::string> all = texts();
  const std::vector<std::string> continuations = {
      "",       "a",      "\u0301", "\u0323\u0307", "\u1161", "\u11a8", "\u3099",
      "\u093c", "\u09be", "\u0344", "\U000110BA",   "\uac00", "\u4eba", " "};
  std::size_t bytes = 0, closed = 0;
  for (const std::string& text : all) {
    const std::size_t front = NfcText::closed_front(text);
    bytes += text.size();
    closed += front;
    for (const std::string& next : continuations) {
      if (nfc(text + next) != nfc(text.substr(0, front)) + nfc(text.substr(front) + next)) {
        FAIL_CHECK(text << " before " << next);
      }
    }
  }
  CHECK(closed > bytes / 2);
  CHECK(NfcText::closed_front("") == 0);
  CHECK(NfcText::closed_front("abc") == 2);
  CHECK(NfcText::closed_front("\u4eba\u4eba\u3002") == 6);
  CHECK(NfcText::closed_front("ae\u0301") == 1);
  CHECK(NfcText::closed_front("\u0301\u0301") == 0);
}

}  // namespace
}  // namespace incipit::text
