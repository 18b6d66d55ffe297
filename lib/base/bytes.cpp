// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.h"

#include "base/check.h"

namespace incipit::base {
namespace {

[[noreturn]] void overflow(std::string_view what) {
  throw_error(ErrorCode::kModelUnreadable,
              std::string(what) + " is too large to be true; the file is damaged");
}

// What a field's value is, so that an integer never equals a string of its bytes.
enum class FieldKind : unsigned char { kText = 1, kBytes = 2, kInteger = 3 };

void append_u64(std::string& out, std::uint64_t value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof bytes);
}

void append_field(std::string& out, FieldKind kind, std::string_view tag, std::string_view value) {
  out.push_back(static_cast<char>(kind));
  append_u64(out, tag.size());
  out.append(tag);
  append_u64(out, value.size());
  out.append(value);
}

}  // namespace

std::uint64_t checked_add(std::uint64_t a, std::uint64_t b, std::string_view what) {
  std::uint64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) overflow(what);
  return sum;
}

std::uint64_t checked_mul(std::uint64_t a, std::uint64_t b, std::string_view what) {
  std::uint64_t product;
  if (__builtin_mul_overflow(a, b, &product)) overflow(what);
  return product;
}

Bytes ByteReader::take(std::uint64_t count) {
  if (count > remaining()) {
    fail("ends after " + std::to_string(remaining()) + " of " + std::to_string(count) +
         " bytes that belong here");
  }
  const Bytes taken = bytes_.subspan(position_, count);
  position_ += count;
  return taken;
}

std::string_view ByteReader::read_string(std::uint64_t cap) {
  const auto length = read<std::uint64_t>();
  if (length > cap) {
    fail("holds a string of " + std::to_string(length) + " bytes where at most " +
         std::to_string(cap) + " are allowed");
  }
  const Bytes text = take(length);
  return {reinterpret_cast<const char*>(text.data()), text.size()};
}

void ByteReader::fail(const std::string& why) const {
  throw_error(ErrorCode::kModelUnreadable,
              what_ + ", byte " + std::to_string(position_) + ": " + why);
}

FieldWriter& FieldWriter::add(std::string_view tag, std::string_view value) {
  append_field(bytes_, FieldKind::kText, tag, value);
  return *this;
}

FieldWriter& FieldWriter::add(std::string_view tag, Bytes value) {
  append_field(bytes_, FieldKind::kBytes, tag,
               {reinterpret_cast<const char*>(value.data()), value.size()});
  return *this;
}

FieldWriter& FieldWriter::add(std::string_view tag, std::uint64_t value) {
  append_field(bytes_, FieldKind::kInteger, tag,
               {reinterpret_cast<const char*>(&value), sizeof value});
  return *this;
}

}  // namespace incipit::base
