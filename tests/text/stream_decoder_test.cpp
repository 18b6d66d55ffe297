// SPDX-License-Identifier: Apache-2.0
#include "text/stream_decoder.h"

#include "support/catch.h"
#include "text/fixture.h"
#include "text/utf8.h"

namespace incipit::text {
namespace {

std::string replaced(std::string_view bytes) {
  std::string text;
  if (append_replaced(text, bytes) < bytes.size()) text += kReplacementCharacter;
  return text;
}

TEST_CASE("a begun character waits for its rest") {
  StreamDecoder decoder;
  CHECK(decoder.push("a\xf0\x9f") == "a");
  CHECK(decoder.push("").empty());
  CHECK(decoder.push("\x91").empty());
  CHECK(decoder.push("\x8d!") == "\U0001F44D!");
  CHECK(decoder.finish().empty());
}

TEST_CASE("what cannot become a character is replaced, at the latest at the end") {
  StreamDecoder decoder;
  CHECK(decoder.push("\xe4\xb8") == "");
  CHECK(decoder.push("x") == "\uFFFDx");
  CHECK(decoder.push("\xff\xe4") == "\uFFFD");
  CHECK(decoder.finish() == "\uFFFD");
  CHECK(decoder.finish().empty());
  CHECK(decoder.push("\xb8") == "\uFFFD");  // as new: no rest of what was before
}

TEST_CASE("one space is left out at the very beginning where asked for") {
  StreamDecoder decoder(/*strip_space=*/true);
  CHECK(decoder.push("").empty());
  CHECK(decoder.push("  a") == " a");
  CHECK(decoder.push(" b") == " b");
  CHECK(decoder.finish().empty());
  CHECK(decoder.push(" c") == " c");
  CHECK(StreamDecoder(true).push("a ") == "a ");
  CHECK(StreamDecoder(false).push(" a") == " a");
}

TEST_CASE("any cutting gives whole characters and the text of the joined bytes") {
  std::mt19937 random(5);
  for (int round = 0; round < 3000; ++round) {
    const std::string bytes =
        round % 2 == 0 ? random_text(random, 6) : random_bytes(random, 20) + random_text(random, 2);
    std::uniform_int_distribution<std::size_t> size(0, 3);
    StreamDecoder decoder;
    std::string text;
    for (std::size_t done = 0; done < bytes.size();) {
      const std::string piece = bytes.substr(done, size(random));
      done += piece.size();
      const std::string out = decoder.push(piece);
      if (valid_front(out) != out.size()) FAIL_CHECK("a character was split");
      text += out;
    }
    text += decoder.finish();
    if (text != replaced(bytes)) FAIL_CHECK(round);
  }
}

}  // namespace
}  // namespace incipit::text
