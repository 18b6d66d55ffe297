// SPDX-License-Identifier: Apache-2.0
#include "base/function_ref.h"

#include <functional>
#include <string>

#include "support/catch.h"

namespace incipit::base {
namespace {

std::string call(FunctionRef<std::string(int)> f) { return f(7); }

TEST_CASE("a reference calls what it refers to") {
  int calls = 0;
  auto count = [&](int value) mutable {
    ++calls;
    return std::to_string(value);
  };
  CHECK(call(count) == "7");
  CHECK(call([&](int value) { return std::to_string(value + calls); }) == "8");
  const std::function<std::string(int)> function = count;
  CHECK(call(function) == "7");
  CHECK(calls == 2);
}

TEST_CASE("a copy refers to the same callable") {
  auto tally = [sum = 0](int value) mutable { return std::to_string(sum += value); };
  const FunctionRef<std::string(int)> first = tally;
  const FunctionRef<std::string(int)> second = first;
  CHECK(first(1) == "1");
  CHECK(second(2) == "3");
}

}  // namespace
}  // namespace incipit::base
