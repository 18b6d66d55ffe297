// SPDX-License-Identifier: Apache-2.0
#include "compress/request.h"

#include "support/catch.h"

using incipit::compress::is_request;

TEST_CASE("questions and orders are requests, with or without a question mark") {
  for (const char* text :
       {"Where is it?", "no mark here? right", "what was her name again", "Remind me of the date.",
        "Good morning. Please book the room.", "So then tell them the code.", "I forgot the town.",
        "I cannot remember it", "你在哪里", "帮我写一封信。", "她叫什么名字", "好吗", "أين هو؟"}) {
    INFO(text);
    CHECK(is_request(text));
  }
}

TEST_CASE("what only tells is no request") {
  for (const char* text :
       {"", "I went home.", "The showing was nice.", "We found the list.", "今天天气很好。",
        "She moved to Lisbon. It rains.", "Whatever.", "\xFF"}) {
    INFO(text);
    CHECK_FALSE(is_request(text));
  }
}
