// SPDX-License-Identifier: Apache-2.0
// The program `compress`.
#include <string>
#include <vector>

#include "examples/run_program.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using namespace incipit::test;
using nlohmann::json;

namespace {

json long_chat() {
  json chat = json::array({{{"role", "system"}, {"content", "Be brief."}, {"id", "s"}}});
  for (int i = 0; i < 40; ++i) {
    const std::string number = std::to_string(i);
    chat.push_back(
        {{"role", "user"},
         {"content", "Parcel " + number + " weighs " + number + " kg. Is that <b>heavy</b>?"}});
    chat.push_back(
        {{"role", "assistant"}, {"content", "Parcel " + number + " is noted. It is not heavy."}});
  }
  chat.push_back({{"role", "user"}, {"content", "What did parcel 7 weigh?"}});
  return chat;
}

}  // namespace

TEST_CASE("compress makes a conversation fit, and says what became of it") {
  const TemporaryDirectory directory;
  const std::string in = (directory.path() / "in.json").string();
  const std::string html = (directory.path() / "out.html").string();
  write_file(in, long_chat().dump());
  for (const std::string policy : {"window", "dedup_summary_truncate", "frozen_segments"}) {
    const Outcome outcome = run_example("compress", {"--in", in, "--budget", "400", "--policy",
                                                     policy, "--html", html, "--json", "-"});
    INFO(policy << ": " << outcome.err);
    REQUIRE(outcome.exit_code == 0);
    const json out = json::parse(outcome.out);
    CHECK(out.at("tokens_before") > 1000);
    CHECK(out.at("tokens_after") <= 400);
    CHECK(out.at("tokens_after") >= 388);
    CHECK(out.at("messages").front().at("content") == "Be brief.");
    CHECK(out.at("messages").back().at("content") == "What did parcel 7 weigh?");
    REQUIRE(out.at("report").size() == 82);
    CHECK(out.at("report").at(0).at("id") == "s");
    CHECK(out.at("report").at(0).at("fate") == "kept");
    CHECK(out.at("report").at(81).at("why") == "the last user turn");
    CHECK(outcome.err.find("tokens became") != std::string::npos);
    const std::string page = read_file(html);
    CHECK(page.find("What did parcel 7 weigh?") != std::string::npos);
    CHECK(page.find("<b>heavy</b>") == std::string::npos);
  }
}

TEST_CASE("compress says why it cannot") {
  const TemporaryDirectory directory;
  const std::string in = (directory.path() / "in.json").string();
  write_file(in, long_chat().dump());
  const Outcome small = run_example("compress", {"--in", in, "--budget", "5"});
  CHECK(small.exit_code == 1);
  CHECK(small.err.find("what must stay") != std::string::npos);
  CHECK(run_example("compress", {"--in", in, "--budget", "400", "--policy", "magic"}).exit_code ==
        2);
  write_file(in, "{}");
  CHECK(run_example("compress", {"--in", in, "--budget", "400"}).exit_code == 1);
}
