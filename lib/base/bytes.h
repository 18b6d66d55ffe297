// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BASE_BYTES_H_
#define INCIPIT_BASE_BYTES_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace incipit::base {

static_assert(std::endian::native == std::endian::little, "files and KV are little-endian");

using Bytes = std::span<const std::byte>;

inline Bytes as_bytes(std::string_view text) noexcept {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// Sum and product that throw Error{kModelUnreadable} on overflow: the only arithmetic that
/// integers from a file may meet.
std::uint64_t checked_add(std::uint64_t a, std::uint64_t b, std::string_view what);
std::uint64_t checked_mul(std::uint64_t a, std::uint64_t b, std::string_view what);

/// Reads untrusted bytes front to back. Every call that would pass the end throws
/// Error{kModelUnreadable} naming `what` the bytes are and where the read failed.
class ByteReader {
 public:
  ByteReader(Bytes bytes, std::string what) : bytes_(bytes), what_(std::move(what)) {}

  std::uint64_t position() const noexcept { return position_; }
  std::uint64_t remaining() const noexcept { return bytes_.size() - position_; }

  template <class T>
  requires std::is_trivially_copyable_v<T> T read() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }

  /// The next `count` bytes, still in place.
  Bytes take(std::uint64_t count);
  /// A string behind its u64 length, which may be at most `cap`.
  std::string_view read_string(std::uint64_t cap);
  [[noreturn]] void fail(const std::string& why) const;

 private:
  Bytes bytes_;
  std::string what_;
  std::uint64_t position_ = 0;  // <= bytes_.size()
};

/// Appends tagged, length-prefixed fields: two different sequences of fields never give equal
/// bytes.
class FieldWriter {
 public:
  FieldWriter& add(std::string_view tag, std::string_view value);
  FieldWriter& add(std::string_view tag, Bytes value);
  FieldWriter& add(std::string_view tag, std::uint64_t value);
  const std::string& str() const noexcept { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace incipit::base

#endif  // INCIPIT_BASE_BYTES_H_
