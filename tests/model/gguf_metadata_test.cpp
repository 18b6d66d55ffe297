// SPDX-License-Identifier: Apache-2.0
#include "model/gguf_metadata.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/gguf_writer.h"
#include "support/unreadable.h"

namespace incipit::model {
namespace {

using test::check_unreadable;
using test::gguf_string;
using test::raw_bytes;

// Owns the bytes of the one value "key".
class OneValue {
 public:
  OneValue(GgufType type, std::string bytes) : bytes_(std::move(bytes)), metadata_("file.gguf") {
    metadata_.add("key", {type, false, 1, base::as_bytes(bytes_)});
  }
  OneValue(GgufType type, std::uint64_t count, std::string bytes)
      : bytes_(std::move(bytes)), metadata_("file.gguf") {
    metadata_.add("key", {type, true, count, base::as_bytes(bytes_)});
  }
  OneValue(const OneValue&) = delete;
  OneValue& operator=(const OneValue&) = delete;

  const GgufMetadata* operator->() const { return &metadata_; }

 private:
  const std::string bytes_;
  GgufMetadata metadata_;
};

TEST_CASE("A count may be any integer that is not negative") {
  CHECK(OneValue(GgufType::kU8, raw_bytes(std::uint8_t{200}))->get_count("key") == 200);
  CHECK(OneValue(GgufType::kU16, raw_bytes(std::uint16_t{40000}))->get_count("key") == 40000);
  CHECK(OneValue(GgufType::kU32, raw_bytes(std::uint32_t{7}))->get_count("key") == 7);
  CHECK(OneValue(GgufType::kU64, raw_bytes(std::uint64_t{1} << 40))->get_count("key") ==
        std::uint64_t{1} << 40);
  CHECK(OneValue(GgufType::kI8, raw_bytes(std::int8_t{0}))->get_count("key") == 0);
  CHECK(OneValue(GgufType::kI16, raw_bytes(std::int16_t{5}))->get_count("key") == 5);
  CHECK(OneValue(GgufType::kI32, raw_bytes(std::int32_t{6}))->get_count("key") == 6);
  CHECK(OneValue(GgufType::kI64, raw_bytes(std::int64_t{7}))->get_count("key") == 7);
  const OneValue minus_i8(GgufType::kI8, raw_bytes(std::int8_t{-1}));
  const OneValue minus_i16(GgufType::kI16, raw_bytes(std::int16_t{-1}));
  const OneValue minus_i32(GgufType::kI32, raw_bytes(std::int32_t{-1}));
  const OneValue minus_i64(GgufType::kI64, raw_bytes(std::int64_t{-1}));
  for (const OneValue* value : {&minus_i8, &minus_i16, &minus_i32, &minus_i64}) {
    check_unreadable("'key' is negative", [&] { return (*value)->get_count("key"); });
  }
}

TEST_CASE("A number may be a float or an integer, and is finite") {
  CHECK(OneValue(GgufType::kF32, raw_bytes(0.5f))->get_number("key") == 0.5);
  CHECK(OneValue(GgufType::kF64, raw_bytes(0.1))->get_number("key") == 0.1);
  CHECK(OneValue(GgufType::kU32, raw_bytes(std::uint32_t{9}))->get_number("key") == 9.0);
  CHECK(OneValue(GgufType::kI8, raw_bytes(std::int8_t{-1}))->get_number("key") == -1.0);
  CHECK(OneValue(GgufType::kI16, raw_bytes(std::int16_t{-300}))->get_number("key") == -300.0);
  CHECK(OneValue(GgufType::kI32, raw_bytes(std::int32_t{7}))->get_number("key") == 7.0);
  CHECK(OneValue(GgufType::kI64, raw_bytes(std::int64_t{-5}))->get_number("key") == -5.0);
  const OneValue infinite(GgufType::kF32, raw_bytes(std::numeric_limits<float>::infinity()));
  check_unreadable("'key' is not finite", [&] { return infinite->get_number("key"); });
  const OneValue nan(GgufType::kF64, raw_bytes(std::numeric_limits<double>::quiet_NaN()));
  check_unreadable("'key' is not finite", [&] { return nan->get_number("key"); });
}

TEST_CASE("A flag is one byte that is 0 or 1") {
  CHECK(OneValue(GgufType::kBool, std::string(1, '\1'))->find_flag("key") == true);
  CHECK(OneValue(GgufType::kBool, std::string(1, '\0'))->find_flag("key") == false);
  const OneValue odd(GgufType::kBool, std::string(1, '\2'));
  check_unreadable("neither true nor false", [&] { return odd->find_flag("key"); });
}

TEST_CASE("A missing key is nothing to find and an error to get") {
  const OneValue value(GgufType::kU8, std::string(1, '\1'));
  CHECK(value->has("key"));
  CHECK_FALSE(value->has("other"));
  CHECK_FALSE(value->find_count("other").has_value());
  CHECK_FALSE(value->find_number("other").has_value());
  CHECK_FALSE(value->find_flag("other").has_value());
  CHECK_FALSE(value->find_text("other").has_value());
  check_unreadable("'other' is missing", [&] { return value->get_count("other"); });
  check_unreadable("'other' is missing", [&] { return value->get_number("other"); });
  check_unreadable("'other' is missing", [&] { return value->get_text("other"); });
  check_unreadable("'other' is missing", [&] { return value->get_texts("other"); });
  check_unreadable("'other' is missing", [&] { return value->get_i32s("other"); });
}

TEST_CASE("A value of another type than is wanted is an error") {
  const OneValue text(GgufType::kString, gguf_string("42"));
  CHECK(text->get_text("key") == "42");
  check_unreadable("'key' is no integer", [&] { return text->get_count("key"); });
  check_unreadable("'key' is no number", [&] { return text->get_number("key"); });
  check_unreadable("'key' is neither", [&] { return text->find_flag("key"); });
  check_unreadable("'key' is no list of strings", [&] { return text->get_texts("key"); });
  const OneValue flag(GgufType::kBool, std::string(1, '\1'));
  check_unreadable("'key' is no integer", [&] { return flag->get_count("key"); });
  check_unreadable("'key' is no number", [&] { return flag->get_number("key"); });
  check_unreadable("'key' is no string", [&] { return flag->find_text("key"); });
  const OneValue fraction(GgufType::kF32, raw_bytes(1.0f));
  check_unreadable("'key' is no integer", [&] { return fraction->get_count("key"); });
}

TEST_CASE("The type of a list's elements is checked before they are read") {
  const OneValue numbers(GgufType::kI32, 2,
                         raw_bytes(std::int32_t{-3}) + raw_bytes(std::int32_t{4}));
  CHECK(numbers->get_i32s("key") == std::vector<std::int32_t>{-3, 4});
  check_unreadable("no list of strings", [&] { return numbers->get_texts("key"); });
  check_unreadable("'key' is a list", [&] { return numbers->get_count("key"); });
  check_unreadable("'key' is a list", [&] { return numbers->get_number("key"); });
  const OneValue bytes(GgufType::kU8, 2, std::string(2, '\1'));
  check_unreadable("no list of i32", [&] { return bytes->get_i32s("key"); });
  const OneValue texts(GgufType::kString, 2, gguf_string("a") + gguf_string("\xff"));
  CHECK(texts->get_texts("key") == std::vector<std::string>{"a", "\xff"});
  check_unreadable("no list of i32", [&] { return texts->get_i32s("key"); });
  check_unreadable("'key' is a list", [&] { return texts->find_text("key"); });
  CHECK(OneValue(GgufType::kString, 0, "")->get_texts("key").empty());
}

}  // namespace
}  // namespace incipit::model
