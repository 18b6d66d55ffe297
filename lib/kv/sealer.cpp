// SPDX-License-Identifier: Apache-2.0
#include "kv/sealer.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/hash.h"
#include "kv/compression.h"

namespace incipit::kv {
namespace {

constexpr std::array<char, 8> kMagic = {'I', 'N', 'C', 'I', 'P', 'I', 'T', '\1'};
constexpr std::uint32_t kFormat = 1;
// Flags.
constexpr std::uint32_t kEncrypted = 1, kCompressed = 2;
// Clocks of machines that share a store differ by less.
constexpr WallSeconds kMaxSkew = 600;

base::SealTag checksum(base::Bytes header, base::Bytes body) {
  return base::xxh3_128(body, base::xxh3_64(header));
}

}  // namespace

struct Sealer::Header {
  std::array<char, 8> magic = kMagic;
  std::uint32_t format = kFormat;
  RecordKind kind = RecordKind::kExtent;
  std::uint32_t flags = 0;
  std::uint32_t key_epoch = 0;
  StoreKey name = {};
  Digest256 salt = {};
  WallSeconds created = 0;
  WallSeconds expires = 0;  // 0: never
  std::uint64_t body_bytes = 0;
};

WallSeconds wall_seconds_now() noexcept {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

SealerOptions sealer_options(const PrefixCacheOptions& options) {
  SealerOptions sealer;
  sealer.key = options.encryption_key;
  sealer.key_epoch = options.key_epoch;
  return sealer;
}

Sealer::Sealer(SealerOptions options)
    : now_(std::move(options.now)), key_epoch_(options.key_epoch) {
  static_assert(sizeof(Header) == kHeaderBytes && std::is_trivially_copyable_v<Header>);
  if (!options.key) return;
  const base::SecretKey key(options.key(key_epoch_));
  entry_key_ = key.derive({}, "incipit entry 1");
  name_key_ = key.derive({}, "incipit name 1");
}

StoreKey Sealer::name(RecordKind kind, base::Bytes id) const {
  std::string fields = "incipit name 1";
  fields.push_back(static_cast<char>(kind));
  fields.append(reinterpret_cast<const char*>(&key_epoch_), sizeof(key_epoch_));
  fields.append(reinterpret_cast<const char*>(id.data()), id.size());
  const base::Bytes bytes = base::as_bytes(fields);
  return {name_key_ ? base::hmac_sha256(name_key_->bytes(), bytes) : base::sha256(bytes)};
}

std::span<std::byte> Sealer::make_room(StoreBuffer& record, std::size_t body_bytes) {
  return record.resize(kHeaderBytes + body_bytes + kTrailerBytes).subspan(kHeaderBytes, body_bytes);
}

bool Sealer::compress_body(StoreBuffer& record, std::size_t value_bytes) {
  const std::size_t frame = kHeaderBytes + kTrailerBytes;
  INCIPIT_CHECK(record.bytes().size() >= frame);
  const auto bytes =
      compress(record.bytes().subspan(kHeaderBytes, record.bytes().size() - frame), value_bytes);
  if (bytes) make_room(record, *bytes);
  return bytes.has_value();
}

void Sealer::seal(StoreBuffer& record, RecordKind kind, const StoreKey& name,
                  std::chrono::seconds time_to_live, bool compressed) const {
  const std::span<std::byte> bytes = record.bytes();
  INCIPIT_CHECK(bytes.size() >= kHeaderBytes + kTrailerBytes);
  const std::span<std::byte> body =
      bytes.subspan(kHeaderBytes, bytes.size() - kHeaderBytes - kTrailerBytes);
  Header header;
  header.kind = kind;
  header.flags = (entry_key_ ? kEncrypted : 0) | (compressed ? kCompressed : 0);
  header.key_epoch = key_epoch_;
  header.name = name;
  header.created = now_();
  if (time_to_live.count() > 0) {
    header.expires = header.created + std::min(time_to_live, kMaxLife).count();
  }
  header.body_bytes = body.size();
  if (entry_key_) base::fill_random(header.salt);
  std::memcpy(bytes.data(), &header, kHeaderBytes);
  const base::Bytes head = bytes.first(kHeaderBytes);
  const base::SealTag tag =
      entry_key_ ? base::seal(entry_key_->derive(header.salt, "incipit record 1"), head, body)
                 : checksum(head, body);
  std::ranges::copy(tag, bytes.last(kTrailerBytes).begin());
}

bool Sealer::is_current(const Header& header) const {
  const WallSeconds now = now_();
  if (header.created < 0 || header.created > now + kMaxSkew) return false;
  if (header.expires == 0) return true;
  return header.expires > now && header.expires - header.created <= kMaxLife.count();
}

std::optional<std::span<std::byte>> Sealer::open(StoreBuffer& record, RecordKind kind,
                                                 const StoreKey& name,
                                                 std::size_t most_bytes) const {
  const std::span<std::byte> bytes = record.bytes();
  if (bytes.size() < kHeaderBytes + kTrailerBytes) return std::nullopt;
  Header header;
  std::memcpy(&header, bytes.data(), kHeaderBytes);
  const std::span<std::byte> body =
      bytes.subspan(kHeaderBytes, bytes.size() - kHeaderBytes - kTrailerBytes);
  if (header.magic != kMagic || header.format != kFormat || header.kind != kind ||
      (header.flags & ~kCompressed) != (entry_key_ ? kEncrypted : 0) ||
      header.key_epoch != key_epoch_ || header.name != name || header.body_bytes != body.size() ||
      !is_current(header)) {
    return std::nullopt;
  }
  const base::Bytes head = bytes.first(kHeaderBytes);
  base::SealTag tag;
  std::ranges::copy(bytes.last(kTrailerBytes), tag.begin());
  const bool whole = entry_key_ ? base::unseal(entry_key_->derive(header.salt, "incipit record 1"),
                                               head, body, tag)
                                : checksum(head, body) == tag;
  if (!whole) return std::nullopt;
  if ((header.flags & kCompressed) == 0) return body;
  const auto planes = decompress(body, most_bytes);
  if (!planes) return std::nullopt;
  const std::span<std::byte> original = make_room(record, planes->bytes.bytes().size());
  join(planes->bytes.bytes(), planes->value_bytes, original);
  return original;
}

}  // namespace incipit::kv
