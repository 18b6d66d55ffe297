// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_FUZZ_TARGET_H_
#define INCIPIT_TESTS_FUZZ_TARGET_H_

#include <string>
#include <string_view>
#include <vector>

namespace incipit::fuzz {

/// Something that takes bytes from strangers. What is no bug (an Error{kModelUnreadable}) it keeps
/// to itself; whatever else happens, an exception included, is one.
struct Target {
  void (*run)(std::string_view bytes);
  std::vector<std::string> (*seeds)();  // valid inputs to start from
};

// Each in <name>_target.cpp; fuzz_main.cpp makes a libFuzzer program of one of them, and the tests
// of its module run it for a moment (mutations.h).
extern const Target kCacheFile;  // where the build has OpenSSL
extern const Target kChat;
extern const Target kCompression;  // where the build has zstd and OpenSSL
extern const Target kConfigJson;
extern const Target kEntry;  // where the build has OpenSSL
extern const Target kGguf;
extern const Target kRedisReply;  // where the build has hiredis
extern const Target kSafetensors;
extern const Target kSmallValues;
extern const Target kTokenizerGguf;
extern const Target kTokenizerJson;
extern const Target kTokenizerText;

}  // namespace incipit::fuzz

#endif  // INCIPIT_TESTS_FUZZ_TARGET_H_
