// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>

#include "fuzz/target.h"
#include "kv/compression.h"
#include "kv/sealer.h"

namespace incipit::fuzz {
namespace {

constexpr std::size_t kMostBytes = 4096;
const StoreKey kName = {};

// In front of each input stands the size of its numbers.
std::string framed(std::span<const std::byte> bytes) {
  std::string framed(1, '\1');
  framed.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return framed;
}
std::size_t width_of(char front) { return 1 + static_cast<unsigned char>(front) % 8; }

/// A compressed body that somebody else has made, as it is and as a record that is sealed well.
void run_opener(base::Bytes bytes) {
  const auto planes = kv::decompress(bytes, kMostBytes);
  if (planes && planes->bytes.bytes().size() > kMostBytes) {
    throw std::logic_error("more bytes than were allowed");
  }
  const kv::Sealer sealer(kv::SealerOptions{});
  StoreBuffer record;
  std::ranges::copy(bytes, kv::Sealer::make_room(record, bytes.size()).begin());
  sealer.seal(record, kv::RecordKind::kExtent, kName, {}, true);
  const auto body = sealer.open(record, kv::RecordKind::kExtent, kName, kMostBytes);
  if (body.has_value() != planes.has_value()) {
    throw std::logic_error("a record and its body do not agree on whether they are damaged");
  }
}

/// What was compressed comes back.
void run_round_trip(std::size_t width, base::Bytes bytes) {
  StoreBuffer record;
  std::ranges::copy(bytes, kv::Sealer::make_room(record, bytes.size()).begin());
  const bool compressed = kv::Sealer::compress_body(record, width);
  const kv::Sealer sealer(kv::SealerOptions{});
  sealer.seal(record, kv::RecordKind::kExtent, kName, {}, compressed);
  const auto body = sealer.open(record, kv::RecordKind::kExtent, kName, bytes.size());
  if (!body || !std::ranges::equal(*body, bytes)) {
    throw std::logic_error("a body did not come back");
  }
}

void run(std::string_view bytes) {
  if (bytes.empty()) return;
  const std::size_t width = width_of(bytes.front());
  bytes.remove_prefix(1);
  run_opener(base::as_bytes(bytes));
  run_round_trip(width, base::as_bytes(bytes));
}

std::vector<std::string> seeds() {
  std::string numbers;
  for (int i = 0; i < 512; ++i) numbers += {static_cast<char>(i * 37), static_cast<char>(0x3c)};
  std::vector<std::string> seeds = {framed(base::as_bytes(numbers))};
  for (const std::size_t width : {std::size_t{1}, std::size_t{2}, std::size_t{4}}) {
    StoreBuffer body;
    std::ranges::copy(base::as_bytes(numbers), body.resize(numbers.size()).begin());
    const auto size = kv::compress(body.bytes(), width);
    if (size) seeds.push_back(framed(body.bytes().first(*size)));
  }
  return seeds;
}

}  // namespace

constexpr Target kCompression = {run, seeds};

}  // namespace incipit::fuzz
