// SPDX-License-Identifier: Apache-2.0
#include "compress/salience.h"

#include <string>

#include "support/catch.h"

using namespace incipit::compress;

namespace {

incipit::retrieve::Bm25 chat() {
  incipit::retrieve::Bm25 index;
  for (int i = 0; i < 50; ++i) index.add("that is so nice and i am glad to hear it");
  index.add("the flight to Lisbon leaves at 14 on friday");
  return index;
}

}  // namespace

TEST_CASE("rare words, names and numbers are salient, questions less so") {
  const incipit::retrieve::Bm25 index = chat();
  const auto value = [&](std::string_view text) { return salience(text, index); };
  CHECK(value("the flight leaves on friday") > value("that is so nice to hear it"));
  CHECK(value("the flight to Lisbon") == value("the flight to lisbon") * 5 / 4);
  CHECK(value("we go at 14") > value("we go at friday") * 5 / 4);
  CHECK(value("Is the flight on friday?") == value("Is the flight on friday") / 2);
  CHECK(value("") == 0);
  CHECK(value("...") == 0);
}

TEST_CASE("salience grows with the root of the length") {
  incipit::retrieve::Bm25 index;
  for (int i = 0; i < 20; ++i) index.add("filler");
  const std::uint64_t one = salience("alpha", index);
  CHECK(one == index.idf(0));
  CHECK(salience("alpha beta gamma delta", index) == Approx(2.0 * static_cast<double>(one)));
  std::string list = "alpha";
  for (int i = 0; i < 100; ++i) list += " 5";
  CHECK(static_cast<double>(salience(list, index)) < 40.0 * static_cast<double>(one));
}

TEST_CASE("questions of any script, in quotes or brackets") {
  for (const char* text :
       {"Why?", "好吗？", "لماذا؟", "(really?)\n", "\u300C何？\u300D", "What?!?\" "}) {
    CHECK(ends_in_question(text));
  }
  for (const char* text : {"", "?a", "Why", "What? No.", "!", "\"\"", "\xFF"}) {
    CHECK_FALSE(ends_in_question(text));
  }
}
