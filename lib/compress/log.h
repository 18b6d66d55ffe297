// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_COMPRESS_LOG_H_
#define INCIPIT_COMPRESS_LOG_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "compress/segment.h"

namespace incipit::compress {

/// What a prompt that was applied has beside messages and segments. All of it follows from these.
struct Applied {
  std::uint64_t window_first = 0, window_end = 0;
  struct Part {
    std::uint64_t entry = 0, begin = 0;  // what is in front of `begin` is left out
    std::size_t tokens = 0;
  };
  std::vector<Part> cut = {};  // by entry
  std::vector<Quote> evidence = {};
};

/// Records of these. What messages have, and what the segments have that a new one replaces, is
/// referred to: of a summary that is made anew on every turn only what is new takes room.
/// `segments` are those before the new one.
std::string record_of(const Segment& segment, const std::vector<SegmentPtr>& segments,
                      const History& history);
std::string record_of(const Applied& applied, const History& history);

/// What happened to a conversation, as bytes that only ever grow. Each record has a checksum that
/// also covers all records in front of it.
class LogWriter {
 public:
  LogWriter();
  void add(const Message& message);
  /// One that record_of() has made.
  void add(std::string_view record);
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
  std::uint64_t chain_ = 0;
};

/// Reads what LogWriter wrote. Throws Error{kInvalidArgument} for other bytes.
class LogReader {
 public:
  enum class Record : std::uint8_t { kMessage = 1, kSegment = 2, kApplied = 3 };

  explicit LogReader(std::string_view bytes);
  /// The kind of the next record, or nullopt at the end.
  std::optional<Record> next();
  std::string_view record() const noexcept { return body_; }
  Message message();
  /// Needs what there is in front of the record.
  Segment segment(const std::vector<SegmentPtr>& segments, const History& history);
  /// But for the tokens of its parts.
  Applied applied(const History& history);

 private:
  std::string_view left_;
  std::string_view body_;
  std::uint64_t chain_ = 0;
};

/// Throws the Error of a log that is damaged.
[[noreturn]] void throw_damaged_log();

}  // namespace incipit::compress

#endif  // INCIPIT_COMPRESS_LOG_H_
