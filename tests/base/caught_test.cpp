// SPDX-License-Identifier: Apache-2.0
#include "base/caught.h"

#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.h"

namespace incipit::base {
namespace {

std::string what_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return std::string(to_string(e.code())) + ": " + e.what();
  } catch (const std::bad_alloc&) {
    return "bad_alloc";
  }
}

TEST_CASE("caught() is null where nothing was thrown") {
  int calls = 0;
  CHECK(caught([&] { ++calls; }) == nullptr);
  CHECK(calls == 1);
}

TEST_CASE("A copy says what the exception says") {
  const auto copy = [](auto thrown) { return what_of(copy_of(caught([&] { throw thrown; }))); };
  CHECK(copy(Error(ErrorCode::kPromptTooLong, "too long")) == "prompt_too_long: too long");
  CHECK(copy(std::bad_alloc()) == "bad_alloc");
  CHECK(copy(std::runtime_error("odd")) == "internal: odd");
  CHECK(copy(7) == "internal: an unknown exception");
}

TEST_CASE("Several threads take an exception each while its thrower goes on") {
  for (int round = 0; round < 20; ++round) {
    std::vector<std::string> seen(3);
    std::vector<std::thread> receivers;
    {
      const std::exception_ptr error =
          caught([] { throw Error(ErrorCode::kInternal, "a message on the heap, not in place"); });
      for (std::string& text : seen) {
        receivers.emplace_back([&text, mine = copy_of(error)] { text = what_of(mine); });
      }
    }
    for (std::thread& receiver : receivers) receiver.join();
    CHECK(seen == std::vector<std::string>(3, "internal: a message on the heap, not in place"));
  }
}

}  // namespace
}  // namespace incipit::base
