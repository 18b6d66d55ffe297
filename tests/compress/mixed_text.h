// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_COMPRESS_MIXED_TEXT_H_
#define INCIPIT_TESTS_COMPRESS_MIXED_TEXT_H_

#include <array>
#include <cstddef>
#include <random>
#include <string>
#include <string_view>

namespace incipit::compress {

/// A number below `count`, the same on every machine.
inline std::size_t below(std::mt19937& random, std::size_t count) { return random() % count; }

/// Parts of prose in several scripts, code, JSON, tables, logs and broken ones of each.
inline constexpr auto kFragments = std::to_array<std::string_view>({
    "The meeting moved to 14:30. ",
    "Do NOT delete /etc/hosts! ",
    "Mr. Smith paid $1,234.56. ",
    "请不要删除这个文件。",
    "今天下午三点开会，地点没有变。",
    "東京の天気は晴れです。",
    "مرحبا بالعالم؟ ",
    "안녕하세요. ",
    "👩‍👩‍👧‍👦",
    "🇩🇪🇫🇷",
    "e\u0301",
    "👍🏽 ",
    "\u0301",
    "\u200d",
    "\u0600",
    "\r\n",
    "\n",
    "\n\n",
    "   ",
    "\t",
    "```\n",
    "```python\nprint('x')\n",
    "~~~~\n",
    "````\n",
    "> quoted\n",
    "- item\n",
    "  1. item\n",
    "    ```\n",
    "{\"a\": [1, 2, {\"b\": \"\\u00e9\\n\"}]}",
    "{\"a\": ",
    "[{\"x\": 1}, {\"x\": 2}]",
    "[1, 2",
    "\"",
    "\\",
    "{",
    "[",
    "]",
    "}",
    "[{",
    "| a | b |\n|---|:-:|\n| 1 | 2 |\n",
    "| a |",
    "+---+---+\n",
    "|",
    "2024-01-02 10:11:12 INFO ok\n",
    "[ERROR] failed at 0x7f\n",
    "INFO: fine\n",
    "\xFF",
    "\xE4\xB8",
    "\xF0\x9F",
    "-- \n",
    "-----\n",
    "Hello!\n",
    "Best regards,\n",
    "谢谢！",
    "As an AI language model, ",
    "\"Thank you.\" ",
});

inline std::string mixed_text(std::mt19937& random, std::size_t fragments) {
  std::string text;
  for (std::size_t i = 0; i < fragments; ++i) text += kFragments[below(random, kFragments.size())];
  return text;
}

}  // namespace incipit::compress

#endif  // INCIPIT_TESTS_COMPRESS_MIXED_TEXT_H_
