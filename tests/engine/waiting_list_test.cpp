// SPDX-License-Identifier: Apache-2.0
#include "engine/waiting_list.h"

#include <algorithm>
#include <map>
#include <random>

#include "support/catch.h"

using namespace incipit;
using namespace incipit::engine;

namespace {

std::shared_ptr<Request> request(std::uint64_t arrival, const std::string& salt = {}) {
  CacheLabels labels;
  labels.salt = salt;
  auto made = std::make_shared<Request>(Request::Kind::kGenerate, std::vector<TokenId>{1},
                                        GenerateParams{}, "space", labels, 8, Clock::now());
  made->arrival = arrival;
  return made;
}

// What is known of each request, by arrival.
using Table = std::map<std::uint64_t, std::size_t>;

WaitingList::Known known_by(const Table& table) {
  return [&table](const Request& request) {
    const auto found = table.find(request.arrival);
    return found == table.end() ? 0 : found->second;
  };
}

}  // namespace

TEST_CASE("without anything known, first come, first served") {
  WaitingList list;
  for (const std::uint64_t arrival : {2u, 0u, 3u, 1u}) list.add(request(arrival));
  for (std::uint64_t i = 0; i < 4; ++i) {
    list.begin_pass();
    REQUIRE(list.next(known_by({}))->arrival == i);
    CHECK(list.take()->arrival == i);
  }
  CHECK(list.empty());
  CHECK(list.next(known_by({})) == nullptr);
}

TEST_CASE("of one salt, the longest known prefix goes first; other salts keep their turn") {
  WaitingList list;
  list.add(request(0, "a"));
  list.add(request(1, "b"));
  list.add(request(2, "a"));
  list.add(request(3, "b"));
  const Table known = {{0, 16}, {1, 0}, {2, 64}, {3, 9999}};
  std::vector<std::uint64_t> order;
  list.begin_pass();
  while (list.next(known_by(known)) != nullptr) order.push_back(list.take()->arrival);
  // The oldest names the salt, a: 2 before 0, whatever b has.
  CHECK(order == std::vector<std::uint64_t>{2, 0, 3, 1});
}

TEST_CASE("nobody is passed over for ever") {
  WaitingList list;
  list.add(request(0));
  std::size_t before = 0;
  for (std::uint64_t arrival = 1;; ++arrival) {
    REQUIRE(arrival < 100);
    list.add(request(arrival));
    list.begin_pass();
    REQUIRE(list.next(known_by({{arrival, 1000}})) != nullptr);
    if (list.take()->arrival == 0) break;
    ++before;
  }
  CHECK(before == WaitingList::kMostPassed);
}

TEST_CASE("who is set aside is left out of this pass only") {
  WaitingList list;
  list.add(request(0));
  list.add(request(1));
  list.begin_pass();
  REQUIRE(list.next(known_by({}))->arrival == 0);
  list.set_aside();
  REQUIRE(list.next(known_by({}))->arrival == 1);
  list.set_aside();
  CHECK(list.next(known_by({})) == nullptr);
  list.begin_pass();
  CHECK(list.next(known_by({}))->arrival == 0);
}

TEST_CASE("what is known is asked once in a pass, and of no more than a window") {
  WaitingList list;
  for (std::uint64_t i = 0; i < 3 * WaitingList::kWindow; ++i) list.add(request(i));
  std::size_t asked = 0;
  const auto count = [&](const Request&) -> std::size_t {
    ++asked;
    return 0;
  };
  list.begin_pass();
  REQUIRE(list.next(count) != nullptr);
  CHECK(asked == WaitingList::kWindow);
  static_cast<void>(list.take());
  REQUIRE(list.next(count) != nullptr);
  CHECK(asked == WaitingList::kWindow + 1);
}

TEST_CASE("random schedules agree with a simple model") {
  struct Waiting {
    std::uint64_t arrival;
    std::string salt;
    std::size_t passed = 0;
  };
  for (std::uint32_t seed = 0; seed < 1000; ++seed) {
    std::mt19937 random(seed);
    WaitingList list;
    std::vector<Waiting> model;
    Table known;
    std::uint64_t arrivals = 0;
    for (int move = 0; move < 30; ++move) {
      if (random() % 3 != 0) {
        const std::string salt = random() % 2 == 0 ? "a" : "b";
        list.add(request(arrivals, salt));
        model.push_back({arrivals, salt});
        known[arrivals++] = random() % 4 * 16;
        continue;
      }
      list.begin_pass();
      const Request* const next = list.next(known_by(known));
      if (model.empty()) {
        REQUIRE(next == nullptr);
        continue;
      }
      auto best = model.begin();
      for (auto it = model.begin(); it != model.end(); ++it) {
        if (model.front().passed >= WaitingList::kMostPassed) break;
        if (it->salt == model.front().salt && known[it->arrival] > known[best->arrival]) best = it;
      }
      REQUIRE(next != nullptr);
      REQUIRE(next->arrival == best->arrival);
      REQUIRE(list.take()->arrival == best->arrival);
      for (auto it = model.begin(); it != best; ++it) {
        if (it->salt == best->salt) ++it->passed;
      }
      model.erase(best);
      REQUIRE(list.size() == model.size());
    }
  }
}
