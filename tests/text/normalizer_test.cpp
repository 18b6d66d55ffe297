// SPDX-License-Identifier: Apache-2.0
#include "text/normalizer.h"

#include "support/catch.h"
#include "text/fixture.h"
#include "text/utf8.h"

namespace incipit::text {
namespace {

using Kind = NormalizerStep::Kind;
using Steps = std::vector<NormalizerStep>;

std::string normal(const Steps& steps, std::string_view text, bool begins = true) {
  const Normalizer normalizer(steps);
  return std::string(NormalizedText(normalizer, text, begins).text());
}

TEST_CASE("each step does what its name says") {
  CHECK(normal({}, " a") == " a");
  CHECK(normal({{Kind::kNfc, {}, {}}}, "e\u0301") == "\u00e9");
  CHECK(normal({{Kind::kNfd, {}, {}}}, "\u00e9") == "e\u0301");
  CHECK(normal({{Kind::kNfkc, {}, {}}}, "\ufb01e\u0301") == "fi\u00e9");
  CHECK(normal({{Kind::kNfkd, {}, {}}}, "\ufb01\u00e9") == "fie\u0301");
  CHECK(normal({{Kind::kLowerCase, {}, {}}}, "A\u00c9") == "a\u00e9");
  CHECK(normal({{Kind::kStripAccents, {}, {}}}, "e\u0301\u093e") == "e");
  CHECK(normal({{Kind::kStripLeft, {}, {}}}, " \u3000a ") == "a ");
  CHECK(normal({{Kind::kStripRight, {}, {}}}, " a \u3000") == " a");
  CHECK(normal({{Kind::kReplace, "ab", "x"}}, "abab-aab") == "xx-ax");
  CHECK(normal({{Kind::kReplaceSpaceRuns, {}, "_"}}, "a  b c    d ") == "a_b c_d ");
  CHECK(normal({{Kind::kMarkWords, {}, "_"}}, "\ta _b \u3000 c ") == "_a_b_c");
  CHECK(normal({{Kind::kPrepend, {}, "_"}}, "_a") == "__a");
  CHECK(normal({{Kind::kPrependMissing, {}, "_"}}, "_a") == "_a");
  CHECK(normal({{Kind::kPrependMissing, {}, "_"}}, "a") == "_a");
}

TEST_CASE("nothing comes in front of nothing, or within a text") {
  for (const Kind kind : {Kind::kPrepend, Kind::kPrependMissing}) {
    CHECK(normal({{kind, {}, "_"}}, "").empty());
    CHECK(normal({{kind, {}, "_"}}, "a", /*begins=*/false) == "a");
    CHECK(normal({{Kind::kNfkc, {}, {}}, {kind, {}, "_"}}, "a", false) == "a");
    CHECK(normal({{Kind::kNfkc, {}, {}}, {kind, {}, "_"}}, "a") == "_a");
  }
}

TEST_CASE("steps go in their order") {
  const Steps legacy = {{Kind::kPrepend, {}, " "}, {Kind::kReplace, " ", "\u2581"}};
  CHECK(normal(legacy, " a b") == "\u2581\u2581a\u2581b");
  CHECK(normal({legacy[1], legacy[0]}, " a") == " \u2581a");
  CHECK(normal({{Kind::kReplace, "a", "b"}, {Kind::kReplace, "b", "cc"}}, "ab") == "cccc");
  CHECK(normal({{Kind::kReplace, "b", "c"}, {Kind::kReplace, "a", "b"}}, "ab") == "bc");
  CHECK(normal({{Kind::kReplace, " ", "_"}, {Kind::kPrependMissing, {}, "_"}}, " a") == "_a");
}

TEST_CASE("places of local steps are found in the source") {
  const Normalizer normalizer({{Kind::kPrepend, {}, "_"}, {Kind::kReplace, " ", "\u2581"}});
  NormalizedText text(normalizer, "a \u4eba b", true);
  REQUIRE(text.text() == "_a\u2581\u4eba\u2581b");
  CHECK(text.source_position(0) == std::nullopt);  // within what came in front
  CHECK(text.source_position(1) == 0);
  CHECK(text.source_position(2) == 1);
  CHECK(text.source_position(3) == std::nullopt);
  CHECK(text.source_position(5) == 2);
  CHECK(text.source_position(8) == 5);
  CHECK(text.source_position(12) == 7);
}

TEST_CASE("local steps, one character at a time, are the steps of the whole") {
  const Steps local = {{Kind::kReplace, " ", "\u2581"},
                       {Kind::kReplace, "a", "bb"},
                       {Kind::kReplace, "b", " "},
                       {Kind::kPrepend, {}, "x "}};
  Steps other = local;  // the same, but not known to be local
  other.insert(other.begin(), {Kind::kReplace, "no such text", "-"});
  std::mt19937 random(41);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    append_replaced(text, random_text(random, 5));
    if (normal(local, text) != normal(other, text)) FAIL_CHECK(text);
  }
}

TEST_CASE("what follows changes only what is not closed") {
  CHECK(Normalizer({}).closed_front("ab") == 2);
  CHECK(Normalizer({{Kind::kNfc, {}, {}}}).closed_front("ab") == 1);
  CHECK(Normalizer({{Kind::kReplace, " ", "_"}}).closed_front("a ") == 2);
  CHECK(Normalizer({{Kind::kReplace, "ab", "_"}}).closed_front("a") == 0);
  CHECK(Normalizer({{Kind::kReplace, "a", ""}}).closed_front("a") == 0);
  CHECK(Normalizer({{Kind::kLowerCase, {}, {}}}).closed_front("a") == 0);
}

TEST_CASE("steps that cannot be done, or let a text grow without bounds, are refused") {
  const auto refuses = [](const Steps& steps, const char* why) {
    const auto failure = failure_of([&] { Normalizer{steps}; });
    CHECK(failure.code == ErrorCode::kModelUnreadable);
    CHECK_THAT(failure.message, Catch::Contains(why));
  };
  refuses({{Kind::kReplace, "", "a"}}, "empty");
  refuses(Steps(17, {Kind::kNfc, {}, {}}), "17 steps");
  refuses({{Kind::kPrepend, {}, std::string(257, 'a')}}, "256 bytes");
  refuses({{Kind::kReplace, "\xff", "a"}}, "UTF-8");
  refuses(
      {{Kind::kReplace, "a", std::string(16, 'a')}, {Kind::kReplace, "b", std::string(17, 'a')}},
      "too long");
  refuses({{Kind::kMarkWords, {}, std::string(256, 'a')}}, "too long");
}

}  // namespace
}  // namespace incipit::text
