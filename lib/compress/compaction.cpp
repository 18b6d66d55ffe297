// SPDX-License-Identifier: Apache-2.0
#include "compress/compaction.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "compress/compact_json.h"
#include "compress/compact_lines.h"
#include "compress/cut.h"
#include "compress/pieces.h"
#include "text/ascii.h"

namespace incipit::compress {
namespace {

using text::line_end;

struct Part {
  std::string text = {};
  PieceKind kind = PieceKind::kSentence;
};

class Compactor {
 public:
  Compactor(std::string_view text, const CompactionOptions& options, std::string handle)
      : text_(text), options_(options), handle_(std::move(handle)) {}

  Compacted compact(std::span<const Piece> all) {
    for (std::size_t i = 0; i < all.size();) {
      std::size_t end = i + 1;
      const PieceKind kind = all[i].kind;
      if (kind == PieceKind::kLog) {
        while (end < all.size() && all[end].kind == kind) ++end;
      }
      add(text_.substr(all[i].span.begin, all[end - 1].span.end - all[i].span.begin), kind);
      i = end;
    }
    keep_ends();
    Compacted result{joined(), handle_, markers_.used(), methods_};
    if (result.text.size() < text_.size()) return result;
    return {std::string(text_), handle_, false, {}};
  }

 private:
  /// A piece, or all lines of a log.
  void add(std::string_view piece, PieceKind kind) {
    Markers markers = markers_;  // as it is now, should the piece stay as it is
    std::string shorter;
    std::string_view method;
    switch (kind) {
      case PieceKind::kJson:
        method = "json";
        shorter = json(piece);
        break;
      case PieceKind::kLog:
        method = "log";
        shorter = compact_log(piece, options_.log_lines, markers_);
        break;
      case PieceKind::kTable:
        method = "table";
        shorter = compact_table(piece, options_.table_rows, markers_);
        break;
      case PieceKind::kSentence:
      case PieceKind::kCode:
        break;
    }
    if (method.empty() || shorter.size() >= piece.size()) {
      markers_ = markers;
      shorter = piece;
    } else {
      name(method);
    }
    if (kind != PieceKind::kLog) {
      parts_.push_back({std::move(shorter), kind});
      return;
    }
    for (std::size_t begin = 0; begin < shorter.size();) {
      const std::size_t end = line_end(shorter, begin);
      parts_.push_back({shorter.substr(begin, end - begin), kind});
      begin = end;
    }
  }

  std::string json(std::string_view piece) {
    constexpr int kMostTries = 4;
    JsonScanner scanner(piece);
    if (!scanner.scan(piece.find_first_of("{["))) return std::string(piece);
    const JsonNode& value = scanner.nodes().front();
    // Nothing but JSON's own parts can be left out of a text that is JSON as a whole.
    const std::size_t most = piece.size() == text_.size() && options_.total_bytes > 0
                                 ? options_.total_bytes
                                 : text_.size();
    CompactionOptions options = options_;
    const Markers markers = markers_;
    std::string shorter = compact_json(piece, scanner, options, markers_);
    for (int i = 1; i < kMostTries && shorter.size() > most; ++i) {
      if (options.array_items > 2) options.array_items /= 2;
      if (options.string_bytes > 1) options.string_bytes /= 2;
      markers_ = markers;
      shorter = compact_json(piece, scanner, options, markers_);
    }
    return std::string(piece.substr(0, value.begin)) + shorter +
           std::string(piece.substr(value.end));
  }

  /// The front and the end of a text that is too long, and what tells of errors between them.
  void keep_ends() {
    const std::size_t most = options_.total_bytes;
    if (most == 0 || joined_size() <= most) return;
    const std::size_t tail_bytes = most / 3, head_bytes = most - tail_bytes;
    shorten_huge_sentences();
    std::size_t bytes = 0, head = 0, tail = parts_.size();
    while (head < parts_.size() && bytes + parts_[head].text.size() <= head_bytes) {
      bytes += parts_[head++].text.size();
    }
    bytes = 0;
    while (tail > head && bytes + parts_[tail - 1].text.size() <= tail_bytes) {
      bytes += parts_[--tail].text.size();
    }
    // JSON, code and tables are left out as a whole or not at all; alone they stay.
    if (tail - head == parts_.size() && parts_.size() == 1) return;
    if (tail - head == parts_.size()) ++head;
    leave_out(head, tail);
  }

  /// Text without sentences: encoded data, say.
  void shorten_huge_sentences() {
    const std::size_t most = options_.total_bytes / 4;
    for (Part& part : parts_) {
      if (part.kind != PieceKind::kSentence || part.text.size() <= most) continue;
      part.text = cut_middle(part.text, most, markers_);
      name("head and tail");
    }
  }

  void leave_out(std::size_t head, std::size_t tail) {
    constexpr std::size_t kMaxErrors = 8;
    const std::size_t most_bytes = options_.total_bytes / 32;  // of a part with an error
    std::vector<Part> kept;
    std::size_t errors = 0, bytes = 0;  // left out since the last part that stays
    const auto mark = [&] {
      if (bytes == 0) return;
      std::string& front = kept.empty() ? kept.emplace_back().text : kept.back().text;
      if (!front.empty() && front.back() != '\n') front += '\n';
      kept.push_back({markers_.next(bytes, "bytes") + "\n", PieceKind::kSentence});
      bytes = 0;
      name("head and tail");
    };
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      Part& part = parts_[i];
      const bool is_between = i >= head && i < tail;
      const bool may_stay = part.kind == PieceKind::kSentence || part.kind == PieceKind::kLog;
      const bool is_error = is_between && may_stay && errors < kMaxErrors &&
                            part.text.size() <= most_bytes && tells_of_error(part.text);
      if (is_between && !is_error) {
        bytes += part.text.size();
        // The next marker has to name it, then.
        if (part.text.find(handle_) != std::string::npos) markers_ = Markers(handle_);
        continue;
      }
      errors += is_error ? 1 : 0;
      mark();
      kept.push_back(std::move(part));
    }
    mark();
    parts_ = std::move(kept);
  }

  std::size_t joined_size() const {
    std::size_t size = 0;
    for (const Part& part : parts_) size += part.text.size();
    return size;
  }

  std::string joined() const {
    std::string text;
    text.reserve(joined_size());
    for (const Part& part : parts_) text += part.text;
    return text;
  }

  void name(std::string_view method) {
    if (std::find(methods_.begin(), methods_.end(), method) == methods_.end()) {
      methods_.push_back(method);
    }
  }

  std::string_view text_;
  const CompactionOptions& options_;
  const std::string handle_;
  Markers markers_{handle_};
  std::vector<Part> parts_;
  std::vector<std::string_view> methods_;
};

}  // namespace

std::string handle_of(std::string_view text, std::uint64_t salt) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const std::uint64_t hash = base::xxh3_64(base::as_bytes(text), salt);
  std::string handle;
  for (int shift = 60; shift >= 0; shift -= 4) handle += kDigits[(hash >> shift) & 0xF];
  return handle;
}

Compacted compact(std::string_view text, const CompactionOptions& options, std::string handle) {
  return compact(text, pieces(text), options, handle.empty() ? handle_of(text) : std::move(handle));
}

bool may_compact(std::string_view text, std::span<const Piece> pieces,
                 const CompactionOptions& options) {
  const auto has_structure = [](const Piece& piece) {
    return piece.kind != PieceKind::kSentence && piece.kind != PieceKind::kCode;
  };
  return (options.total_bytes > 0 && text.size() > options.total_bytes) ||
         std::any_of(pieces.begin(), pieces.end(), has_structure);
}

Compacted compact(std::string_view text, std::span<const Piece> pieces,
                  const CompactionOptions& options, std::string handle) {
  return Compactor(text, options, std::move(handle)).compact(pieces);
}

}  // namespace incipit::compress
