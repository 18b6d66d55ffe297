// SPDX-License-Identifier: Apache-2.0
// What README.md and docs/ speak of is there. (tests/checks/snippets.py compares their code.)
#include <cstdlib>
#include <regex>

#include "examples/run_program.h"
#include "support/catch.h"

using namespace incipit::test;
namespace fs = std::filesystem;

namespace {

const fs::path kRoot = INCIPIT_ROOT;

std::vector<fs::path> pages() {
  std::vector<fs::path> found = {kRoot / "README.md", kRoot / "examples" / "data" / "README.md",
                                 kRoot / "benchmarks" / "README.md"};
  for (const fs::directory_entry& entry : fs::directory_iterator(kRoot / "docs")) {
    if (entry.path().extension() == ".md") found.push_back(entry.path());
  }
  return found;
}

std::vector<std::string> matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) {
    found.push_back((*it)[1]);
  }
  return found;
}

}  // namespace

TEST_CASE("links and paths of the documentation lead somewhere") {
  std::size_t links = 0, paths = 0;
  for (const fs::path& page : pages()) {
    const std::string text = read_file(page);
    for (const std::string& link : matches(text, R"(\]\(([^)#:]+)\))")) {
      CAPTURE(page, link);
      CHECK(fs::exists(page.parent_path() / link));
      ++links;
    }
    for (const std::string& path :
         matches(text, "`((?:include|lib|examples|tests|benchmarks|docs|cmake)/[\\w./]+)`")) {
      CAPTURE(page, path);
      CHECK(fs::exists(kRoot / path));
      ++paths;
    }
  }
  CHECK(links > 10);
  CHECK(paths > 10);
}

TEST_CASE("the quickstart's data is what its script writes") {
  const TemporaryDirectory directory;
  const fs::path data = kRoot / "examples" / "data";
  const std::string command =
      "python3 '" + (data / "make_orders.py").string() + "' '" + directory.path().string() + "'";
  REQUIRE(std::system(command.c_str()) == 0);
  for (const char* file : {"orders_prompt.txt", "orders_questions.tsv"}) {
    CHECK(read_file(directory.path() / file) == read_file(data / file));
  }
}
