// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdlib>
#include <string>

#include "compress/mixed_text.h"
#include "incipit/compressor.h"
#include "support/catch.h"

namespace incipit {
namespace {

std::size_t rough(std::string_view text) { return rough_token_counter().text(text); }

// What the tokenizer of SmolLM2 makes of these texts.
struct Recorded {
  std::string_view text;
  std::size_t tokens;
};
constexpr auto kRecorded = std::to_array<Recorded>({
    {"The committee met on Tuesday afternoon to discuss the proposal, and after a long debate it "
     "decided to postpone the vote until the next session because several members wanted more "
     "information about the costs.",
     37},
    {"Could you please help me find a flight from New York to Seattle on May 20th? I would prefer "
     "to leave before 9:30 in the morning, and I'd like to check two bags.",
     44},
    {"Natalia sold clips to 48 of her friends in April, and then she sold half as many clips in "
     "May. How many clips did Natalia sell altogether in April and May?",
     39},
    {"Photosynthesis is the process by which green plants use sunlight to make their own food from "
     "carbon dioxide and water; the oxygen that is released keeps animals, and us, alive.",
     35},
    {"- First, open the settings menu.\n- Then choose \"Network\" and press OK.\n- Finally, "
     "restart the computer (this may take a few minutes).\n",
     35},
    {"#include <vector>\n\nint sum(const std::vector<int>& values) {\n  int total = 0;\n  for (int "
     "value : values) {\n    total += value;\n  }\n  return total;\n}\n",
     51},
    {"def read_lines(path):\n    \"\"\"Return all lines of a file.\"\"\"\n    with open(path, "
     "encoding=\"utf-8\") as f:\n        return [line.rstrip() for line in f if line.strip()]\n",
     48},
    {"for (let i = 0; i < items.length; i++) {\n  if (items[i].isActive && !items[i].hidden) {\n   "
     " console.log(`Item ${i}: ${items[i].name}`);\n  }\n}\n",
     63},
    {"{\"user_id\": \"mia_li_3668\", \"name\": {\"first_name\": \"Mia\", \"last_name\": \"Li\"}, "
     "\"payment\": [{\"amount\": 174, \"currency\": \"USD\"}]}",
     54},
    {"Traceback (most recent call last):\n  File \"/usr/lib/python3/run.py\", line 42, in main\n   "
     " result = parse(config)\nValueError: invalid literal for int() with base 10: 'abc'\n",
     54},
});

TEST_CASE("is within 15 % of a tokenizer on English and code") {
  std::size_t total = 0, expected = 0;
  for (const Recorded& recorded : kRecorded) {
    const std::size_t tokens = rough(recorded.text);
    INFO(recorded.text);
    INFO(tokens << " instead of " << recorded.tokens);
    CHECK(tokens * 100 <= recorded.tokens * 115);
    CHECK(tokens * 100 >= recorded.tokens * 85);
    total += tokens;
    expected += recorded.tokens;
  }
  CHECK(total * 100 <= expected * 105);
  CHECK(total * 100 >= expected * 95);
}

TEST_CASE("counts other scripts by characters, not by bytes") {
  const auto repeated = [](std::string_view part, int times) {
    std::string text;
    for (int i = 0; i < times; ++i) text += part;
    return text;
  };
  const auto between = [](std::size_t tokens, std::size_t low, std::size_t high) {
    return tokens >= low && tokens <= high;
  };
  // A hundred characters each. Four bytes for a token would make 75 of Han, and 50 of Cyrillic.
  CHECK(between(rough(repeated("中文测试", 25)), 100, 190));
  CHECK(between(rough(repeated("ひらがな", 25)), 80, 190));
  CHECK(between(rough(repeated("안녕하세", 25)), 100, 280));
  CHECK(between(rough(repeated("Привет ", 14)), 45, 98));
  CHECK(between(rough(repeated("مرحبا ", 17)), 45, 100));
  CHECK(between(rough(repeated("नमस्ते ", 14)), 60, 120));
  CHECK(between(rough(repeated("👍", 100)), 200, 300));
  CHECK(between(rough(repeated("é", 100)), 50, 150));
}

TEST_CASE("a text is never free, and a longer one takes no less") {
  CHECK(rough("") == 0);
  CHECK(rough(" ") == 1);
  CHECK(rough("a") == 1);
  CHECK(rough("\xFF\xFF") == 2);
  std::mt19937 random(2);
  for (int i = 0; i < 1000; ++i) {
    const std::string text = compress::mixed_text(random, 1 + compress::below(random, 20));
    const std::string longer = text + " and more of it";
    CHECK(rough(text) > 0);
    CHECK(rough(longer) > rough(text));
  }
}

TEST_CASE("a message takes five more than what is shown of it") {
  const TokenCounter counter = rough_token_counter();
  CHECK(counter.prompt == 0);
  Message message;
  CHECK(counter.message(message) == 5);
  message.text = "Call it.";
  message.tool_calls = {{"1", "get_weather", "{\"city\": \"Paris\"}"}};
  CHECK(counter.message(message) == rough(shown_text(message)) + 5);
  CHECK(counter.message(message) > rough(message.text) + 10);
}

}  // namespace
}  // namespace incipit
