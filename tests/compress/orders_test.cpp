// SPDX-License-Identifier: Apache-2.0
#include "compress/orders.h"

#include <string>

#include "support/catch.h"

namespace incipit::test {
namespace {

using compress::is_order;

TEST_CASE("sentences that begin like an order bind") {
  for (const char* sentence :
       {"Never push to main.", "never push to main", "Always answer in French. ", "Do not guess!",
        "Don't delete logs.", "Don\xE2\x80\x99t delete logs.", "From now on, use metric units.",
        "Under no circumstances call the client.", "You must not restart the server.",
        "Whatever happens, keep the table.", "Only use tabs.", "Avoid adverbs.",
        "Please, never mind" /* no order, see below */}) {
    CAPTURE(sentence);
    CHECK(is_order(sentence) == (std::string(sentence) != "Please, never mind"));
  }
  for (const char* sentence : {"不要删除日志。", "请不要删除日志。", "记住：务必先备份。",
                               "从现在起用中文回答。", "请注意，禁止外传！", "绝不透露密码"}) {
    CAPTURE(sentence);
    CHECK(is_order(sentence));
  }
}

TEST_CASE("what stands in front of an order is passed over") {
  for (const char* front : {"Please ", "Important: ", "And please ", "But ", "- ", " * ", "> ",
                            "Note: remember: ", "  \t"}) {
    CAPTURE(front);
    CHECK(is_order(std::string(front) + "never push to main."));
    CHECK_FALSE(is_order(std::string(front) + "we pushed to main."));
  }
}

TEST_CASE("what only mentions a prohibition, or asks, is no order") {
  for (const char* sentence : {"",
                               " ",
                               ".",
                               "-",
                               "Please ",
                               "请",
                               "He said never to push.",
                               "I never push to main.",
                               "It must not rain.",
                               "Never mind.",
                               "Don't worry about it.",
                               "Never heard of it.",
                               "I don't know.",
                               "Don't you think so?",
                               "Never again?",
                               "\"Always?\"",
                               "Nevertheless we go.",
                               "Neverland is far.",
                               "Alwaysland",
                               "我们不要去。",
                               "不要紧。",
                               "不得不走。",
                               "必须吗？"}) {
    CAPTURE(sentence);
    CHECK_FALSE(is_order(sentence));
  }
}

TEST_CASE("a long text is no order") {
  const std::string order = "Never push to main";
  CHECK(is_order(order + std::string(600 - order.size(), '!')));
  CHECK_FALSE(is_order(order + std::string(601 - order.size(), '!')));
  // Openings may follow each other without end.
  std::string fronts;
  while (fronts.size() < 500) fronts += "please ";
  CHECK_FALSE(is_order(fronts + "never"));
  CHECK_FALSE(is_order(std::string(1 << 20, '-')));
}

}  // namespace
}  // namespace incipit::test
