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
#include "base/hash.h"
#include "compress/segment.h"

namespace incipit::compress {

/// A prompt that was applied, as a change of the one before.
struct Applied {
  std::uint64_t kept = 0;  // items at the front that are those of the prompt before
  struct Sent {
    base::Digest128 digest = {};
    std::uint64_t tokens = 0;
  };
  std::vector<Sent> added = {};
  std::uint64_t durable = 0;  // items in front of the evidence
  std::uint64_t window_first = 0, window_end = 0;
  struct Part {
    std::uint64_t entry = 0, tokens = 0;
  };
  std::vector<Part> cut = {};  // messages of which a part is in its place
  std::vector<Quote> evidence = {};
};

/// What happened to a conversation, as bytes that only ever grow. Each record has a checksum that
/// also covers all records in front of it.
class LogWriter {
 public:
  LogWriter();
  void add(const Message& message);
  void add(const Segment& segment);
  void add(const Applied& applied);
  std::string take() { return std::move(bytes_); }

 private:
  void put_record(const std::string& body);

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
  Message message();
  Segment segment();
  Applied applied();

 private:
  std::string_view left_;
  std::string_view body_;
  std::uint64_t chain_ = 0;
};

/// Throws the Error of a log that is damaged.
[[noreturn]] void throw_damaged_log();

}  // namespace incipit::compress

#endif  // INCIPIT_COMPRESS_LOG_H_
