// SPDX-License-Identifier: Apache-2.0
#include "compress/orders.h"

#include <array>
#include <string>

#include "compress/salience.h"
#include "text/ascii.h"

namespace incipit::compress {
namespace {

using text::is_space;
using text::to_lower;

constexpr std::size_t kLongestOrder = 600;  // bytes; what is longer is a text, not an order

constexpr auto kOpenings = std::to_array<std::string_view>({
    "please ",
    "important: ",
    "note: ",
    "remember: ",
    "reminder: ",
    "also, ",
    "and ",
    "but ",
    "also ",
});
constexpr auto kOrders = std::to_array<std::string_view>({
    "never ",
    "always ",
    "do not ",
    "don't ",
    "don\xE2\x80\x99t ",
    "from now on",
    "under no circumstances",
    "you must ",
    "you must not ",
    "must not ",
    "make sure you never ",
    "make sure to never ",
    "make sure you always ",
    "make sure to always ",
    "whatever happens",
    "no matter what",
    "avoid ",
    "only use ",
});
// "Don't worry", "Never mind": no orders.
constexpr auto kNoOrders = std::to_array<std::string_view>({
    "never mind",
    "don't worry",
    "do not worry",
    "don\xE2\x80\x99t worry",
    "don't you",
    "do not you",
    "don\xE2\x80\x99t you",
    "don't get me wrong",
    "don't know",
    "don\xE2\x80\x99t know",
    "never heard",
    "never been",
    "never thought",
    "always wanted",
    "always been",
    "always thought",
    "always loved",
    "don't think",
    "don't remember",
    "don't mention it",
});
constexpr auto kChineseOpenings =
    std::to_array<std::string_view>({"请注意", "请", "注意", "记住", "：", "，", ":", ","});
constexpr auto kChineseOrders = std::to_array<std::string_view>({
    "不要",   "不能", "不得",     "不准",       "不许",   "禁止",   "严禁", "切勿",
    "请勿",   "勿",   "绝不",     "绝对不",     "千万不", "千万别", "必须", "务必",
    "一定要", "始终", "从现在起", "从现在开始", "以后都", "别再",
});
constexpr auto kChineseNoOrders = std::to_array<std::string_view>(
    {"不要紧", "不能不", "不得不", "不得了", "不要担心", "不要客气"});

template <std::size_t n>
std::size_t front_of(std::string_view text, const std::array<std::string_view, n>& fronts) {
  for (const std::string_view front : fronts) {
    if (text.starts_with(front)) return front.size();
  }
  return 0;
}

std::string_view without_marks(std::string_view text) {
  while (!text.empty() && (is_space(text.front()) || text.front() == '-' || text.front() == '*' ||
                           text.front() == '>')) {
    text.remove_prefix(1);
  }
  return text;
}

}  // namespace

bool is_order(std::string_view sentence) {
  std::string_view text = without_marks(sentence);
  if (text.size() > kLongestOrder || ends_in_question(text)) return false;
  constexpr std::size_t kLongestFront = 64;
  std::string lower(text.substr(0, kLongestFront));
  for (char& c : lower) c = to_lower(c);
  std::string_view rest = lower;
  while (const std::size_t opening = front_of(rest, kOpenings)) rest.remove_prefix(opening);
  if (front_of(rest, kNoOrders) > 0) return false;
  if (front_of(rest, kOrders) > 0) return true;
  while (const std::size_t opening = front_of(rest, kChineseOpenings)) rest.remove_prefix(opening);
  return front_of(rest, kChineseNoOrders) == 0 && front_of(rest, kChineseOrders) > 0;
}

}  // namespace incipit::compress
