// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_EXAMPLES_ORDERS_H_
#define INCIPIT_EXAMPLES_ORDERS_H_

#include <cstddef>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "support.h"

// Many-shot extraction: a long text of worked examples precedes an order. examples/data/README.md
// says what the orders are and how they were drawn.

namespace examples {

inline constexpr char kOrder[] = "\nOrder: ";  // begins each example, and each question
inline constexpr char kResult[] = "\nResult:";

struct Question {
  std::string order, expected;
};

inline std::vector<Question> read_questions(const std::string& path) {
  std::istringstream lines(read_file(path));
  std::vector<Question> questions;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t tab = line.find('\t');
    if (tab == std::string::npos) throw std::runtime_error("no tab in a line of " + path);
    questions.push_back({line.substr(0, tab), line.substr(tab + 1)});
  }
  if (questions.size() < 2) throw std::runtime_error(path + " must hold two questions at least");
  return questions;
}

/// The front of the prompt that holds `count` worked examples.
inline std::string first_examples(const std::string& text, std::size_t count) {
  std::size_t end = text.find(kOrder);
  for (; count > 0 && end != std::string::npos; --count) end = text.find(kOrder, end + 1);
  return text.substr(0, end);
}

inline std::string prompt_of(const Question& question) { return kOrder + question.order + kResult; }

/// The answer that a text is: what stands on the line behind kResult.
inline std::string answer_of(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == std::string_view::npos ? "" : std::string(text.substr(begin));
}

}  // namespace examples

#endif  // INCIPIT_EXAMPLES_ORDERS_H_
