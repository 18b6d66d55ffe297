// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <algorithm>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "fuzz/target.h"
#include "store/folder_usage.h"
#include "store/small_values.h"
#include "support/memory_file.h"

namespace incipit::fuzz {
namespace {

using store::SmallValues;

constexpr std::int64_t kNow = 1'800'000'000;
constexpr std::uint64_t kSets = 2;

StoreKey key(unsigned number) {
  StoreKey key;
  key.bytes.fill(static_cast<std::byte>(number));
  return key;
}

store::Descriptor open_file(store::FileCalls& calls, const test::MemoryFile& file) {
  return {calls, ::open(file.path().c_str(), O_RDWR | O_CLOEXEC)};
}

/// Whatever the table holds: values have a size that fits, and one that is put is there.
void run_table(std::string_view bytes) {
  store::FileCalls calls;
  const test::MemoryFile file(bytes.substr(0, kSets * SmallValues::kSetBytes));
  SmallValues values(calls, open_file(calls, file), kSets);
  StoreBuffer value;
  for (unsigned number = 0; number < 4; ++number) {
    if (values.get(key(number), kNow, value) == StoreStatus::kOk &&
        value.bytes().size() > SmallValues::kMostBytes) {
      throw std::logic_error("a value that no slot has room for");
    }
  }
  const std::string wanted = "a value";
  bool is_first = false;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  if (values.put(key(1), base::as_bytes(wanted), store::Stamp::of(kNow, {}), false, deadline,
                 is_first) != 0 ||
      values.get(key(1), kNow, value) != StoreStatus::kOk ||
      !std::ranges::equal(value.bytes(), base::as_bytes(wanted))) {
    throw std::logic_error("a value that was put is not there");
  }
  values.erase(key(1), false, deadline);
  if (values.get(key(1), kNow, value) == StoreStatus::kOk) {
    throw std::logic_error("a value that was erased is there");
  }
}

/// The numbers of a folder's use, whatever the file says.
void run_usage(std::string_view bytes) {
  store::FileCalls calls;
  const test::MemoryFile file(bytes.substr(0, 64));
  store::FolderUsage usage(calls, open_file(calls, file), 100);
  const auto before = usage.numbers();
  usage.add(4096);
  usage.settle(4096, 100, before.corrections);
  usage.refresh();
  usage.subtract(100);
  usage.correct(1000, usage.numbers(), 0);
  if (usage.numbers().total < 0) throw std::logic_error("less than nothing is used");
}

void run(std::string_view bytes) {
  run_table(bytes);
  run_usage(bytes);
}

std::vector<std::string> seeds() {
  store::FileCalls calls;
  const test::MemoryFile file("");
  SmallValues values(calls, open_file(calls, file), kSets);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  bool is_first = false;
  for (unsigned number = 0; number < 4; ++number) {
    const std::string value(100 * number, 'v');
    values.put(key(number), base::as_bytes(value),
               store::Stamp::of(kNow, std::chrono::seconds(100 * number)), false, deadline,
               is_first);
  }
  std::string table(kSets * SmallValues::kSetBytes, '\0');
  const store::Descriptor again = open_file(calls, file);
  const auto out = std::as_writable_bytes(std::span(table.data(), table.size()));
  const ssize_t got = calls.read(again.get(), out, 0);
  if (got > 0) table.resize(static_cast<std::size_t>(got));
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  const store::FolderUsage::Numbers numbers = {4096, kLeast, kLeast, kLeast};
  const auto bytes = std::as_bytes(std::span(&numbers, 1));
  return {std::move(table), {reinterpret_cast<const char*>(bytes.data()), bytes.size()}};
}

}  // namespace

constexpr Target kSmallValues = {run, seeds};

}  // namespace incipit::fuzz
