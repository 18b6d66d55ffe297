// SPDX-License-Identifier: Apache-2.0
#include "sampler/number.h"

#include <string>
#include <utility>
#include <vector>

#include "support/catch.h"

using incipit::sampler::fraction_of;
using incipit::sampler::last_number_of;

namespace {

using Cases = std::vector<std::pair<std::string, std::string>>;

}  // namespace

TEST_CASE("numbers are one key however they are written") {
  for (const auto& [answer, key] : Cases{
           {"18", "18"},
           {" 18. ", "18"},
           {"+18", "18"},
           {"018", "18"},
           {"18.0", "18"},
           {"18.", "18"},
           {"$18", "18"},
           {"18$", "18"},
           {"$18$", "18"},
           {"\\$18.50", "37/2"},
           {"€1,234.50", "2469/2"},
           {"-$5", "-5"},
           {"$-5", "-5"},
           {"- 5", "-5"},
           {"\u22125", "-5"},
           {"\u20135", "-5"},
           {"50%", "50"},
           {"50\\%", "50"},
           {"**42**", "42"},
           {"`42`", "42"},
           {"\"42\"", "42"},
           {"1,234,567", "1234567"},
           {"1{,}234", "1234"},
           {"1\\,234", "1234"},
           {"1'234", "1234"},
           {"1\u2019234", "1234"},
           {"1_000", "1000"},
           {"1\u00A0234", "1234"},
           {"1\u202F234\u202F567", "1234567"},
           {"1,00,000", "100000"},
           {"\uFF11\uFF12", "12"},
           {"\uFF0D\uFF11\uFF0C\uFF12\uFF13\uFF14\uFF0E\uFF15", "-2469/2"},
           {"1,234\u3002", "1234"},
           {"\uFF15\uFF61", "5"},
           {"5\u2026", "5"},
           {"\u200F-5\u200E", "-5"},
           {"\u202B1\u2060234\u202C", "1234"},
           {"\uFEFF7\u200B", "7"},
           {".5", "1/2"},
           {"0.50", "1/2"},
           {"-0.125", "-1/8"},
           {"3/4", "3/4"},
           {"6/8", "3/4"},
           {"-6/8", "-3/4"},
           {"6/3", "2"},
           {"2.5/1.5", "5/3"},
           {"0/5", "0"},
           {"3\u20444", "3/4"},
           {"\\frac{3}{4}", "3/4"},
           {"\\dfrac{6}{8}", "3/4"},
           {"-\\frac12", "-1/2"},
           {"$\\tfrac{1}{3}$", "1/3"},
           {"1e3", "1000"},
           {"1.5E-3", "3/2000"},
           {"2.50e+1", "25"},
           {"0", "0"},
           {"-0", "0"},
           {"0.000", "0"},
           {"0e38", "0"},
           {"1e38", "100000000000000000000000000000000000000"},
           {"99999999999999999999999999999999999999", "99999999999999999999999999999999999999"},
           {"0.00000000000000000000000000000000000002", "1/50000000000000000000000000000000000000"},
           {"2.00000000000000000000000000000000000000000000000000000000000000", "2"},
       }) {
    CAPTURE(answer);
    const auto found = fraction_of(answer);
    REQUIRE(found);
    CHECK(*found == key);
    CHECK(fraction_of(*found) == key);  // a key is its own key
  }
}

TEST_CASE("what is no number, or too long for one, has no fraction") {
  for (const std::string answer : {"",
                                   " ",
                                   ".",
                                   "-",
                                   "$",
                                   "%",
                                   "abc",
                                   "18 dollars",
                                   "3 4",
                                   "1,5",
                                   "1,23",
                                   "12,34,56",
                                   "1,2345",
                                   "1.2.3",
                                   "1..2",
                                   "3/0",
                                   "3/",
                                   "/3",
                                   "1/2/3",
                                   "1e39",
                                   "1e",
                                   "1e99999999999999999999",
                                   "e5",
                                   "--5",
                                   "5\u30025",
                                   "1e400",
                                   "1/0",
                                   "1.234,56",
                                   "-6/-8",
                                   "5-",
                                   "0x10",
                                   "inf",
                                   "nan",
                                   "\\frac{1}{0}",
                                   "\\frac{1}",
                                   "\\frac{1}{2",
                                   "\\frac{}{2}",
                                   "1\xFF",
                                   "\xE2\x88",
                                   "999999999999999999999999999999999999999999",
                                   "0.1234567890123456789012345678901234567890123"}) {
    CAPTURE(answer);
    CHECK_FALSE(fraction_of(answer));
  }
  // Long input is looked at once.
  CHECK_FALSE(fraction_of(std::string(1'000'000, '9')));
  CHECK(fraction_of(std::string(1'000'000, '0')) == "0");
}

TEST_CASE("the last number of a text") {
  for (const auto& [text, number] : Cases{
           {"She makes 9 * 2 = $18 a day.", "18"},
           {"#### 1,234.", "1,234"},
           {"16 - 3 - 4 = <<16-3-4=9>>9 eggs", "9"},
           {"the result is -5", "-5"},
           {"the result is \u22125.", "-5"},
           {"it costs -$5", "-5"},
           {"10-5", "5"},
           {"(3)-5", "5"},
           {"10 -5", "-5"},
           {"about 3/4 of them", "3/4"},
           {"50% of it", "50%"},
           {"1.5e3 m", "1.5e3"},
           {"5kg", "5"},
           {"the 3rd", "3"},
           {"答案是18。", "18"},
           {"答案是18。5个", "5"},
           {"\u200F\u221218\u200E", "-18"},
           {"\uFF11\uFF18", "18"},
           {"12 apples, version 1.2.3", "12"},
           {"12 apples on 1/2/2030", "12"},
           {"7 of B12", "7"},
           {"7 of x_1", "7"},
           {"1, 2, 3", "3"},
           {"1,5", "5"},
           {"at 12:30", "30"},
           {"0", "0"},
           {".5", ".5"},
           {"1.", "1"},
           {"...5", ".5"},
           {"2 + 2 = 4.", "4"},
       }) {
    CAPTURE(text);
    const auto found = last_number_of(text);
    REQUIRE(found);
    CHECK(*found == number);
  }
  for (const std::string text : {"", "none", "B12", "1.2.3", "1/2/2030", "e5", "\xFF", "-", "$"}) {
    CAPTURE(text);
    CHECK_FALSE(last_number_of(text));
  }
}

TEST_CASE("a long text of numbers is read in linear time") {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "1.2/3,4-5e";
  CHECK(last_number_of(text));
  std::string slashes(1'000'000, '/');
  for (std::size_t i = 0; i < slashes.size(); i += 2) slashes[i] = '1';
  CHECK_FALSE(last_number_of(slashes));
}
