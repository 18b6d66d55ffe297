// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_COMPRESS_GUARD_WORDS_H_
#define INCIPIT_COMPRESS_GUARD_WORDS_H_

#include <array>
#include <string_view>

namespace incipit::compress {

// Words of English and Chinese that decide what a sentence says. All tables ascend by bytes.

inline constexpr auto kLogicWords = std::to_array<std::string_view>({
    "above",    "accept",    "accepted",  "after",      "all",      "allow",      "allowed",
    "always",   "any",       "anything",  "barely",     "before",   "below",      "best",
    "better",   "between",   "bigger",    "both",       "can",      "cheaper",    "closed",
    "could",    "decrease",  "decreased", "decreases",  "denied",   "deny",       "different",
    "disable",  "disabled",  "double",    "down",       "each",     "earlier",    "either",
    "enable",   "enabled",   "equal",     "every",      "everyone", "everything", "exceed",
    "exceeds",  "except",    "fail",      "failed",     "fails",    "fall",       "false",
    "faster",   "fell",      "few",       "fewer",      "first",    "forbid",     "forbidden",
    "from",     "greater",   "half",      "hardly",     "higher",   "if",         "impossible",
    "increase", "increased", "increases", "invalid",    "larger",   "last",       "later",
    "least",    "left",      "less",      "longer",     "lower",    "many",       "max",
    "maximum",  "may",       "might",     "min",        "minimum",  "more",       "most",
    "much",     "must",      "neither",   "never",      "next",     "no",         "nobody",
    "non",      "none",      "nor",       "not",        "nothing",  "nowhere",    "off",
    "often",    "on",        "once",      "only",       "open",     "out",        "over",
    "pass",     "passed",    "previous",  "prohibited", "rarely",   "reject",     "rejected",
    "right",    "rise",      "rose",      "same",       "scarcely", "seldom",     "several",
    "shall",    "shorter",   "should",    "slower",     "smaller",  "some",       "sometimes",
    "than",     "to",        "true",      "twice",      "under",    "unless",     "until",
    "up",       "usually",   "will",      "within",     "without",  "worse",      "worst",
    "would",
});

inline constexpr auto kNumberWords = std::to_array<std::string_view>({
    "april",     "august",    "billion",  "december", "dozen",    "eight",   "eighteen",
    "eighty",    "eleven",    "february", "fifteen",  "fifth",    "fifty",   "five",
    "forty",     "four",      "fourteen", "fourth",   "friday",   "hundred", "january",
    "july",      "june",      "march",    "million",  "monday",   "nine",    "nineteen",
    "ninety",    "november",  "october",  "one",      "saturday", "second",  "september",
    "seven",     "seventeen", "seventy",  "six",      "sixteen",  "sixty",   "sunday",
    "ten",       "third",     "thirteen", "thirty",   "thousand", "three",   "thursday",
    "today",     "tomorrow",  "tuesday",  "twelve",   "twenty",   "two",     "wednesday",
    "yesterday", "zero",
});

// Words that begin sentences and are no names.
inline constexpr auto kStarters = std::to_array<std::string_view>({
    "a",       "actually", "add",       "additionally", "also",    "although", "an",     "and",
    "another", "are",      "as",        "ask",          "because", "besides",  "but",    "by",
    "call",    "check",    "do",        "does",         "during",  "finally",  "for",    "give",
    "has",     "have",     "he",        "hello",        "help",    "her",      "here",   "hey",
    "hi",      "his",      "how",       "however",      "i",       "in",       "indeed", "instead",
    "is",      "it",       "its",       "keep",         "kindly",  "let",      "like",   "look",
    "make",    "maybe",    "meanwhile", "moreover",     "my",      "note",     "now",    "of",
    "oh",      "ok",       "okay",      "our",          "perhaps", "please",   "put",    "remember",
    "run",     "send",     "she",       "show",         "since",   "so",       "sorry",  "sure",
    "take",    "tell",     "thank",     "thanks",       "that",    "the",      "their",  "then",
    "there",   "these",    "they",      "this",         "those",   "though",   "thus",   "try",
    "use",     "was",      "we",        "well",         "were",    "what",     "when",   "where",
    "which",   "while",    "who",       "why",          "with",    "write",    "yes",    "yet",
    "you",     "your",
});

// Read as no logic and no number, though they hold characters of both.
inline constexpr auto kHarmlessChinese = std::to_array<std::string_view>(
    {"一下", "一会", "一共", "一定", "一方面", "一旦",   "一样", "一直", "一致", "一般", "一起",
     "一边", "一面", "上午", "上海", "下午",   "不仅",   "不但", "不断", "不过", "不错", "东西",
     "会议", "内容", "别人", "别的", "前往",   "北京",   "区别", "十分", "南京", "另外", "同事",
     "同学", "同时", "否则", "唯一", "大学",   "大家",   "大概", "小区", "小心", "尽快", "开会",
     "无聊", "无论", "早上", "晚上", "晚饭",   "最近",   "有点", "未来", "机会", "此外", "特别",
     "社会", "类别", "级别", "统一", "进一步", "那么多", "长期", "难道", "非常", "高兴"});

inline constexpr auto kLogicChinese = std::to_array<std::string_view>(
    {"だけ", "ない", "なく", "ません", "一些", "一切", "上",   "上升", "下",   "下降", "不",
     "不能", "不足", "东",   "之前",   "之后", "仅",   "以上", "以下", "以内", "以前", "以后",
     "任何", "会",   "低",   "假",     "允许", "先",   "全部", "关",   "内",   "减",   "几",
     "別",   "别",   "前",   "勿",     "北",   "升",   "半",   "南",   "只",   "可以", "可能",
     "右",   "同",   "同意", "后",     "否",   "增",   "外",   "多",   "大",   "失败", "如果",
     "小",   "少",   "左",   "应",     "开",   "必须", "快",   "慢",   "成功", "所有", "拒绝",
     "接受", "新",   "无",   "旧",     "早",   "晚",   "更",   "最",   "有",   "未",   "每",
     "比",   "沒",   "没",   "涨",     "無",   "真",   "短",   "禁",   "禁止", "西",   "许",
     "超",   "跌",   "长",   "降",     "除了", "除非", "难",   "非",   "高"});

}  // namespace incipit::compress

#endif  // INCIPIT_COMPRESS_GUARD_WORDS_H_
