// SPDX-License-Identifier: Apache-2.0
#include "kv/label_epochs.h"

#include <random>
#include <set>
#include <string>
#include <thread>

#include "sealed_records.h"
#include "store/fake_store.h"
#include "store_with_hook.h"
#include "support/catch.h"

namespace incipit::test {
namespace {

using kv::EntryLabels;
using kv::Epoch;
using kv::LabelDigest;
using kv::LabelEpoch;
using kv::LabelEpochs;

constexpr std::int64_t kSecond = LabelEpochs::kMaxAge.count();

LabelDigest label(int number) {
  return kv::label_digest(kv::LabelKind::kTag, std::to_string(number));
}

/// A process that uses a store.
struct Process {
  Process(std::shared_ptr<Store> store, const FakeClock& clock,
          std::size_t remembered = LabelEpochs::kRemembered)
      : sealer(sealer_options(false, clock)),
        guarded(std::move(store), {.clock = clock.steady()}),
        epochs(guarded, sealer, {.clock = clock.steady(), .remembered = remembered}) {}

  std::optional<Epoch> current(int number) {
    const LabelDigest labels[] = {label(number)};
    const auto epoch = epochs.current(labels);
    return epoch ? std::optional(epoch->front().epoch) : std::nullopt;
  }
  bool holds(int number, const std::optional<Epoch>& epoch) {
    return epochs.hold({{{label(number), epoch.value()}}, {}});
  }
  std::set<LabelDigest> refresh() {
    std::vector<LabelDigest> changed;
    epochs.refresh(changed, [this] { ++changes; });
    return {changed.begin(), changed.end()};
  }
  StoreKey name(int number) const { return sealer.name(kv::RecordKind::kEpoch, label(number)); }

  kv::Sealer sealer;
  store::GuardedStore guarded;
  LabelEpochs epochs;
  int changes = 0;  // calls of before_change
};

struct TwoProcesses {
  FakeClock clock;
  std::shared_ptr<FaultyStore> store = std::make_shared<FaultyStore>();
  Process a{store, clock}, b{store, clock};
};

using Labels = std::set<LabelDigest>;

TEST_CASE("labels have one epoch for all who use a store, also later") {
  TwoProcesses two;
  const auto epoch = two.a.current(1);
  REQUIRE(epoch);
  CHECK(two.a.current(1) == epoch);
  CHECK(two.b.current(1) == epoch);
  CHECK(two.a.current(2) != epoch);
  Process later(two.store, two.clock);
  CHECK(later.current(1) == epoch);
  CHECK(later.holds(1, epoch));
  CHECK_FALSE(later.holds(2, epoch));
}

TEST_CASE("what one process forgets, the other knows a second later") {
  TwoProcesses two;
  const auto old = two.a.current(1), other = two.a.current(2);
  two.a.refresh();
  two.b.refresh();
  REQUIRE(two.b.current(1) == old);
  REQUIRE(two.b.current(2) == other);
  two.clock.move_milliseconds(kSecond / 2);

  REQUIRE(two.a.epochs.renew(label(1)));
  CHECK_FALSE(two.a.holds(1, old));
  CHECK(two.a.current(1) != old);
  CHECK(two.a.holds(2, other));
  CHECK(two.a.refresh().empty());  // it knows already

  two.clock.move_milliseconds(kSecond / 2);
  two.b.changes = 0;
  CHECK(two.b.refresh() == Labels{label(1)});
  CHECK(two.b.changes == 1);
  CHECK_FALSE(two.b.holds(1, old));
  CHECK(two.b.current(1) == two.a.current(1));
  CHECK(two.b.holds(2, other));
  two.clock.move_milliseconds(kSecond);
  CHECK(two.b.refresh().empty());
  CHECK(two.b.changes == 1);
}

TEST_CASE("within a second, looking costs nothing") {
  TwoProcesses two;
  two.b.refresh();
  two.b.current(1);
  const std::uint64_t calls = two.store->calls();
  two.clock.move_milliseconds(kSecond - 1);
  CHECK(two.b.refresh().empty());
  two.b.current(1);
  CHECK(two.store->calls() == calls);
  two.clock.move_milliseconds(1);
  CHECK(two.b.refresh().empty());
  CHECK(two.store->calls() > calls);
}

TEST_CASE("one of many labels is renewed: few are read again, and the right ones are known") {
  constexpr int kLabels = 640;
  TwoProcesses two;
  std::vector<std::optional<Epoch>> old;
  for (int i = 0; i < kLabels; ++i) old.push_back(two.b.current(i));
  two.a.refresh();
  two.b.refresh();
  const auto renew_and_look = [&](int number) {
    REQUIRE(two.a.epochs.renew(label(number)));
    two.clock.move_milliseconds(kSecond);
    const std::uint64_t gets = two.store->gets();
    CHECK(two.b.refresh() == Labels{label(number)});
    return two.store->gets() - gets;
  };
  renew_and_look(0);  // from now on the groups' heads are known
  for (const int number : {1, 2, 639, 0}) {
    // All heads, the labels of a group (10, about), and some that are looked at in any case.
    CHECK(renew_and_look(number) < LabelEpochs::kGroups + kLabels / 16);
  }
  for (int i = 0; i < kLabels; ++i) {
    const bool renewed = i <= 2 || i == 639;
    CHECK((two.b.current(i) != old[static_cast<std::size_t>(i)]) == renewed);
    CHECK(two.b.current(i) == two.a.current(i));
  }
}

TEST_CASE("a store that has lost everything forgets all labels") {
  TwoProcesses two;
  for (int i = 0; i < 200; ++i) two.b.current(i);
  two.b.refresh();
  REQUIRE(two.a.epochs.renew(label(0)));
  two.clock.move_milliseconds(kSecond);
  two.b.refresh();
  two.store->clear();
  for (int i = 0; i < 200; ++i) two.a.current(i);
  REQUIRE(two.a.epochs.renew(label(0)));
  two.clock.move_milliseconds(kSecond);
  CHECK(two.b.refresh().size() == 200);
  for (int i = 0; i < 200; ++i) CHECK(two.b.current(i) == two.a.current(i));
}

TEST_CASE("new labels take no longer than the budget in all") {
  store::GuardOptions patient;
  const auto store =
      std::make_shared<FaultyStore>(StoreFaults{.delay = std::chrono::milliseconds(5)});
  store::GuardedStore guarded(store, patient);
  const kv::Sealer sealer{{}};
  // A label takes three calls, so all of them 1.5 s; the first one has time enough.
  LabelEpochs epochs(guarded, sealer, {.budget = std::chrono::milliseconds(200)});
  std::vector<LabelDigest> labels;
  for (int i = 0; i < 100; ++i) labels.push_back(label(i));
  CHECK_FALSE(epochs.current(labels));
  CHECK(store->calls() < 150);
  CHECK(epochs.current(std::span(labels).first(1)));
}

TEST_CASE("who is told of a change is told before anybody can see it") {
  TwoProcesses two;
  const auto old = two.b.current(1);
  two.b.refresh();
  two.a.epochs.renew(label(1));
  two.clock.move_milliseconds(kSecond);
  std::vector<LabelDigest> changed;
  bool saw_old = false;
  two.b.epochs.refresh(changed, [&] { saw_old = two.b.current(1) == old && two.b.holds(1, old); });
  CHECK(saw_old);
  CHECK(changed == std::vector<LabelDigest>{label(1)});
}

TEST_CASE("a missing or damaged epoch means a fresh one") {
  TwoProcesses two;
  const auto old = two.a.current(1);
  two.a.refresh();
  const bool damaged = GENERATE(false, true);
  if (damaged) {
    FaultyStore::Value record = two.store->values().at(two.a.name(1).bytes);
    record.back() ^= std::byte{1};
    two.store->set_value(two.a.name(1), record);
  } else {
    two.store->erase(two.a.name(1), Store::Deadline::max());
  }
  CHECK_FALSE(two.b.holds(1, old));
  CHECK(two.a.holds(1, old));  // remembered
  const auto fresh = two.b.current(1);
  CHECK(fresh != old);
  two.clock.move_milliseconds(kSecond);
  CHECK(two.a.refresh() == Labels{label(1)});
  CHECK(two.a.changes == 2);  // the first look, and this one
  CHECK(two.a.current(1) == fresh);
}

TEST_CASE("a missing head means that nothing remembered is believed") {
  TwoProcesses two;
  const auto old = two.b.current(1);
  two.b.refresh();
  two.store->erase(two.a.sealer.name(kv::RecordKind::kEpoch, base::as_bytes("head")),
                   Store::Deadline::max());
  two.a.epochs.renew(label(2));
  two.store->erase(two.a.name(1), Store::Deadline::max());
  two.clock.move_milliseconds(2 * kSecond);
  CHECK(two.b.refresh() == Labels{label(1)});
  CHECK_FALSE(two.b.holds(1, old));
}

TEST_CASE("to ask whether something holds makes no epoch") {
  TwoProcesses two;
  CHECK_FALSE(two.a.holds(1, Epoch{}));
  CHECK(two.store->puts() == 0);
  CHECK(two.a.epochs.hold({}));
  const auto one = two.a.current(1), two_ = two.a.current(2);
  const LabelEpoch good1{label(1), *one}, good2{label(2), *two_}, bad{label(2), *one};
  CHECK(two.a.epochs.hold({{good1, good2}, {}}));
  CHECK_FALSE(two.a.epochs.hold({{good1, bad}, {}}));
  CHECK(two.a.epochs.hold({{good1}, {bad, good2}}));
  CHECK_FALSE(two.a.epochs.hold({{good1}, {bad}}));
  CHECK_FALSE(two.a.epochs.hold({{bad}, {good1}}));
}

TEST_CASE("only what is remembered is refuted") {
  TwoProcesses two;
  const auto one = two.a.current(1), other = two.a.current(2);
  const LabelEpoch good{label(1), *one}, bad{label(2), *one}, good2{label(2), *other};
  const LabelEpoch unknown{label(3), *one};
  const std::uint64_t calls = two.store->calls();
  CHECK_FALSE(two.a.epochs.refute({}));
  CHECK_FALSE(two.a.epochs.refute({{good, unknown}, {}}));
  CHECK(two.a.epochs.refute({{good, bad}, {}}));
  CHECK_FALSE(two.a.epochs.refute({{}, {bad, good2}}));
  CHECK_FALSE(two.a.epochs.refute({{}, {bad, unknown}}));
  CHECK(two.a.epochs.refute({{}, {bad}}));
  CHECK(two.store->calls() == calls);
}

TEST_CASE("while a store does not answer nothing holds, and all does again when it is back") {
  TwoProcesses two;
  const auto epoch = two.a.current(1);
  two.a.refresh();
  two.store->set({.down = true});
  CHECK(two.a.current(1) == epoch);  // for a second
  CHECK_FALSE(two.a.current(2));
  CHECK_FALSE(two.a.holds(2, epoch));
  CHECK_FALSE(two.a.epochs.renew(label(3)));
  two.clock.move_milliseconds(kSecond);
  CHECK(two.a.refresh().empty());
  CHECK_FALSE(two.a.current(1));
  CHECK_FALSE(two.a.holds(1, epoch));
  CHECK_FALSE(two.a.epochs.refute({{{label(1), *epoch}}, {}}));

  two.store->set({});
  two.clock.move(60);
  CHECK(two.a.refresh().empty());
  CHECK(two.a.current(1) == epoch);
  CHECK(two.a.holds(1, epoch));
  CHECK(two.a.current(2));
}

TEST_CASE("what is forgotten while a process cannot look, it learns when it can") {
  TwoProcesses two;
  const auto one = two.a.current(1);
  two.a.refresh();
  two.store->set({.down = true});
  CHECK_FALSE(two.a.current(2));  // in use, and not known
  two.clock.move(60);
  CHECK(two.a.refresh().empty());
  two.store->set({});
  two.clock.move(60);
  const bool renewed = GENERATE(false, true);
  if (renewed) REQUIRE(two.b.epochs.renew(label(2)));
  CHECK(two.a.refresh() == (renewed ? Labels{label(2)} : Labels{}));
  CHECK(two.a.holds(1, one));

  // From here on it is remembered like any other.
  REQUIRE(two.b.epochs.renew(label(2)));
  two.clock.move_milliseconds(kSecond);
  CHECK(two.a.refresh() == Labels{label(2)});
}

TEST_CASE("labels that are too many to remember are reported as changed") {
  const FakeClock clock;
  const auto store = std::make_shared<FaultyStore>();
  Process process(store, clock, 8);
  process.refresh();
  for (int i = 0; i < 50; ++i) process.current(i);
  const std::set<LabelDigest> lost = process.refresh();
  CHECK(lost.size() >= 50 - 2 * 8);
  CHECK(lost.size() <= 50 - 8);
  // The last ones are remembered: to ask for them costs no call.
  const std::uint64_t calls = store->calls();
  for (int i = 43; i < 50; ++i) {
    CHECK_FALSE(lost.contains(label(i)));
    CHECK(process.current(i));
  }
  CHECK(store->calls() == calls);
}

TEST_CASE("labels in use while a store is down are few, too") {
  TwoProcesses two;
  Process process(two.store, two.clock, 8);
  process.refresh();
  two.store->set({.down = true});
  for (int i = 0; i < 50; ++i) process.current(i);
  CHECK(process.refresh().size() == 50 - 8);
}

TEST_CASE("an epoch that is read while it is renewed is not remembered") {
  TwoProcesses two;
  const auto hooked = std::make_shared<StoreWithHook>(two.store);
  Process reader(hooked, two.clock);
  const auto old = two.a.current(1);
  reader.refresh();
  two.clock.move_milliseconds(kSecond);
  hooked->after_get = [&] {  // the reader has the old one in its hands
    two.a.epochs.renew(label(1));
    reader.refresh();
  };
  CHECK(reader.current(1) == old);
  CHECK(reader.current(1) == two.a.current(1));
  CHECK_FALSE(reader.holds(1, old));
}

TEST_CASE("two that make an epoch at the same time agree at the next look") {
  TwoProcesses two;
  two.a.refresh();
  const auto hooked = std::make_shared<StoreWithHook>(two.store);
  Process late(hooked, two.clock);
  late.refresh();
  std::optional<Epoch> first;
  hooked->after_get = [&] { first = two.a.current(1); };  // after it was found to be missing
  const auto second = late.current(1);
  REQUIRE(first);
  REQUIRE(second);
  CHECK(first != second);
  two.clock.move_milliseconds(kSecond);
  CHECK(two.a.refresh() == Labels{label(1)});
  CHECK(late.refresh().empty());
  CHECK(two.a.current(1) == second);
  CHECK(late.current(1) == second);
}

TEST_CASE("labels that are remembered for long stay in use in the store") {
  TwoProcesses two;
  for (int i = 0; i < 5; ++i) two.a.current(i);
  two.a.refresh();
  two.clock.move_milliseconds(kSecond);
  two.a.refresh();  // looks at those that it has made
  const std::uint64_t before = two.store->gets();
  for (int i = 0; i < 5; ++i) {
    two.clock.move_milliseconds(kSecond);
    two.a.refresh();
  }
  CHECK(two.store->gets() == before + 2 * 5);  // the head and one label each time
}

TEST_CASE("threads of two processes agree in the end") {
  TwoProcesses two;
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 6; ++seed) {
    threads.emplace_back([&two, seed] {
      Process& process = seed % 2 == 0 ? two.a : two.b;
      std::mt19937 random(seed);
      for (int i = 0; i < 300; ++i) {
        const int number = static_cast<int>(random() % 5);
        std::vector<LabelDigest> changed;
        switch (random() % 4) {
          case 0:
            process.epochs.refresh(changed, [] {});
            break;
          case 1:
            if (random() % 4 == 0) process.epochs.renew(label(number));
            two.clock.move_milliseconds(200);
            break;
          case 2:
            if (const auto epoch = process.current(number)) process.holds(number, epoch);
            break;
          default:
            process.epochs.refute({{{label(number), Epoch{}}}, {}});
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  two.clock.move(60);
  two.a.refresh();
  two.b.refresh();
  for (int i = 0; i < 5; ++i) CHECK(two.a.current(i) == two.b.current(i));
}

}  // namespace
}  // namespace incipit::test
