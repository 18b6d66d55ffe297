// SPDX-License-Identifier: Apache-2.0
#include "kv/compression.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace incipit::kv {
namespace {

// Higher levels save no more of KV.
constexpr int kLevel = 1;
constexpr std::size_t kFrontBytes = sizeof(std::uint64_t) + sizeof(std::uint32_t);
constexpr std::size_t kMaxValueBytes = 8;

/// The opposite of join().
void split(base::Bytes body, std::size_t value_bytes, std::span<std::byte> planes) noexcept {
  const std::size_t values = body.size() / value_bytes, whole = values * value_bytes;
  for (std::size_t plane = 0; plane < value_bytes; ++plane) {
    std::byte* const out = planes.data() + plane * values;
    for (std::size_t i = 0; i < values; ++i) out[i] = body[i * value_bytes + plane];
  }
  std::ranges::copy(body.subspan(whole), planes.subspan(whole).begin());
}

}  // namespace

bool have_compression() noexcept { return true; }

void join(base::Bytes planes, std::size_t value_bytes, std::span<std::byte> body) noexcept {
  const std::size_t values = body.size() / value_bytes, whole = values * value_bytes;
  for (std::size_t plane = 0; plane < value_bytes; ++plane) {
    const std::byte* const in = planes.data() + plane * values;
    for (std::size_t i = 0; i < values; ++i) body[i * value_bytes + plane] = in[i];
  }
  std::ranges::copy(planes.subspan(whole), body.subspan(whole).begin());
}

std::optional<std::size_t> compress(std::span<std::byte> body, std::size_t value_bytes) {
  INCIPIT_CHECK(value_bytes >= 1 && value_bytes <= kMaxValueBytes);
  const std::size_t most = body.size() - (body.size() + 9) / 10;
  if (most <= kFrontBytes) return std::nullopt;
  StoreBuffer planes;
  split(body, value_bytes, planes.resize(body.size()));
  // Gives up by itself where the room, which is what it may take, does not do.
  const std::span<std::byte> room = body.first(most).subspan(kFrontBytes);
  const std::size_t frame =
      ZSTD_compress(room.data(), room.size(), planes.bytes().data(), planes.bytes().size(), kLevel);
  if (ZSTD_isError(frame) != 0) {
    join(planes.bytes(), value_bytes, body);
    return std::nullopt;
  }
  const std::uint64_t original = body.size();
  const auto width = static_cast<std::uint32_t>(value_bytes);
  std::memcpy(body.data(), &original, sizeof(original));
  std::memcpy(body.data() + sizeof(original), &width, sizeof(width));
  return kFrontBytes + frame;
}

std::optional<Planes> decompress(base::Bytes compressed, std::size_t most_bytes) {
  if (compressed.size() < kFrontBytes) return std::nullopt;
  std::uint64_t original = 0;
  std::uint32_t width = 0;
  std::memcpy(&original, compressed.data(), sizeof(original));
  std::memcpy(&width, compressed.data() + sizeof(original), sizeof(width));
  if (original > most_bytes || width < 1 || width > kMaxValueBytes) return std::nullopt;
  const base::Bytes frame = compressed.subspan(kFrontBytes);
  Planes planes;
  planes.value_bytes = width;
  const std::span<std::byte> out = planes.bytes.resize(original);
  const std::size_t made = ZSTD_decompress(out.data(), out.size(), frame.data(), frame.size());
  if (ZSTD_isError(made) != 0 || made != out.size()) return std::nullopt;
  return planes;
}

}  // namespace incipit::kv
