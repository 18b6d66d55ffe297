// SPDX-License-Identifier: Apache-2.0
#include "compress/boilerplate.h"

#include "compress/guard.h"
#include "compress/mixed_text.h"
#include "compress/pieces.h"
#include "support/catch.h"

namespace incipit::compress {
namespace {

std::string cleaned(std::string_view text) { return remove_boilerplate(text).text; }

TEST_CASE("removes greetings, closings and offers, and says so") {
  const std::string text =
      "Hello!\nThe server is down. I hope this helps. Let me know if you have any other "
      "questions!\n";
  const Cleaned result = remove_boilerplate(text);
  CHECK(result.text == "The server is down. ");
  REQUIRE(result.removed.size() == 3);
  CHECK(result.removed[0].reason == "greeting");
  CHECK(result.removed[0].span.of(text) == "Hello!\n");
  CHECK(result.removed[1].reason == "closing");
  CHECK(result.removed[2].reason == "offer");
}

TEST_CASE("removes them in Chinese") {
  CHECK(cleaned("您好！服务器坏了。希望对您有帮助！如果您还有其他问题，请随时告诉我。") ==
        "服务器坏了。");
  CHECK(cleaned("这是一个很好的问题！答案是三。") == "答案是三。");
  CHECK(cleaned("作为一个人工智能语言模型，我不能看电影。") == "我不能看电影。");
}

TEST_CASE("removes an opening that says nothing, and keeps what it opens") {
  CHECK(cleaned("As an AI language model, I cannot fly. Try 3 planes.") ==
        "I cannot fly. Try 3 planes.");
  CHECK(cleaned("As an AI language model,") == "As an AI language model,");
  CHECK(cleaned("As an AI company, we sell.") == "As an AI company, we sell.");
}

TEST_CASE("removes signatures, repeated separators and empty lines") {
  CHECK(cleaned("The text.\n-- \nJohn\nAcme\n") == "The text.\n");
  CHECK(cleaned("The text.\n-- \nJohn, +49 123\n") == "The text.\n-- \nJohn, +49 123\n");
  CHECK(cleaned("a\n-----\n\n-----\n-----\nb") == "a\n-----\n\nb");
  CHECK(cleaned("a\n=====\n-----\nb") == "a\n=====\n-----\nb");
  CHECK(cleaned("a\n\n\n\nb") == "a\n\nb");
}

TEST_CASE("what is in doubt stays") {
  for (const std::string_view text :
       {"Hello Bob! Ready?", "Thanks to you we won. Go on.", "He said \"Thank you.\" Then he left.",
        "\"I came. Thank you. Bye.\" That is it.", "他说：“你好。谢谢。再见。”然后走了。",
        "> Hello!\n> It is on.\n", "Sure. Book it.", "好的。订吧。", "No. Thanks 2 you.",
        "Do not do this. Yes.", "```\nHello!\n\n\n\nThanks!\n```\n", "{\"a\": \"Hello! Thanks!\"}",
        "| Hello! |\n|---|\n| Thanks! |\n"}) {
    if (cleaned(text) != text) FAIL_CHECK(text << " became " << cleaned(text));
    CHECK(remove_boilerplate(text).removed.empty());
  }
}

TEST_CASE("a text of nothing else stays") {
  for (const std::string_view text :
       {"", " ", "Hello!", "Hello! Thank you!", "谢谢！", "-- \nJohn\n"}) {
    CHECK(cleaned(text) == text);
  }
}

TEST_CASE("what is left is the text without the removed parts, with all its numbers and code") {
  std::mt19937 random(9);
  std::size_t removed = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string text = mixed_text(random, below(random, 16));
    const Cleaned result = remove_boilerplate(text);
    std::string left;
    std::size_t end = 0;
    for (const Removal& removal : result.removed) {
      REQUIRE(removal.span.begin >= end);
      REQUIRE(removal.span.end > removal.span.begin);
      left += text.substr(end, removal.span.begin - end);
      end = removal.span.end;
      for (const char c : removal.span.of(text)) REQUIRE(!(c >= '0' && c <= '9'));
      for (const Piece& piece : pieces(text)) {
        const bool is_apart =
            piece.span.end <= removal.span.begin || piece.span.begin >= removal.span.end;
        if (!is_apart && piece.kind != PieceKind::kSentence) FAIL(text);
      }
    }
    if (left + text.substr(end) != result.text) FAIL(text);
    removed += result.removed.size();
  }
  CHECK(removed > 1000);
}

TEST_CASE("long texts take linear time") {
  for (const std::string_view part :
       {"Hello! ", "\n", "> a", "-----\n", "a\n\n\n\n", "-- \n", "\"a. "}) {
    std::string text;
    while (text.size() < 300000) text += part;
    CHECK(!cleaned(text).empty());
  }
}

}  // namespace
}  // namespace incipit::compress
