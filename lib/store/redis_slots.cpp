// SPDX-License-Identifier: Apache-2.0
#include "store/redis_slots.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

namespace incipit::store {
namespace {

// CRC-16/XMODEM: polynomial x^16 + x^12 + x^5 + 1, from 0, most significant bit first.
constexpr std::array<std::uint16_t, 256> make_crc16_table() {
  std::array<std::uint16_t, 256> table = {};
  for (unsigned byte = 0; byte < 256; ++byte) {
    unsigned crc = byte << 8;
    for (int bit = 0; bit < 8; ++bit) crc = (crc << 1) ^ ((crc & 0x8000) != 0 ? 0x1021 : 0);
    table[byte] = static_cast<std::uint16_t>(crc);
  }
  return table;
}
constexpr std::array<std::uint16_t, 256> kCrc16 = make_crc16_table();

std::uint16_t crc16(std::string_view text) {
  unsigned crc = 0;
  for (const char c : text) {
    crc = (crc << 8) ^ kCrc16[((crc >> 8) ^ static_cast<unsigned char>(c)) & 0xff];
  }
  return static_cast<std::uint16_t>(crc);
}

std::optional<Endpoint> make_endpoint(std::string_view host, long long port,
                                      const Endpoint& asked) {
  if (host.size() > kMaxHost || port < 1 || port > 65535) return std::nullopt;
  // "?" is what Redis 7 calls a node whose name it was not told.
  const bool itself = host.empty() || host == "?";
  return Endpoint{itself ? asked.host : std::string(host), static_cast<std::uint16_t>(port)};
}

// [first slot, last slot, [host, port, ...], replicas...]
std::optional<RedisSlotRange> parse_range(const RedisReply& reply, const Endpoint& asked) {
  using Kind = RedisReply::Kind;
  const std::vector<RedisReply>& fields = reply.elements;
  if (fields.size() < 3 || fields[0].kind != Kind::kInteger || fields[1].kind != Kind::kInteger) {
    return std::nullopt;
  }
  const long long first = fields[0].integer, last = fields[1].integer;
  if (first < 0 || last < first || last >= static_cast<long long>(kRedisSlots)) {
    return std::nullopt;
  }
  const std::vector<RedisReply>& node = fields[2].elements;
  if (node.size() < 2 || node[1].kind != Kind::kInteger) return std::nullopt;
  const bool named = node[0].kind == Kind::kString;
  if (!named && node[0].kind != Kind::kNil) return std::nullopt;
  const std::optional<Endpoint> master = make_endpoint(node[0].text, node[1].integer, asked);
  if (!master) return std::nullopt;
  return RedisSlotRange{static_cast<std::size_t>(first), static_cast<std::size_t>(last), *master};
}

// Takes the next word, which ends at a space or the end.
std::string_view take_word(std::string_view& text) {
  const std::size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

}  // namespace

std::size_t redis_slot(std::string_view key) {
  const std::size_t open = key.find('{');
  if (open != std::string_view::npos) {
    const std::size_t close = key.find('}', open + 1);
    if (close != std::string_view::npos && close > open + 1) {
      key = key.substr(open + 1, close - open - 1);
    }
  }
  return crc16(key) % kRedisSlots;
}

std::optional<std::vector<RedisSlotRange>> parse_redis_slots(const RedisReply& reply,
                                                             const Endpoint& asked) {
  if (reply.kind != RedisReply::Kind::kArray || reply.elements.empty()) return std::nullopt;
  std::vector<RedisSlotRange> ranges;
  for (const RedisReply& element : reply.elements) {
    const std::optional<RedisSlotRange> range = parse_range(element, asked);
    if (!range || ranges.size() == kRedisSlots) return std::nullopt;
    ranges.push_back(*range);
  }
  return ranges;
}

std::optional<RedisRedirection> parse_redis_redirection(const RedisReply& reply,
                                                        const Endpoint& asked) {
  if (reply.kind != RedisReply::Kind::kError) return std::nullopt;
  std::string_view text = reply.text;
  const std::string_view what = take_word(text);
  if (what != "MOVED" && what != "ASK") return std::nullopt;
  take_word(text);  // The slot, which we know.
  const std::string_view where = take_word(text);
  const std::size_t colon = where.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  unsigned port = 0;
  const char* const last = where.data() + where.size();
  const auto [end, error] = std::from_chars(where.data() + colon + 1, last, port);
  if (error != std::errc() || end != last) return std::nullopt;
  const std::optional<Endpoint> to = make_endpoint(where.substr(0, colon), port, asked);
  if (!to) return std::nullopt;
  return RedisRedirection{what == "ASK", *to};
}

}  // namespace incipit::store
