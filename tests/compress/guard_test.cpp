// SPDX-License-Identifier: Apache-2.0
#include "compress/guard.h"

#include <string>
#include <vector>

#include "compress/mixed_text.h"
#include "support/catch.h"

namespace incipit::compress {
namespace {

using Tokens = std::vector<std::string>;

Tokens tokens(std::string_view text, CriticalKind kind) {
  Tokens found;
  for_each_critical(text, [&](CriticalKind of, std::string_view token, std::size_t) {
    if (of == kind) found.emplace_back(token);
  });
  return found;
}
Tokens numbers(std::string_view text) { return tokens(text, CriticalKind::kNumber); }
Tokens logic(std::string_view text) { return tokens(text, CriticalKind::kLogic); }
Tokens identifiers(std::string_view text) { return tokens(text, CriticalKind::kIdentifier); }
Tokens paths(std::string_view text) { return tokens(text, CriticalKind::kPath); }
Tokens names(std::string_view text) { return tokens(text, CriticalKind::kName); }

TEST_CASE("finds numbers of all spellings") {
  CHECK(numbers("") == Tokens{});
  CHECK(numbers("It costs 1,234.56, or $-7.") == Tokens{"1234.56", "$-7"});
  CHECK(numbers("0x7f 10:30 2024-01-02 50% 3rd 10kg .5") ==
        Tokens{"0x7f", "10:30", "2024-01-02", "50%", "3rd", "10kg", ".5"});
  CHECK(numbers("(12) [13] \"14\"; 15!") == Tokens{"12", "13", "14", "15"});
  CHECK(numbers("1,2,3") == Tokens{"1,2,3"});
  CHECK(numbers("共三十二人，一千两百元") == Tokens{"三十二", "一千两百"});
  CHECK(numbers("价格１２３．５元，又１，０００") == Tokens{"123.5", "1000"});
  CHECK(numbers("٣٤ और ५६") == Tokens{"34", "56"});
  CHECK(numbers("on Monday, twenty people in May") == Tokens{"monday", "twenty"});
  CHECK(numbers("我们一起看一下，一直一样") == Tokens{});
}

TEST_CASE("finds negations, quantifiers and comparatives") {
  CHECK(logic("do NOT delete") == Tokens{"not"});
  CHECK(logic("don't") == logic("do not"));
  CHECK(logic("I can't, cannot, won't") == Tokens{"can", "not", "can", "not", "will", "not"});
  CHECK(logic("non-empty and never larger than all") ==
        Tokens{"non", "never", "larger", "than", "all"});
  CHECK(logic("Not everyone") == Tokens{"not", "everyone"});
  CHECK(logic("不要删除") == Tokens{"不"});
  CHECK(logic("必须全部删除，没有例外") == Tokens{"必须", "全部", "没", "有", "外"});
  CHECK(logic("不过这非常特别") == Tokens{});
  CHECK(logic("ファイルを削除しません") == Tokens{"ません"});
}

TEST_CASE("finds identifiers, flags and words in capitals") {
  CHECK(identifiers("run with --no-cache and -v, SIGILL in std::sort or foo_bar") ==
        Tokens{"--no-cache", "-v", "SIGILL", "std::sort", "foo_bar"});
  CHECK(identifiers("call getName on H200 for AB-12, user.name #tag") ==
        Tokens{"getName", "H200", "AB-12", "user.name", "#tag"});
  CHECK(identifiers("A plain sentence. Another one - with a dash: yes.") == Tokens{});
}

TEST_CASE("finds paths, URLs and addresses") {
  CHECK(paths("see /etc/x and ~/a.b, src/main.cpp:12.") ==
        Tokens{"/etc/x", "~/a.b", "src/main.cpp:12"});
  CHECK(paths("C:\\Windows\\x ./run ../up") == Tokens{"C:\\Windows\\x", "./run", "../up"});
  CHECK(paths("(https://a.b/c?d=1,2&e=[3]). Mail me@x.org!") ==
        Tokens{"https://a.b/c?d=1,2&e=[3", "me@x.org"});
}

TEST_CASE("finds names, also at the front of sentences") {
  CHECK(names("Alice met Bob. Carol didn't.") == Tokens{"Alice", "Bob", "Carol"});
  CHECK(names("The cat sat. I'm here. Please wait.\nHowever, it left") == Tokens{});
}

TEST_CASE("words at the ends of sentences are words") {
  CHECK(logic("If not: never? Always. all.") == Tokens{"if", "not", "never", "always", "all"});
  CHECK(names("It ended. The end? Bob. Then: The x") == Tokens{"Bob"});
  CHECK(identifiers("www.a.b www. www.(x)") == Tokens{"www.a.b", "www.(x"});
  CHECK(logic("notx nota, not") == Tokens{"not"});
  CHECK(logic("Cannot. cannots") == Tokens{"can", "not"});
  CHECK(identifiers("end.of end.") == Tokens{"end.of"});
}

TEST_CASE("tells where tokens are") {
  const std::string text = "a 12 不 X";
  std::vector<std::size_t> positions;
  for_each_critical(
      text, [&](CriticalKind, std::string_view, std::size_t at) { positions.push_back(at); });
  CHECK(positions == std::vector<std::size_t>{2, 5, 9});
}

TEST_CASE("digests are equal for harmless changes only") {
  const auto same = [](std::string_view a, std::string_view b) {
    return critical_tokens(a) == critical_tokens(b);
  };
  CHECK(same("Please pay 1,200 euros.", "Kindly pay 1200 euros!"));
  CHECK(same("It isn't ready", "It is not ready"));
  CHECK(same("价格是１２元", "价格为12元"));
  // Reported losses of compressors: negations, numbers, names of errors, paths and flags.
  CHECK(!same("do NOT delete the file", "do delete the file"));
  CHECK(!same("不要删除文件", "要删除文件"));
  CHECK(!same("it died of SIGILL", "it died of SIGSEGV"));
  CHECK(!same("write to /etc/x", "write to /etc/y"));
  CHECK(!same("use --no-cache", "use --cache"));
  CHECK(!same("at 0x7f10", "at 0x7f11"));
  CHECK(!same("pay 1,234.56", "pay 1,234.57"));
  CHECK(!same("the smaller one", "the larger one"));
  CHECK(!same("三十人", "四十人"));
  CHECK(!same("Alice pays", "Bob pays"));
  CHECK(!same("3 apples and 5 pears", "5 apples and 3 pears"));
  CHECK(!same("全部删除", "部分删除"));
}

TEST_CASE("critical tokens of any bytes are within the text, in order") {
  std::mt19937 random(3);
  for (int i = 0; i < 5000; ++i) {
    const std::string text = mixed_text(random, below(random, 20));
    std::size_t last = 0;
    for_each_critical(text, [&](CriticalKind, std::string_view token, std::size_t at) {
      if (token.empty() || at < last || at >= text.size()) FAIL(text);
      last = at;
    });
  }
}

}  // namespace
}  // namespace incipit::compress
