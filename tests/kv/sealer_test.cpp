// SPDX-License-Identifier: Apache-2.0
#include "kv/sealer.h"

#include <cstring>
#include <set>
#include <stdexcept>

#include "base/hash.h"
#include "incipit/error.h"
#include "sealed_records.h"
#include "store/fake_store.h"
#include "store/store_values.h"
#include "support/catch.h"

namespace incipit::test {
namespace {

using kv::RecordKind;
using kv::Sealer;
using std::chrono::seconds;

constexpr std::int64_t kYear = 365 * 86400;
constexpr RecordKind kKinds[] = {RecordKind::kExtent, RecordKind::kPointer, RecordKind::kEpoch};

// Where the times lie in a record's header.
constexpr std::size_t kCreated = 88, kExpires = 96;

/// Changes the header of a record that is not encrypted, with the checksum that belongs to it: what
/// a store's owner can do.
void forge(ByteVector& record, std::size_t at, std::int64_t value) {
  std::memcpy(record.data() + at, &value, sizeof(value));
  const auto all = std::span<const std::byte>(record);
  const auto head = all.first(Sealer::kHeaderBytes);
  const auto body =
      all.subspan(Sealer::kHeaderBytes, all.size() - Sealer::kHeaderBytes - Sealer::kTrailerBytes);
  const auto sum = base::xxh3_128(body, base::xxh3_64(head));
  std::ranges::copy(sum, record.end() - static_cast<std::ptrdiff_t>(Sealer::kTrailerBytes));
}

struct Fixture {
  explicit Fixture(bool encrypted) : sealer(sealer_options(encrypted, clock)) {}

  StoreKey name(std::string_view id, RecordKind kind = RecordKind::kPointer) const {
    return sealer.name(kind, base::as_bytes(id));
  }
  ByteVector seal(std::string_view id, const ByteVector& body, seconds life = {}) const {
    return sealed(sealer, RecordKind::kPointer, name(id), body, life);
  }
  std::optional<ByteVector> open(std::string_view id, const ByteVector& record) const {
    return opened(sealer, RecordKind::kPointer, name(id), record);
  }

  FakeClock clock;
  Sealer sealer;
};

TEST_CASE("what was sealed can be opened") {
  const Fixture fixture(GENERATE(false, true));
  const ByteVector body = pattern(GENERATE(0u, 1u, 1000u), 3);
  for (const RecordKind kind : kKinds) {
    const StoreKey name = fixture.name("a", kind);
    const ByteVector record = sealed(fixture.sealer, kind, name, body);
    CHECK(record.size() == Sealer::kHeaderBytes + body.size() + Sealer::kTrailerBytes);
    CHECK(opened(fixture.sealer, kind, name, record) == body);
    for (const RecordKind other : kKinds) {
      if (other != kind) CHECK_FALSE(opened(fixture.sealer, other, name, record));
    }
  }
}

TEST_CASE("a record with any bit changed is none") {
  const Fixture fixture(GENERATE(false, true));
  const seconds life = GENERATE(seconds(0), seconds(100));
  ByteVector record = fixture.seal("a", pattern(20, 1), life);
  int believed = 0;
  for (std::size_t bit = 0; bit < record.size() * 8; ++bit) {
    record[bit / 8] ^= std::byte{1} << bit % 8;
    if (fixture.open("a", record)) ++believed;
    record[bit / 8] ^= std::byte{1} << bit % 8;
  }
  CHECK(believed == 0);
  CHECK(fixture.open("a", record) == pattern(20, 1));
}

TEST_CASE("a record of another length is none") {
  const Fixture fixture(GENERATE(false, true));
  const ByteVector record = fixture.seal("a", pattern(20, 1));
  int believed = 0;
  for (std::size_t size = 0; size < record.size(); ++size) {
    const auto cut = static_cast<std::ptrdiff_t>(size);
    if (fixture.open("a", {record.begin(), record.begin() + cut})) ++believed;
    if (fixture.open("a", {record.end() - cut, record.end()})) ++believed;
  }
  for (const std::byte more : {std::byte{0}, std::byte{0xff}, record.back()}) {
    ByteVector longer = record;
    longer.push_back(more);
    if (fixture.open("a", longer)) ++believed;
    longer = record;
    longer.insert(longer.begin(), more);
    if (fixture.open("a", longer)) ++believed;
  }
  CHECK(believed == 0);
}

TEST_CASE("a record under another name is none") {
  const Fixture fixture(GENERATE(false, true));
  const ByteVector a = fixture.seal("a", pattern(20, 1));
  const ByteVector b = fixture.seal("b", pattern(20, 2));
  CHECK_FALSE(fixture.open("a", b));
  CHECK_FALSE(fixture.open("b", a));
  // Nor is one record's body with another's header or trailer.
  for (const std::size_t size : {Sealer::kHeaderBytes, a.size() - Sealer::kTrailerBytes}) {
    ByteVector mixed = a;
    std::copy(b.begin() + static_cast<std::ptrdiff_t>(size), b.end(),
              mixed.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK_FALSE(fixture.open("a", mixed));
    CHECK_FALSE(fixture.open("b", mixed));
  }
}

TEST_CASE("records of another key, of another epoch, or of none are not opened") {
  const FakeClock clock;
  const Sealer sealers[] = {
      Sealer(sealer_options(true, clock)),
      Sealer(sealer_options(true, clock, std::byte{8})),
      Sealer(sealer_options(true, clock, std::byte{7}, 2)),
      Sealer(sealer_options(false, clock)),
      Sealer(sealer_options(false, clock, {}, 2)),
  };
  const StoreKey name = store_key(1);
  for (const Sealer& writer : sealers) {
    const ByteVector record = sealed(writer, RecordKind::kExtent, name, pattern(10, 1));
    for (const Sealer& reader : sealers) {
      CHECK(opened(reader, RecordKind::kExtent, name, record).has_value() == (&reader == &writer));
    }
  }
}

TEST_CASE("names follow from kind, id and key") {
  const FakeClock clock;
  const Sealer plain(sealer_options(false, clock));
  const Sealer keyed(sealer_options(true, clock));
  const Sealer again(sealer_options(true, clock));
  const Sealer other(sealer_options(true, clock, std::byte{8}));
  const Sealer next(sealer_options(true, clock, std::byte{7}, 2));
  std::set<std::array<std::byte, 32>> names;
  for (const Sealer* sealer : {&plain, &keyed, &other, &next}) {
    for (const RecordKind kind : kKinds) {
      for (const std::string_view id : {"", "a", "b", "ab"}) {
        names.insert(sealer->name(kind, base::as_bytes(id)).bytes);
      }
    }
  }
  CHECK(names.size() == 4 * 3 * 4);
  const base::Bytes id = base::as_bytes("a");
  CHECK(keyed.name(RecordKind::kEpoch, id) == again.name(RecordKind::kEpoch, id));
}

TEST_CASE("encrypted records betray nothing of what they hold") {
  const Fixture fixture(true);
  const ByteVector body(64, std::byte{0x41});
  const ByteVector one = fixture.seal("a", body);
  const ByteVector two = fixture.seal("a", body);
  CHECK(one != two);
  const auto in_body = [](const ByteVector& record) {
    return ByteVector(record.begin() + Sealer::kHeaderBytes,
                      record.end() - static_cast<std::ptrdiff_t>(Sealer::kTrailerBytes));
  };
  CHECK(in_body(one) != in_body(two));
  // Eight equal bytes in a row are as unlikely there as a key that is guessed.
  const ByteVector sealed_body = in_body(one), run(8, std::byte{0x41});
  CHECK(std::ranges::search(sealed_body, run).empty());
  CHECK(fixture.open("a", one) == body);
  CHECK(fixture.open("a", two) == body);

  const Fixture plain(false);
  CHECK(in_body(plain.seal("a", body)) == body);
}

TEST_CASE("records end when their time does") {
  Fixture fixture(GENERATE(false, true));
  const ByteVector mortal = fixture.seal("a", pattern(9, 1), seconds(100));
  const ByteVector immortal = fixture.seal("a", pattern(9, 2));
  fixture.clock.move(99);
  CHECK(fixture.open("a", mortal));
  fixture.clock.move(1);
  CHECK_FALSE(fixture.open("a", mortal));
  CHECK(fixture.open("a", immortal));
  fixture.clock.move(100 * kYear);
  CHECK(fixture.open("a", immortal));
}

TEST_CASE("a clock that jumps makes records expire and nothing else") {
  Fixture fixture(GENERATE(false, true));
  const ByteVector mortal = fixture.seal("a", pattern(9, 1), seconds(3600));
  const ByteVector immortal = fixture.seal("a", pattern(9, 2));
  fixture.clock.move(kYear);
  CHECK_FALSE(fixture.open("a", mortal));
  CHECK(fixture.open("a", immortal));
  fixture.clock.move(-2 * kYear);  // both are from the future
  CHECK_FALSE(fixture.open("a", mortal));
  CHECK_FALSE(fixture.open("a", immortal));
  fixture.clock.move(kYear);
  CHECK(fixture.open("a", mortal));
  CHECK(fixture.open("a", immortal));
  fixture.clock.move(-600);  // as far as clocks of machines may differ
  CHECK(fixture.open("a", immortal));
  fixture.clock.move(-1);
  CHECK_FALSE(fixture.open("a", immortal));
}

TEST_CASE("a life that is too long is cut, and not believed where somebody else writes it") {
  Fixture fixture(false);
  ByteVector record = fixture.seal("a", pattern(9, 1), seconds::max());
  CHECK(fixture.open("a", record));
  fixture.clock.move(Sealer::kMaxLife.count() - 1);
  CHECK(fixture.open("a", record));
  fixture.clock.move(1);
  CHECK_FALSE(fixture.open("a", record));

  const std::int64_t now = fixture.clock.wall();
  record = fixture.seal("a", pattern(9, 1), seconds(10));
  forge(record, kExpires, now + 20);
  CHECK(fixture.open("a", record));  // forging works
  forge(record, kExpires, now + Sealer::kMaxLife.count() + 1);
  CHECK_FALSE(fixture.open("a", record));
  for (const std::int64_t created : {INT64_MIN, INT64_MIN + 1, std::int64_t{-1}, INT64_MAX}) {
    for (const std::int64_t expires : {INT64_MIN, std::int64_t{0}, now + 1, INT64_MAX}) {
      forge(record, kCreated, created);
      forge(record, kExpires, expires);
      CHECK_FALSE(fixture.open("a", record));
    }
  }
}

TEST_CASE("a key has 32 bytes, and its callback's exceptions are the caller's") {
  kv::SealerOptions options;
  for (const std::size_t size : {0u, 16u, 31u, 33u}) {
    options.key = [size](std::uint32_t) { return ByteVector(size); };
    CHECK_THROWS_AS(Sealer(options), Error);
  }
  options.key = [](std::uint32_t) -> ByteVector { throw std::domain_error("no key today"); };
  CHECK_THROWS_AS(Sealer(options), std::domain_error);

  std::vector<std::uint32_t> asked;
  options.key_epoch = 9;
  options.key = [&](std::uint32_t epoch) {
    asked.push_back(epoch);
    return ByteVector(32);
  };
  const Sealer sealer(options);
  sealed(sealer, RecordKind::kEpoch, store_key(1), pattern(4, 1));
  CHECK(asked == std::vector<std::uint32_t>{9});
}

TEST_CASE("a buffer that was longer before is read as long as it is") {
  const Fixture fixture(GENERATE(false, true));
  const ByteVector record = fixture.seal("a", pattern(20, 1));
  StoreBuffer buffer;
  buffer.resize(1000);
  std::ranges::copy(record, buffer.resize(record.size()).begin());
  CHECK(fixture.sealer.open(buffer, RecordKind::kPointer, fixture.name("a")));
}

}  // namespace
}  // namespace incipit::test
