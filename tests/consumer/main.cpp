// SPDX-License-Identifier: Apache-2.0
// What a host sees: a program of its own, strict warnings, and the installed headers.
#include <incipit/incipit.h>

#include <cstdio>
#include <string>

namespace {

// Private libraries of incipit come with it, or the store says that this build has none.
template <class Make>
bool makes_store(Make make) {
  try {
    return make() != nullptr;
  } catch (const incipit::Error& error) {
    return std::string(error.what()).find("install lib") != std::string::npos;
  }
}

}  // namespace

int main() {
  if (!makes_store([] { return incipit::make_redis_store({}); }) ||
      !makes_store([] { return incipit::make_memcached_store({}); })) {
    return 1;
  }
  // An exception must cross the border of the library as the type that it is.
  try {
    incipit::Engine engine({.model = "there/is/no/such/model.gguf"});
  } catch (const incipit::Error& error) {
    std::printf("%s: %s\n", std::string(incipit::to_string(error.code())).c_str(), error.what());
    return error.code() == incipit::ErrorCode::kModelUnreadable ? 0 : 1;
  }
  std::puts("a missing model was accepted");
  return 1;
}
