// SPDX-License-Identifier: Apache-2.0
#include "compress/edited_texts.h"

#include <array>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "compress/mixed_text.h"

namespace incipit::compress {
namespace {

using Pair = std::pair<std::string_view, std::string_view>;

template <class List>
std::string pick(const List& list, std::mt19937& random) {
  return std::string(list[below(random, list.size())]);
}

/// Replaces the first `from` in `text`; false where there is none.
bool replace(std::string& text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) return false;
  text.replace(at, from.size(), to);
  return true;
}

/// Makes one of the replacements that fit.
template <class List>
std::string with_one(std::string text, const List& pairs, std::mt19937& random) {
  const std::size_t first = below(random, pairs.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const Pair& pair = pairs[(first + i) % pairs.size()];
    if (replace(text, pair.first, pair.second)) return text;
  }
  throw std::logic_error("the text has nothing to replace: " + text);
}

constexpr auto kZhPlaces =
    std::to_array<std::string_view>({"西湖边的那家老茶馆", "火车站对面的图书馆",
                                     "公司总部的小会议室", "城郊新开的植物园", "学校旁边的体育馆"});
constexpr auto kZhThings =
    std::to_array<std::string_view>({"季度销售报告", "新员工培训资料", "客户满意度调查",
                                     "产品设计方案", "旅行行程安排", "设备维修记录"});
constexpr auto kZhPeople = std::to_array<std::string_view>(
    {"财务部的同事", "王经理", "合作公司的代表", "张老师", "项目组成员"});
constexpr auto kZhOrders = std::to_array<std::string_view>(
    {"内容不要超过规定的篇幅", "所有数据都必须核对清楚", "没有确认的部分请标记出来",
     "任何修改都要通知我", "价格不能比去年更高"});
constexpr auto kZhReasons = std::to_array<std::string_view>(
    {"因为领导很重视这次活动的效果", "这样方便我们安排后续的工作", "毕竟时间比较紧张而且人手有限",
     "主要是想了解目前的进展情况", "希望能够顺利完成这个任务"});

constexpr auto kEnPlaces = std::to_array<std::string_view>(
    {"the library across the station", "the small meeting room upstairs",
     "the new garden near the river", "the old cafe beside the school",
     "the gym behind the office"});
constexpr auto kEnThings = std::to_array<std::string_view>(
    {"quarterly sales report", "training material for new staff", "customer survey results",
     "draft of the product design", "travel plan for the team", "repair log of the machines"});
constexpr auto kEnPeople = std::to_array<std::string_view>(
    {"our finance colleagues", "the project manager", "the partner company", "my former teacher"});
constexpr auto kEnOrders = std::to_array<std::string_view>(
    {"Do not exceed the agreed length", "All figures must be checked carefully",
     "Never share it without my approval", "Every change needs a short comment",
     "The price should not be higher than before"});
constexpr auto kEnReasons = std::to_array<std::string_view>(
    {"because the board cares deeply about this event", "which helps us plan the remaining work",
     "since time is short and our team is small", "as we want a clear view of the progress"});

constexpr auto kDigits =
    std::to_array<std::string_view>({"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"});
constexpr auto kWideDigits =
    std::to_array<std::string_view>({"０", "１", "２", "３", "４", "５", "６", "７", "８", "９"});

std::string number(std::mt19937& random) { return std::to_string(10 + below(random, 9990)); }

}  // namespace

std::string chinese_text(std::mt19937& random) {
  return "你好，请帮我整理编号" + number(random) + "的" + pick(kZhThings, random) + "，然后发给" +
         pick(kZhPeople, random) + "，我们计划在" + pick(kZhPlaces, random) + "讨论这件事情。" +
         pick(kZhOrders, random) + "，" + pick(kZhReasons, random) + "。另外还需要准备" +
         number(random) + "份打印材料，" + pick(kZhReasons, random) + "，麻烦你尽快处理，谢谢！";
}

std::string english_text(std::mt19937& random) {
  return "Hello, please prepare the " + pick(kEnThings, random) + " with number " + number(random) +
         " and send it to " + pick(kEnPeople, random) + ". We plan to discuss it at " +
         pick(kEnPlaces, random) + ", " + pick(kEnReasons, random) + ". " +
         pick(kEnOrders, random) + ". Also bring " + number(random) + " printed copies of the " +
         pick(kEnThings, random) + " with you, " + pick(kEnReasons, random) +
         ". Thanks a lot for your quick help!";
}

std::string harmless_chinese_edit(const std::string& text, std::mt19937& random) {
  constexpr auto kWords = std::to_array<Pair>({{"你好，", "您好，"},
                                               {"请帮我", "麻烦帮我"},
                                               {"尽快处理", "抓紧处理"},
                                               {"，谢谢！", "，谢谢啦！"},
                                               {"这件事情", "这件事"},
                                               {"另外还", "此外还"},
                                               {"讨论", "商量"}});
  constexpr auto kMarks =
      std::to_array<Pair>({{"，", ","}, {"。", "！"}, {"，", " "}, {"！", "。"}, {"。", "。\n"}});
  std::string edited = text;
  for (std::size_t edits = 1 + below(random, 3); edits > 0; --edits) {
    edited = with_one(edited, kWords, random);
  }
  for (std::size_t edits = below(random, 3); edits > 0; --edits) {
    edited = with_one(edited, kMarks, random);
  }
  if (below(random, 2) == 0) {
    constexpr auto kFillers =
        std::to_array<std::string_view>({"其实", "麻烦了，", "呢", "一下，", "嗯，"});
    std::size_t at = edited.find("，", below(random, edited.size()));
    if (at != std::string::npos)
      edited.insert(at + std::string_view("，").size(), pick(kFillers, random));
  }
  if (below(random, 3) == 0) {
    for (std::size_t digit = 0; digit < kDigits.size(); ++digit) {
      while (replace(edited, kDigits[digit], kWideDigits[digit])) {
      }
    }
  }
  return edited;
}

std::string harmless_english_edit(const std::string& text, std::mt19937& random) {
  constexpr auto kWords = std::to_array<Pair>({{"Hello, please", "Hi, please"},
                                               {"prepare", "get ready"},
                                               {"quick help", "help"},
                                               {"Also bring", "Please bring"},
                                               {"Thanks a lot", "Thank you"},
                                               {"discuss", "talk about"},
                                               {"with you", "along"}});
  constexpr auto kMarks = std::to_array<Pair>(
      {{", ", " - "}, {". ", ".\n"}, {"!", "."}, {". ", "! "}, {" the ", "  the "}});
  std::string edited = text;
  for (std::size_t edits = 1 + below(random, 3); edits > 0; --edits) {
    edited = with_one(edited, kWords, random);
  }
  for (std::size_t edits = below(random, 4); edits > 0; --edits) {
    edited = with_one(edited, kMarks, random);
  }
  return edited;
}

std::string changed_number(const std::string& text, std::mt19937& random) {
  std::string changed = text;
  std::vector<std::size_t> digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] >= '0' && text[i] <= '9') digits.push_back(i);
  }
  char& digit = changed[digits[below(random, digits.size())]];
  digit =
      static_cast<char>('0' + (static_cast<std::size_t>(digit - '0') + 1 + below(random, 9)) % 10);
  return changed;
}

std::string changed_chinese_logic(const std::string& text, std::mt19937& random) {
  constexpr auto kChanges = std::to_array<Pair>({{"不要", "要"},
                                                 {"不能", "能"},
                                                 {"必须", "可以"},
                                                 {"没有", "已经"},
                                                 {"所有", "部分"},
                                                 {"任何", "重大"},
                                                 {"更高", "更低"},
                                                 {"不要", "必须"}});
  return with_one(text, kChanges, random);
}

std::string changed_english_logic(const std::string& text, std::mt19937& random) {
  constexpr auto kChanges = std::to_array<Pair>({{"Do not exceed", "Do exceed"},
                                                 {"should not", "should"},
                                                 {"must be", "may be"},
                                                 {"Never", "Always"},
                                                 {"All figures", "Some figures"},
                                                 {"Every", "No"},
                                                 {"higher", "lower"}});
  return with_one(text, kChanges, random);
}

}  // namespace incipit::compress
