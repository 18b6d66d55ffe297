// SPDX-License-Identifier: Apache-2.0
#include "compress/summary_memory.h"

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/catch.h"

namespace incipit::test {
namespace {

std::vector<Message> segment_of_one(std::string text, Role role = Role::kUser) {
  Message message{.role = role};
  message.text = std::move(text);
  return {message};
}

TEST_CASE("no Summarizer stays none") { CHECK_FALSE(compress::remembering({})); }

TEST_CASE("the same summary is asked for once") {
  std::size_t calls = 0;
  const Summarizer summarizer =
      compress::remembering([&calls](const SummaryRequest&) { return std::to_string(++calls); });
  const std::vector<Message> a = segment_of_one("a"), b = segment_of_one("b");
  const std::vector<Message> other_role = segment_of_one("a", Role::kAssistant);
  CHECK(summarizer({{}, a, 10}) == "1");
  CHECK(summarizer({{}, a, 10}) == "1");
  CHECK(summarizer({b, a, 10}) == "1");  // the prompt around it says nothing of it
  CHECK(summarizer({{}, a, 11}) == "2");
  CHECK(summarizer({{}, b, 10}) == "3");
  CHECK(summarizer({{}, other_role, 10}) == "4");
  CHECK(summarizer({{}, {}, 10}) == "5");
  CHECK(summarizer({{}, a, 10}) == "1");
  CHECK(calls == 5);
}

TEST_CASE("what was used last is remembered longest") {
  std::size_t calls = 0;
  const Summarizer summarizer =
      compress::remembering([&calls](const SummaryRequest&) { return std::to_string(++calls); });
  const std::vector<Message> a = segment_of_one("a");
  for (std::size_t i = 0; i < 100; ++i) {
    CHECK(summarizer({{}, a, 10}) == "1");
    summarizer({{}, a, 100 + i});
  }
  CHECK(summarizer({{}, a, 100}) == "102");  // long forgotten
}

TEST_CASE("a Summarizer that throws says nothing, and the same when it is asked again") {
  std::size_t calls = 0;
  const Summarizer summarizer = compress::remembering([&calls](const SummaryRequest&) {
    if (++calls == 1) throw std::runtime_error("timed out");
    return std::string("late");
  });
  const std::vector<Message> a = segment_of_one("a"), b = segment_of_one("b");
  CHECK(summarizer({{}, a, 10}).empty());
  CHECK(summarizer({{}, a, 10}).empty());
  CHECK(calls == 1);
  CHECK(summarizer({{}, b, 10}) == "late");
}

}  // namespace
}  // namespace incipit::test
