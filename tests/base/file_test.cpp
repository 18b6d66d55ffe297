// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <sys/stat.h>

#include <fstream>
#include <limits>

#include "incipit/error.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace incipit::base {
namespace {

namespace fs = std::filesystem;
using Catch::Contains;

struct Fixture {
  test::TemporaryDirectory directory;
  fs::path path = directory.path() / "file";

  explicit Fixture(const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

  static std::string read(const ReadFile& file, std::uint64_t offset, std::size_t count) {
    std::string out(count, '?');
    file.read(offset, std::as_writable_bytes(std::span(out)));
    return out;
  }
};

TEST_CASE("a file is read at any offset") {
  const Fixture f("0123456789");
  const ReadFile file(f.path);
  CHECK(file.size() == 10);
  CHECK(file.path() == f.path);
  CHECK(Fixture::read(file, 0, 10) == "0123456789");
  CHECK(Fixture::read(file, 9, 1) == "9");
  CHECK(Fixture::read(file, 3, 4) == "3456");
  CHECK(Fixture::read(file, 10, 0).empty());
}

TEST_CASE("a read past the end is refused") {
  const Fixture f("0123456789");
  const ReadFile file(f.path);
  constexpr auto kMax = std::numeric_limits<std::uint64_t>::max();
  CHECK_THROWS_WITH(Fixture::read(file, 0, 11), Contains("byte 10"));
  CHECK_THROWS_AS(Fixture::read(file, 10, 1), Error);
  CHECK_THROWS_AS(Fixture::read(file, kMax, 1), Error);
  CHECK_THROWS_AS(Fixture::read(file, kMax, 0), Error);
}

TEST_CASE("a file that shrinks while it is read is an error") {
  const Fixture f("0123456789");
  const ReadFile file(f.path);
  fs::resize_file(f.path, 4);
  CHECK(Fixture::read(file, 0, 4) == "0123");
  CHECK_THROWS_WITH(Fixture::read(file, 0, 10), Contains("shorter"));
}

TEST_CASE("an open file outlives its name and moves") {
  const Fixture f("abc");
  ReadFile first(f.path);
  const ReadFile second(std::move(first));
  fs::remove(f.path);
  CHECK(Fixture::read(second, 0, 3) == "abc");
}

TEST_CASE("what is no readable file is refused at once") {
  const test::TemporaryDirectory directory;
  const fs::path missing = directory.path() / "missing";
  CHECK_THROWS_WITH(ReadFile(missing), Contains(missing.string()) && Contains("No such file"));
  CHECK_THROWS_WITH(ReadFile(directory.path()), Contains("no regular file"));
  const fs::path fifo = directory.path() / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(ReadFile(fifo), Contains("no regular file"));
  try {
    const ReadFile file(missing);
    FAIL("opened what does not exist");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kModelUnreadable);
  }
}

TEST_CASE("a text file is read whole, up to a cap") {
  const Fixture f("text\n");
  CHECK(read_text_file(f.path, 5) == "text\n");
  CHECK_THROWS_WITH(read_text_file(f.path, 4), Contains("at most 4"));
  const Fixture empty("");
  CHECK(read_text_file(empty.path, 0).empty());
}

}  // namespace
}  // namespace incipit::base
