// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <stdexcept>
#include <string>
#include <vector>

#include "support/catch.h"

namespace incipit::base {
namespace {

TEST_CASE("a log passes level and message on") {
  std::vector<std::pair<LogLevel, std::string>> heard;
  const Log log([&](LogLevel level, std::string_view message) {
    heard.emplace_back(level, std::string(message));
  });
  CHECK(log);
  log.debug("d");
  log.info("i");
  log.warning("w");
  log.error("e");
  CHECK(heard == decltype(heard){{LogLevel::kDebug, "d"},
                                 {LogLevel::kInfo, "i"},
                                 {LogLevel::kWarning, "w"},
                                 {LogLevel::kError, "e"}});
}

TEST_CASE("without a sink nothing happens") {
  const Log log;
  CHECK(!log);
  log.error("unheard");
}

TEST_CASE("a sink that throws is not noticed") {
  int calls = 0;
  const Log log([&](LogLevel, std::string_view) {
    ++calls;
    throw std::runtime_error("sink");
  });
  log.warning("one");
  log.warning("two");
  CHECK(calls == 2);
}

}  // namespace
}  // namespace incipit::base
