// SPDX-License-Identifier: Apache-2.0
#include "store/guarded_store.h"

#include <functional>
#include <thread>

#include "fake_store.h"
#include "store_values.h"
#include "support/catch.h"

namespace incipit::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using store::GuardedStore;
using store::GuardOptions;
using store::StoreCounters;

/// A clock that stands still until it is told.
struct FakeTime {
  Store::Deadline time{std::chrono::hours(1)};
  store::SteadyClock clock() {
    return [this] { return time; };
  }
};

/// Plays a script: each call runs `step` and returns what it says.
class ScriptedStore final : public Store {
 public:
  std::function<StoreStatus(Deadline deadline)> step = [](Deadline) { return StoreStatus::kOk; };
  std::size_t value_size = 0;  // of each hit
  int calls = 0;

  StoreStatus get(const StoreKey&, Deadline deadline, StoreBuffer& value) override {
    ++calls;
    value.resize(value_size);
    return step(deadline);
  }
  StoreStatus put(const StoreKey&, std::span<const std::byte>, seconds,
                  Deadline deadline) override {
    ++calls;
    return step(deadline);
  }
  StoreStatus erase(const StoreKey&, Deadline deadline) override {
    ++calls;
    return step(deadline);
  }
  std::string_view name() const noexcept override { return "scripted"; }
  std::uint64_t size_bytes() const noexcept override { return 42; }
};

/// A guard in front of a script, on a fake clock.
struct Guarded {
  FakeTime time;
  std::shared_ptr<ScriptedStore> script = std::make_shared<ScriptedStore>();
  GuardedStore guard;
  StoreBuffer buffer;

  explicit Guarded(GuardOptions options = {})
      : guard(script, (options.clock = time.clock(), std::move(options))) {}

  StoreStatus get(std::uint64_t key = 1) { return guard.get(store_key(key), buffer); }
  StoreStatus put(std::uint64_t key = 1) {
    return guard.put(store_key(key), pattern(100, 1), seconds(0));
  }
  /// Each call takes so long and then says so.
  void answer(StoreStatus status, milliseconds after = {}) {
    script->step = [this, status, after](Store::Deadline) {
      time.time += after;
      return status;
    };
  }
};

TEST_CASE("a guard passes calls on and counts them") {
  Guarded guarded;
  CHECK(guarded.guard.name() == "scripted");
  CHECK(guarded.guard.size_bytes() == 42);
  guarded.script->value_size = 30;
  guarded.answer(StoreStatus::kOk, milliseconds(2));
  CHECK(guarded.get() == StoreStatus::kOk);
  CHECK(guarded.put() == StoreStatus::kOk);
  CHECK(guarded.guard.erase(store_key(1)) == StoreStatus::kOk);
  guarded.answer(StoreStatus::kMiss, milliseconds(1));
  CHECK(guarded.get(2) == StoreStatus::kMiss);
  guarded.answer(StoreStatus::kTooLarge);
  CHECK(guarded.put() == StoreStatus::kTooLarge);
  guarded.answer(StoreStatus::kUnavailable, milliseconds(4));
  CHECK(guarded.put() == StoreStatus::kUnavailable);

  const StoreCounters counters = guarded.guard.counters();
  CHECK(counters.gets == 2);
  CHECK(counters.hits == 1);
  CHECK(counters.misses == 1);
  CHECK(counters.misses_remembered == 0);
  CHECK(counters.puts == 3);
  CHECK(counters.erases == 1);
  CHECK(counters.failures == 1);
  CHECK(counters.rejected_by_breaker == 0);
  CHECK(counters.bytes_read == 30);
  CHECK(counters.bytes_written == 100);
  CHECK(counters.get_microseconds == 3000);
  CHECK(counters.put_microseconds == 6000);
  CHECK_FALSE(counters.breaker_open);
}

TEST_CASE("a guard gives each call its deadline") {
  Guarded guarded({.get_deadline = milliseconds(50), .put_deadline = milliseconds(200)});
  Store::Deadline seen;
  guarded.script->step = [&](Store::Deadline deadline) {
    seen = deadline;
    return StoreStatus::kOk;
  };
  const Store::Deadline start = guarded.time.time;
  guarded.get();
  CHECK(seen == start + milliseconds(50));
  guarded.put();
  CHECK(seen == start + milliseconds(200));
  guarded.guard.erase(store_key(1));
  CHECK(seen == start + milliseconds(50));
  guarded.guard.get(store_key(1), guarded.buffer, start + milliseconds(7));
  CHECK(seen == start + milliseconds(7));
  guarded.guard.put(store_key(1), {}, seconds(0), start + milliseconds(300));
  CHECK(seen == start + milliseconds(200));

  // Who comes too late is told so, and the store is not blamed.
  const int calls = guarded.script->calls;
  for (int i = 0; i < 10; ++i) {
    CHECK(guarded.guard.get(store_key(1), guarded.buffer, start) == StoreStatus::kUnavailable);
  }
  CHECK(guarded.script->calls == calls);
  CHECK(guarded.guard.counters().failures == 0);
}

TEST_CASE("a guard lets nothing escape") {
  Guarded guarded({.breaker = {.failures_to_open = 100}});
  const std::function<void()> throwers[] = {[] { throw std::runtime_error("x"); },
                                            [] { throw std::bad_alloc(); }, [] { throw 7; }};
  for (const auto& thrower : throwers) {
    guarded.script->step = [&](Store::Deadline) {
      thrower();
      return StoreStatus::kOk;
    };
    CHECK(guarded.get() == StoreStatus::kUnavailable);
    CHECK(guarded.put() == StoreStatus::kUnavailable);
    CHECK(guarded.guard.erase(store_key(1)) == StoreStatus::kUnavailable);
  }
  CHECK(guarded.guard.counters().failures == 9);
}

TEST_CASE("an unreachable store costs one deadline, then nothing until it is back") {
  Guarded guarded({.get_deadline = milliseconds(50),
                   .breaker = {.failures_to_open = 3, .first_back_off = milliseconds(1000)}});
  guarded.answer(StoreStatus::kUnavailable, milliseconds(50));
  CHECK(guarded.get() == StoreStatus::kUnavailable);
  CHECK(guarded.guard.counters().breaker_open);
  CHECK(guarded.guard.generation() == 1);
  const Store::Deadline opened = guarded.time.time;
  for (int i = 0; i < 20; ++i) {
    CHECK(guarded.get() == StoreStatus::kUnavailable);
    CHECK(guarded.put() == StoreStatus::kUnavailable);
  }
  CHECK(guarded.time.time == opened);
  CHECK(guarded.script->calls == 1);
  CHECK(guarded.guard.counters().rejected_by_breaker == 40);

  guarded.answer(StoreStatus::kOk);
  guarded.time.time = opened + milliseconds(1000);
  CHECK(guarded.get() == StoreStatus::kOk);
  CHECK(guarded.get() == StoreStatus::kOk);
  CHECK_FALSE(guarded.guard.counters().breaker_open);
  CHECK(guarded.guard.generation() == 1);
}

TEST_CASE("a store that fails at once is left alone after a few calls") {
  Guarded guarded({.breaker = {.failures_to_open = 3}});
  guarded.answer(StoreStatus::kUnavailable);
  for (int i = 0; i < 10; ++i) guarded.put();
  CHECK(guarded.script->calls == 3);
  CHECK(guarded.guard.counters().failures == 3);
}

TEST_CASE("misses and refusals are no failures") {
  Guarded guarded({.breaker = {.failures_to_open = 2}});
  for (std::uint64_t i = 0; i < 10; ++i) {
    guarded.answer(StoreStatus::kUnavailable);
    guarded.put();
    guarded.answer(i % 2 == 0 ? StoreStatus::kMiss : StoreStatus::kTooLarge);
    guarded.get(i);
  }
  CHECK(guarded.guard.generation() == 0);
}

TEST_CASE("a hit that came after its deadline is taken, and opens the breaker") {
  Guarded guarded({.get_deadline = milliseconds(50)});
  guarded.answer(StoreStatus::kOk, milliseconds(51));
  CHECK(guarded.get() == StoreStatus::kOk);
  CHECK(guarded.guard.counters().breaker_open);
  CHECK(guarded.guard.counters().hits == 1);
}

TEST_CASE("a missing key is not asked for again at once") {
  Guarded guarded({.miss_lifetime = milliseconds(100)});
  guarded.answer(StoreStatus::kMiss);
  CHECK(guarded.get(1) == StoreStatus::kMiss);
  CHECK(guarded.get(1) == StoreStatus::kMiss);
  CHECK(guarded.get(2) == StoreStatus::kMiss);
  CHECK(guarded.script->calls == 2);
  CHECK(guarded.guard.counters().misses == 3);
  CHECK(guarded.guard.counters().misses_remembered == 1);

  guarded.answer(StoreStatus::kOk);
  guarded.put(1);
  CHECK(guarded.get(1) == StoreStatus::kOk);    // written since
  CHECK(guarded.get(2) == StoreStatus::kMiss);  // not yet
  guarded.time.time += milliseconds(100);
  CHECK(guarded.get(2) == StoreStatus::kOk);
}

TEST_CASE("a put that failed clears the memory of a miss too") {
  Guarded guarded;
  guarded.answer(StoreStatus::kMiss);
  guarded.get();
  guarded.answer(StoreStatus::kUnavailable);
  guarded.put();
  guarded.answer(StoreStatus::kOk);
  CHECK(guarded.get() == StoreStatus::kOk);
}

TEST_CASE("a miss that was answered before a put is not remembered after it") {
  Guarded guarded;
  bool asked = false;
  guarded.script->step = [&](Store::Deadline) {
    if (asked) return StoreStatus::kOk;
    asked = true;
    guarded.put(1);  // by somebody else, while the get is on its way back
    return StoreStatus::kMiss;
  };
  CHECK(guarded.get(1) == StoreStatus::kMiss);
  CHECK(guarded.get(1) == StoreStatus::kOk);
}

TEST_CASE("the memory of misses is bounded and may be off") {
  for (const std::size_t slots : {0u, 1u, 7u}) {
    Guarded guarded({.misses_remembered = slots});
    guarded.answer(StoreStatus::kMiss);
    for (std::uint64_t i = 0; i < 100; ++i) guarded.get(i);
    const int calls = guarded.script->calls;
    CHECK(calls == 100);
    for (std::uint64_t i = 0; i < 100; ++i) guarded.get(i);
    // An earlier key may have pushed out a later one's; the last one stands.
    CHECK(guarded.script->calls >= calls + 100 - static_cast<int>(slots));
    CHECK((guarded.get(99) == StoreStatus::kMiss && guarded.guard.counters().misses == 201));
  }
}

TEST_CASE("a guard learns latency and bandwidth from hits") {
  Guarded guarded;
  CHECK_FALSE(guarded.guard.latency_seconds());
  CHECK_FALSE(guarded.guard.bytes_per_second());
  guarded.answer(StoreStatus::kMiss, milliseconds(300));
  guarded.get(7);
  CHECK_FALSE(guarded.guard.latency_seconds());

  guarded.script->value_size = 4'000'000;
  guarded.answer(StoreStatus::kOk, milliseconds(100));
  guarded.get();
  CHECK_FALSE(guarded.guard.latency_seconds());
  CHECK(guarded.guard.bytes_per_second().value() == Approx(40e6));  // latency included

  guarded.script->value_size = 100;
  guarded.answer(StoreStatus::kOk, milliseconds(20));
  guarded.get();
  CHECK(guarded.guard.latency_seconds().value() == Approx(0.020));
  guarded.answer(StoreStatus::kOk, milliseconds(10));
  guarded.get();
  CHECK(guarded.guard.latency_seconds().value() == Approx(0.018));
  for (int i = 0; i < 100; ++i) guarded.get();
  CHECK(guarded.guard.latency_seconds().value() == Approx(0.010));

  guarded.script->value_size = 4'000'000;
  guarded.answer(StoreStatus::kOk, milliseconds(410));
  for (int i = 0; i < 100; ++i) guarded.get();
  CHECK(guarded.guard.bytes_per_second().value() == Approx(10e6));
  guarded.answer(StoreStatus::kOk, milliseconds(5));  // less than the latency
  for (int i = 0; i < 100; ++i) guarded.get();
  CHECK(guarded.guard.bytes_per_second().value() == Approx(4e6 / (0.005 / 16)));
}

TEST_CASE("a clock too coarse for a call gives no bandwidth") {
  Guarded guarded;
  guarded.script->value_size = 100'000;
  guarded.get();
  CHECK_FALSE(guarded.guard.bytes_per_second());
}

TEST_CASE("a hanging store returns by the guard's deadline") {
  const auto faulty = std::make_shared<FaultyStore>(StoreFaults{.hang = true});
  GuardedStore guard(faulty, {.get_deadline = milliseconds(10)});
  StoreBuffer buffer;
  for (int i = 0; i < 50; ++i) {
    CHECK(guard.get(store_key(1), buffer) == StoreStatus::kUnavailable);
  }
  CHECK(faulty->calls() == 1);
}

TEST_CASE("a faulty store does as told") {
  FaultyStore faulty;
  const auto value = pattern(1000, 1);
  write(faulty, store_key(1), value);
  write(faulty, store_key(2), pattern(500, 2));
  const auto again = [&](StoreFaults faults) {
    faulty.set(faults);
    return read(faulty, store_key(1));
  };
  CHECK(again({}).holds(value));
  CHECK(again({.fail_every = 1}).status == StoreStatus::kUnavailable);
  CHECK(again({.drop_every = 1}).status == StoreStatus::kMiss);
  CHECK_THROWS_AS(again({.throw_every = 1}), std::runtime_error);
  const Read corrupted = again({.corrupt_every = 1});
  CHECK(corrupted.bytes.size() == value.size());
  CHECK(corrupted.bytes != value);
  CHECK(again({.truncate_every = 1}).bytes.size() < value.size());
  CHECK(again({.extend_every = 1}).bytes.size() > value.size());
  CHECK(again({.swap_every = 1}).holds(pattern(500, 2)));
  faulty.set({.lose_every = 1});
  CHECK(write(faulty, store_key(3), value) == StoreStatus::kOk);
  CHECK(read(faulty, store_key(3)).status == StoreStatus::kMiss);
  // 100,000 bytes a second: 1,000 bytes take 10 milliseconds.
  faulty.set({.bytes_per_second = 100'000});
  StoreBuffer buffer;
  CHECK(faulty.get(store_key(1), std::chrono::steady_clock::now() + milliseconds(3), buffer) ==
        StoreStatus::kUnavailable);
  CHECK(read(faulty, store_key(1)).holds(value));
}

TEST_CASE("threads share a guard in front of a store that fails now and then") {
  const auto faulty = std::make_shared<FaultyStore>(
      StoreFaults{.delay = microseconds(20), .fail_every = 5, .throw_every = 11, .drop_every = 3});
  GuardedStore guard(faulty, {.breaker = {.failures_to_open = 2,
                                          .first_back_off = milliseconds(1),
                                          .longest_back_off = milliseconds(2)},
                              .misses_remembered = 16});
  std::atomic<int> damaged = 0;
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937_64 random(seed);
      StoreBuffer buffer;
      for (int i = 0; i < 500; ++i) {
        const std::uint64_t number = random() % 20;
        if (random() % 3 == 0) {
          guard.put(store_key(number), pattern(100, number), seconds(0));
        } else if (guard.get(store_key(number), buffer) == StoreStatus::kOk) {
          if (!std::ranges::equal(buffer.bytes(), pattern(100, number))) ++damaged;
        }
        // So that some calls meet a breaker that lets them through.
        if (guard.counters().breaker_open) std::this_thread::sleep_for(microseconds(200));
        guard.latency_seconds();
        guard.generation();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(damaged == 0);
  const StoreCounters counters = guard.counters();
  CHECK(counters.gets + counters.puts == 2000);
  CHECK(counters.hits > 0);
  CHECK(counters.failures > 0);
  CHECK(guard.generation() > 0);
  CHECK(faulty->calls() == 2000 - counters.rejected_by_breaker - counters.misses_remembered);
}

}  // namespace
}  // namespace incipit::test
