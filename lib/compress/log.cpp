// SPDX-License-Identifier: Apache-2.0
#include "compress/log.h"

#include <cstring>
#include <type_traits>

#include "base/check.h"

namespace incipit::compress {
namespace {

// The last digit is the version: another one is another format.
constexpr std::string_view kMagic = "incipit-log-2\n";

// Of a record: its length and its checksum.
constexpr std::size_t kFrame = 2 * sizeof(std::uint64_t);

std::uint64_t chained(std::string_view body, std::uint64_t chain) {
  return base::xxh3_64(base::as_bytes(body), chain);
}

class Writer {
 public:
  template <class T>
  requires std::is_trivially_copyable_v<T> Writer& put(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
    return *this;
  }
  Writer& put(std::string_view text) {
    put(std::uint64_t{text.size()});
    bytes_ += text;
    return *this;
  }
  Writer& put(const std::string& text) { return put(std::string_view(text)); }
  Writer& append(const Writer& other) {
    bytes_ += other.bytes_;
    return *this;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// A count is followed by as many elements, of at least one byte each.
std::uint64_t read_count(base::ByteReader& in) {
  const auto count = in.read<std::uint64_t>();
  if (count > in.remaining()) throw_damaged_log();
  return count;
}

std::string read_text(base::ByteReader& in) { return std::string(in.read_string(in.remaining())); }

template <class Enum>
Enum read_enum(base::ByteReader& in, Enum last) {
  const auto value = in.read<std::uint8_t>();
  if (value > static_cast<std::uint8_t>(last)) throw_damaged_log();
  return static_cast<Enum>(value);
}

bool read_bool(base::ByteReader& in) { return in.read<std::uint8_t>() != 0; }

// Runs `parse` on all of the bytes.
template <class Parse>
auto parsed(std::string_view body, Parse parse) {
  try {
    base::ByteReader in(base::as_bytes(body), "log");
    in.read<std::uint8_t>();  // the kind
    auto record = parse(in);
    if (in.remaining() == 0) return record;
  } catch (const Error&) {
    throw_damaged_log();
  }
  throw_damaged_log();
}

template <class Enum>
std::uint8_t byte_of(Enum value) {
  return static_cast<std::uint8_t>(value);
}

// How a quote, or a run of them, stands in a record.
enum class Form : std::uint8_t {
  kRun,        // as segments have them that the new one replaces
  kReference,  // the text is in its message
  kText,       // the text is here
};

// Quotes of the segments inside of [first, end), in order.
std::vector<const Quote*> known_quotes(const std::vector<SegmentPtr>& segments, std::size_t first,
                                       std::size_t end) {
  std::vector<const Quote*> known;
  for (const SegmentPtr& segment : segments) {
    if (segment->first < first || segment->end > end) continue;
    for (const Quote& quote : segment->quotes) known.push_back(&quote);
  }
  return known;
}

// References of a record ascend and do not overlap, so that no record gives more text than there
// is. The one after this may begin here.
struct Place {
  std::size_t entry = 0, begin = 0;

  bool may_refer(const Quote& quote, std::size_t size, const History& history) const {
    if (quote.entry >= history.size() || quote.entry < entry) return false;
    if (quote.entry == entry && quote.begin < begin) return false;
    const std::size_t all = history[quote.entry].shown().text.size();
    return quote.begin <= all && size <= all - quote.begin;
  }
};

void put_quote(Writer& out, const Quote& quote, Place& place, const History& history) {
  const bool refers =
      quote.role != Role::kSystem && place.may_refer(quote, quote.text.size(), history) &&
      std::string_view(history[quote.entry].shown().text).substr(quote.begin, quote.text.size()) ==
          quote.text;
  out.put(byte_of(refers ? Form::kReference : Form::kText));
  out.put(quote.entry).put(byte_of(quote.role)).put(std::uint64_t{quote.begin});
  if (refers) {
    out.put(std::uint64_t{quote.text.size()});
    place = {quote.entry, quote.begin + quote.text.size()};
  } else {
    out.put(quote.text);
  }
  out.put(byte_of(quote.kind)).put(std::uint64_t{quote.tokens}).put(quote.salience);
  out.put(static_cast<std::uint8_t>(quote.order)).put(static_cast<std::uint8_t>(quote.must_keep));
}

void put_quotes(Writer& out, const std::vector<Quote>& quotes,
                const std::vector<const Quote*>& known, const History& history) {
  Writer parts;
  std::uint64_t count = 0;
  std::size_t at = 0;  // of `known`, which ascends by entry as `quotes` does
  Place place;
  for (std::size_t i = 0; i < quotes.size(); ++count) {
    while (at < known.size() && known[at]->entry < quotes[i].entry) ++at;
    std::size_t found = at;
    while (found < known.size() && known[found]->entry == quotes[i].entry &&
           *known[found] != quotes[i]) {
      ++found;
    }
    if (found == known.size() || known[found]->entry != quotes[i].entry) {
      put_quote(parts, quotes[i++], place, history);
      continue;
    }
    for (at = found; at < known.size() && i < quotes.size() && *known[at] == quotes[i]; ++at) ++i;
    parts.put(byte_of(Form::kRun)).put(std::uint64_t{found}).put(std::uint64_t{at - found});
  }
  out.put(count).append(parts);
}

Quote read_quote(base::ByteReader& in, Form form, Place& place, const History& history) {
  Quote quote;
  quote.entry = in.read<std::uint32_t>();
  quote.role = read_enum(in, Role::kTool);
  quote.begin = in.read<std::uint64_t>();
  if (form == Form::kReference) {
    const auto size = in.read<std::uint64_t>();
    if (!place.may_refer(quote, size, history)) throw_damaged_log();
    quote.text = history[quote.entry].shown().text.substr(quote.begin, size);
    place = {quote.entry, quote.begin + size};
  } else {
    quote.text = read_text(in);
  }
  quote.kind = read_enum(in, PieceKind::kLog);
  quote.tokens = in.read<std::uint64_t>();
  quote.salience = in.read<std::uint64_t>();
  quote.order = read_bool(in);
  quote.must_keep = read_bool(in);
  return quote;
}

std::vector<Quote> read_quotes(base::ByteReader& in, const std::vector<const Quote*>& known,
                               const History& history) {
  std::vector<Quote> result;
  std::uint64_t at = 0;  // runs ascend, too
  Place place;
  for (std::uint64_t count = read_count(in); count > 0; --count) {
    const Form form = read_enum(in, Form::kText);
    if (form != Form::kRun) {
      result.push_back(read_quote(in, form, place, history));
      continue;
    }
    const auto first = in.read<std::uint64_t>();
    const auto run = in.read<std::uint64_t>();
    if (first < at || first > known.size() || run > known.size() - first) throw_damaged_log();
    for (at = first; at < first + run; ++at) result.push_back(*known[at]);
  }
  return result;
}

}  // namespace

void throw_damaged_log() {
  base::throw_error(ErrorCode::kInvalidArgument,
                    "the log of a Compressor is damaged, or is none; start a new conversation");
}

LogWriter::LogWriter() : bytes_(kMagic) {}

void LogWriter::add(std::string_view record) {
  chain_ = chained(record, chain_);
  bytes_ += Writer().put(std::uint64_t{record.size()}).put(chain_).take();
  bytes_ += record;
}

void LogWriter::add(const Message& message) {
  Writer out;
  out.put(byte_of(LogReader::Record::kMessage)).put(byte_of(message.role));
  out.put(message.text).put(message.tool_call_id).put(message.id);
  out.put(std::uint64_t{message.tool_calls.size()});
  for (const ToolCall& call : message.tool_calls) {
    out.put(call.id).put(call.name).put(call.arguments);
  }
  for (const bool flag :
       {message.pinned, message.no_compress, message.ephemeral, message.constraint}) {
    out.put(static_cast<std::uint8_t>(flag));
  }
  add(out.take());
}

std::string record_of(const Segment& segment, const std::vector<SegmentPtr>& segments,
                      const History& history) {
  Writer out;
  out.put(byte_of(LogReader::Record::kSegment));
  out.put(std::uint64_t{segment.first}).put(std::uint64_t{segment.end}).put(segment.summary);
  const auto known = known_quotes(segments, segment.first, segment.end);
  put_quotes(out, segment.quotes, known, history);
  return out.take();
}

std::string record_of(const Applied& applied, const History& history) {
  Writer out;
  out.put(byte_of(LogReader::Record::kApplied));
  out.put(applied.window_first).put(applied.window_end);
  out.put(std::uint64_t{applied.cut.size()});
  for (const Applied::Part& part : applied.cut) out.put(part.entry).put(part.begin);
  put_quotes(out, applied.evidence, {}, history);
  return out.take();
}

LogReader::LogReader(std::string_view bytes) : left_(bytes) {
  if (!left_.starts_with(kMagic)) throw_damaged_log();
  left_.remove_prefix(kMagic.size());
}

std::optional<LogReader::Record> LogReader::next() {
  if (left_.empty()) return std::nullopt;
  if (left_.size() < kFrame) throw_damaged_log();
  std::uint64_t size = 0, checksum = 0;
  std::memcpy(&size, left_.data(), sizeof(size));
  std::memcpy(&checksum, left_.data() + sizeof(size), sizeof(checksum));
  left_.remove_prefix(kFrame);
  if (size == 0 || size > left_.size()) throw_damaged_log();
  body_ = left_.substr(0, size);
  left_.remove_prefix(size);
  chain_ = chained(body_, chain_);
  if (chain_ != checksum) throw_damaged_log();
  const auto kind = static_cast<std::uint8_t>(body_.front());
  if (kind < byte_of(Record::kMessage) || kind > byte_of(Record::kApplied)) throw_damaged_log();
  return static_cast<Record>(kind);
}

Message LogReader::message() {
  return parsed(body_, [](base::ByteReader& in) {
    Message message;
    message.role = read_enum(in, Role::kTool);
    message.text = read_text(in);
    message.tool_call_id = read_text(in);
    message.id = read_text(in);
    for (std::uint64_t calls = read_count(in); calls > 0; --calls) {
      ToolCall& call = message.tool_calls.emplace_back();
      call.id = read_text(in);
      call.name = read_text(in);
      call.arguments = read_text(in);
    }
    for (bool* const flag :
         {&message.pinned, &message.no_compress, &message.ephemeral, &message.constraint}) {
      *flag = read_bool(in);
    }
    return message;
  });
}

Segment LogReader::segment(const std::vector<SegmentPtr>& segments, const History& history) {
  return parsed(body_, [&](base::ByteReader& in) {
    Segment segment;
    segment.first = in.read<std::uint64_t>();
    segment.end = in.read<std::uint64_t>();
    segment.summary = read_text(in);
    const auto known = known_quotes(segments, segment.first, segment.end);
    segment.quotes = read_quotes(in, known, history);
    return segment;
  });
}

Applied LogReader::applied(const History& history) {
  return parsed(body_, [&](base::ByteReader& in) {
    Applied applied;
    applied.window_first = in.read<std::uint64_t>();
    applied.window_end = in.read<std::uint64_t>();
    for (std::uint64_t parts = read_count(in); parts > 0; --parts) {
      Applied::Part& part = applied.cut.emplace_back();
      part.entry = in.read<std::uint64_t>();
      part.begin = in.read<std::uint64_t>();
    }
    applied.evidence = read_quotes(in, {}, history);
    return applied;
  });
}

}  // namespace incipit::compress
