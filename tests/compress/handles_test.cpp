// SPDX-License-Identifier: Apache-2.0
// What stands behind the handles that messages show.
#include <cstring>
#include <string>
#include <utility>

#include "base/hash.h"
#include "compress/history.h"
#include "support/catch.h"

namespace incipit::compress {
namespace {

std::string listing() {
  std::string text;
  for (int i = 0; i < 400; ++i) {
    text += "2024-05-01 10:00:" + std::to_string(10 + i % 50) + " INFO worker ";
    text += std::to_string(i) + " has copied the next part of the archive\n";
  }
  return text;
}

/// Two texts of one hash: in the long form of XXH3, words that begin with the secret's bytes are
/// multiplied by zero, and only the sum of the words remains.
std::pair<std::string, std::string> texts_of_one_hash() {
  constexpr unsigned char kSecret[] = {0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe,
                                       0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c};
  constexpr std::size_t kStripe = 64, kWord = 8, kHalf = 4;
  std::string one = std::string(2 * kStripe, 'x') + "\n" + listing();
  for (std::size_t stripe = 0; stripe < 2; ++stripe) {
    std::memcpy(one.data() + stripe * kStripe, kSecret + stripe * kWord, kHalf);
  }
  std::string other = one;
  one.replace(kHalf, kHalf, "abcd").replace(kStripe + kHalf, kHalf, "wxyz");
  other.replace(kHalf, kHalf, "wxyz").replace(kStripe + kHalf, kHalf, "abcd");
  return {one, other};
}

struct Chat {
  CompressorOptions options = {};
  TokenCounter counter = rough_token_counter();
  History history{options, counter};

  void add(Role role, std::string text) {
    Message message{.role = role};
    message.text = std::move(text);
    history.add(history.arriving(
        message, 0, [](std::size_t) { return true; }, [](std::size_t) { return false; }));
  }
  const std::vector<std::string>& handles(std::size_t i) const { return history[i].handles; }
  void must_restore_all() const {
    for (std::size_t i = 0; i < history.size(); ++i) {
      for (const std::string& handle : handles(i)) {
        CHECK(history.restore(handle) == history[i].message.text);
        CHECK(history[i].shown().text.find(handle) != std::string::npos);
      }
    }
  }
};

}  // namespace

TEST_CASE("a handle restores the text whose message shows it, not one that became like it") {
  Chat chat;
  chat.add(Role::kUser, "What does the log say?");
  chat.add(Role::kAssistant, "Hello!\n\n" + listing());
  REQUIRE(chat.handles(1).size() == 1);
  chat.add(Role::kTool, listing());
  REQUIRE(chat.handles(2).size() == 1);
  chat.must_restore_all();
}

TEST_CASE("texts of one hash have handles of their own") {
  const auto [one, other] = texts_of_one_hash();
  REQUIRE(one != other);
  REQUIRE(base::xxh3_64(base::as_bytes(one)) == base::xxh3_64(base::as_bytes(other)));
  Chat chat;
  SECTION("of tools") {
    chat.add(Role::kTool, one);
    chat.add(Role::kTool, other);
    chat.add(Role::kTool, one);
    REQUIRE(chat.handles(2).size() == 1);
    CHECK(chat.handles(0) == chat.handles(2));
  }
  SECTION("of one turn of the user") {
    chat.add(Role::kUser, one);
    chat.add(Role::kUser, other);
    chat.add(Role::kAssistant, "I see.");
    chat.add(Role::kUser, "And now?");
  }
  REQUIRE(chat.handles(0).size() == 1);
  REQUIRE(chat.handles(1).size() == 1);
  CHECK(chat.handles(0) != chat.handles(1));
  chat.must_restore_all();
}

}  // namespace incipit::compress
