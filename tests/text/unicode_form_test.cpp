// SPDX-License-Identifier: Apache-2.0
#include "text/unicode_form.h"

#include <utf8proc.h>

#include <array>
#include <cstdlib>
#include <memory>

#include "support/catch.h"
#include "text/fixture.h"
#include "text/lower_case.h"
#include "text/utf8.h"

namespace incipit::text {
namespace {

struct Form {
  UnicodeForm form;
  int options;
};
constexpr std::array kForms = {Form{UnicodeForm::kC, UTF8PROC_COMPOSE},
                               Form{UnicodeForm::kD, UTF8PROC_DECOMPOSE},
                               Form{UnicodeForm::kKC, UTF8PROC_COMPOSE | UTF8PROC_COMPAT},
                               Form{UnicodeForm::kKD, UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT}};

/// utf8proc's own, for texts short enough for it.
std::string reference(std::string_view text, int options) {
  utf8proc_uint8_t* out = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &out,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(out, &std::free);
  REQUIRE(size >= 0);
  return {reinterpret_cast<const char*>(out), static_cast<std::size_t>(size)};
}

TEST_CASE("forms equal utf8proc's on whole texts and on characters") {
  const std::vector<std::string> strings = corpus();
  for (const auto& [form, options] : kForms) {
    for (const std::string& text : strings) {
      if (in_form(text, form) != reference(text, options)) FAIL_CHECK(text);
    }
    for (char32_t code = 0; code <= 0x2FFFF; code += code < 0x3000 ? 1 : 7) {
      if (code >= 0xD800 && code <= 0xDFFF) continue;
      std::string text = "a";
      append_utf8(text, code);
      if (in_form(text, form) != reference(text, options)) FAIL_CHECK(std::uint32_t{code});
    }
  }
}

TEST_CASE("a text longer than a stretch is that of its parts") {
  const std::string part = "x\u0323\u0307 \ufb01\uac00\u11a8", many = repeated(part, 20000);
  for (const auto& [form, options] : kForms) {
    CHECK(in_form(many, form) == repeated(in_form(part, form), 20000));
  }
  // Stretches end where nothing joins: not before a jamo, a mark or what becomes one.
  for (const char* joined :
       {"\u1100\u1161\u11a8", "\u30ab\u3099", "\uff76\uff9e", "\u3131\u314f", "\u0d46\u0d3e"}) {
    const std::string long_text = repeated(joined, 20000);
    for (const auto& [form, options] : kForms) {
      CHECK(in_form(long_text, form) == repeated(in_form(joined, form), 20000));
    }
  }
  std::string marks = "a", ordered = "a";  // one stretch
  marks += repeated("\u0307\u0323", 100000);
  ordered += repeated("\u0323", 100000) + repeated("\u0307", 100000);
  CHECK(in_form(marks, UnicodeForm::kD) == ordered);
}

TEST_CASE("a form that grows too long ends early") {
  for (const char* part : {"\ufdfa", "\ufdfa a"}) {
    const std::string many = repeated(part, 100000);
    for (const UnicodeForm form : {UnicodeForm::kKC, UnicodeForm::kKD}) {
      const std::size_t bytes = in_form(many, form, 1000).size();
      CHECK(bytes > 1000);
      CHECK(bytes < 1000000);
    }
    CHECK(in_form(many, UnicodeForm::kKD).size() > 3000000);
  }
}

TEST_CASE("lower case is that of each character") {
  CHECK(lower_case("") == "");
  CHECK(lower_case("ABC xyz 1\u00c4\u0416") == "abc xyz 1\u00e4\u0436");
  CHECK(lower_case("\u0130I") == "i\u0307i");
  CHECK(lower_case("\u03a3\u0391\u03a3") == "\u03c3\u03b1\u03c3");
}

}  // namespace
}  // namespace incipit::text
