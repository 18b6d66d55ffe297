// SPDX-License-Identifier: Apache-2.0
#include "store/split_value.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/hash.h"

namespace incipit::store {
namespace {

constexpr std::uint64_t kMagic = 0x31'54'4c'50'53'43'4e'49;  // "INCSPLT1"
constexpr std::chrono::seconds kForever = std::chrono::hours(24 * 3650);

void append_hex(std::string& text, base::Bytes bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  for (const std::byte byte : bytes) {
    text += digits[std::to_integer<unsigned>(byte) >> 4];
    text += digits[std::to_integer<unsigned>(byte) & 15];
  }
}

std::uint64_t divided_up(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

}  // namespace

struct SplitStore::Parts {
  std::uint64_t total = 0;  // bytes of the value
  std::uint64_t count = 0;
  base::Digest128 generation = {};

  static Parts of(base::Bytes value, std::uint64_t max_body) {
    return {value.size(), divided_up(value.size(), max_body), base::xxh3_128(value)};
  }

  // None where no writer would have made it.
  static std::optional<Parts> read(const Manifest& manifest) {
    std::uint64_t magic = 0;
    Parts parts;
    std::memcpy(&magic, manifest.data(), 8);
    std::memcpy(&parts.total, manifest.data() + 8, 8);
    std::memcpy(&parts.count, manifest.data() + 16, 8);
    std::memcpy(parts.generation.data(), manifest.data() + 24, 16);
    if (magic != kMagic || parts.total > kMaxValue) return std::nullopt;
    if (parts.count < 2 || parts.count > std::min(kMaxParts, parts.total)) return std::nullopt;
    if ((parts.count - 1) * parts.size() >= parts.total) return std::nullopt;
    return parts;
  }

  Manifest write() const {
    Manifest manifest = {};
    std::memcpy(manifest.data(), &kMagic, 8);
    std::memcpy(manifest.data() + 8, &total, 8);
    std::memcpy(manifest.data() + 16, &count, 8);
    std::memcpy(manifest.data() + 24, generation.data(), 16);
    return manifest;
  }

  // Of all parts but the last, which may be shorter and is never empty: where max_body gave the
  // count, count - 1 parts of max_body do not reach the end, let alone of this size.
  std::uint64_t size() const { return divided_up(total, count); }

  std::string name(const std::string& value_name, std::uint64_t index) const {
    std::string text = value_name + ":";
    append_hex(text, generation);
    return text + ":" + std::to_string(index);
  }

  template <class Byte>
  std::span<Byte> piece(std::span<Byte> value, std::uint64_t index) const {
    const std::uint64_t begin = index * size();
    return value.subspan(begin, std::min(size(), total - begin));
  }
};

SplitStore::SplitStore(std::string key_prefix, std::uint64_t max_body)
    : key_prefix_(std::move(key_prefix)), max_body_(max_body) {}

std::string SplitStore::name_of(const StoreKey& key) const {
  std::string name = key_prefix_;
  append_hex(name, key.bytes);
  return name;
}

StoreStatus SplitStore::get(const StoreKey& key, Deadline deadline, StoreBuffer& value) {
  const std::string name = name_of(key);
  Manifest manifest = {};
  bool split = false;
  const StoreStatus status =
      read_item(name, false, deadline,
                [&](ItemKind kind, std::uint64_t size) -> std::optional<std::span<std::byte>> {
                  split = kind == ItemKind::kManifest;
                  if (split && size == manifest.size()) return manifest;
                  if (kind == ItemKind::kValue && size <= max_body_) return value.resize(size);
                  return std::nullopt;
                });
  if (status != StoreStatus::kOk || !split) return status;
  const std::optional<Parts> parts = Parts::read(manifest);
  return parts ? get_parts(name, *parts, deadline, value) : StoreStatus::kMiss;
}

StoreStatus SplitStore::get_parts(const std::string& name, const Parts& parts, Deadline deadline,
                                  StoreBuffer& value) {
  const std::span<std::byte> whole = value.resize(parts.total);
  for (std::uint64_t i = 0; i < parts.count; ++i) {
    const StoreStatus status =
        read_item(parts.name(name, i), false, deadline,
                  [&](ItemKind kind, std::uint64_t size) -> std::optional<std::span<std::byte>> {
                    const std::span<std::byte> piece = parts.piece(whole, i);
                    if (kind == ItemKind::kPart && size == piece.size()) return piece;
                    return std::nullopt;
                  });
    if (status != StoreStatus::kOk) return status;
  }
  return StoreStatus::kOk;
}

StoreStatus SplitStore::put(const StoreKey& key, std::span<const std::byte> value,
                            std::chrono::seconds time_to_live, Deadline deadline) {
  // What has expired already lives for the shortest time that servers know.
  if (time_to_live.count() != 0) {
    time_to_live = std::clamp(time_to_live, std::chrono::seconds(1), kForever);
  }
  const std::string name = name_of(key);
  return value.size() <= max_body_
             ? write_item(name, ItemKind::kValue, value, time_to_live, deadline)
             : put_parts(name, value, time_to_live, deadline);
}

StoreStatus SplitStore::put_parts(const std::string& name, base::Bytes value,
                                  std::chrono::seconds time_to_live, Deadline deadline) {
  if (value.size() > kMaxValue || divided_up(value.size(), max_body_) > kMaxParts) {
    return StoreStatus::kTooLarge;
  }
  const Parts parts = Parts::of(value, max_body_);
  for (std::uint64_t i = 0; i < parts.count; ++i) {
    const StoreStatus status = write_item(parts.name(name, i), ItemKind::kPart,
                                          parts.piece(value, i), time_to_live, deadline);
    if (status != StoreStatus::kOk) return status;
  }
  return write_item(name, ItemKind::kManifest, parts.write(), time_to_live, deadline);
}

StoreStatus SplitStore::erase(const StoreKey& key, Deadline deadline) {
  const std::string name = name_of(key);
  Manifest manifest = {};
  const StoreStatus found =
      read_item(name, true, deadline,
                [&](ItemKind kind, std::uint64_t size) -> std::optional<std::span<std::byte>> {
                  if (kind == ItemKind::kManifest && size == manifest.size()) return manifest;
                  return std::nullopt;
                });
  if (found == StoreStatus::kUnavailable) return found;
  // The name goes first: without it the parts are out of reach.
  const StoreStatus erased = erase_item(name, deadline);
  if (erased != StoreStatus::kOk || found != StoreStatus::kOk) return erased;
  const std::optional<Parts> parts = Parts::read(manifest);
  for (std::uint64_t i = 0; parts && i < parts->count; ++i) {
    const StoreStatus status = erase_item(parts->name(name, i), deadline);
    if (status != StoreStatus::kOk) return status;
  }
  return StoreStatus::kOk;
}

}  // namespace incipit::store
