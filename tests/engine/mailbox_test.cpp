// SPDX-License-Identifier: Apache-2.0
#include "engine/mailbox.h"

#include <thread>

#include "support/catch.h"

using namespace incipit::engine;

TEST_CASE("events come out in order; only the newest progress waits") {
  Mailbox mailbox;
  mailbox.post(ProgressEvent{1, 9});
  mailbox.post(ProgressEvent{5, 9});
  mailbox.post(TextEvent{"a", 1});
  mailbox.post(TextEvent{"b", 2});
  mailbox.post(ClosedEvent{});
  CHECK(std::get<ProgressEvent>(*mailbox.take().event).done == 5);
  CHECK(std::get<TextEvent>(*mailbox.take().event).piece == "a");
  CHECK(std::get<TextEvent>(*mailbox.take().event).tokens == 2);
  CHECK(std::holds_alternative<ClosedEvent>(*mailbox.take().event));
}

TEST_CASE("nothing is taken from an empty mailbox") {
  Mailbox mailbox;
  CHECK_FALSE(mailbox.try_take().event);
  mailbox.post(ClosedEvent{});
  CHECK(mailbox.try_take().event);
  CHECK_FALSE(mailbox.try_take().event);
}

TEST_CASE("texts join for a reader who may come late, and never fill the mailbox") {
  Mailbox mailbox;
  mailbox.join_texts(true);
  for (std::size_t i = 0; i < 2 * Mailbox::kCapacity; ++i) mailbox.post(TextEvent{"x", i});
  CHECK_FALSE(mailbox.full());
  const auto text = std::get<TextEvent>(*mailbox.take().event);
  CHECK(text.piece == std::string(2 * Mailbox::kCapacity, 'x'));
  CHECK(text.tokens == 2 * Mailbox::kCapacity - 1);
  CHECK_FALSE(mailbox.try_take().event);
}

TEST_CASE("taking says when a full mailbox has room again") {
  Mailbox mailbox;
  for (std::size_t i = 0; i < Mailbox::kCapacity + 1; ++i) mailbox.post(TextEvent{"x", i});
  CHECK(mailbox.full());
  CHECK_FALSE(mailbox.take().was_full);
  CHECK(mailbox.full());
  CHECK(mailbox.take().was_full);
  CHECK_FALSE(mailbox.full());
  CHECK_FALSE(mailbox.take().was_full);
}

TEST_CASE("a waiting reader wakes up") {
  Mailbox mailbox;
  std::thread writer([&] {
    for (std::size_t i = 0; i < 1000; ++i) mailbox.post(TextEvent{"x", i});
  });
  for (std::size_t i = 0; i < 1000; ++i) {
    CHECK(std::get<TextEvent>(*mailbox.take().event).tokens == i);
  }
  writer.join();
}
