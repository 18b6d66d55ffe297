// SPDX-License-Identifier: Apache-2.0
#include "compress/repeated_blocks.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "text/ascii.h"
#include "text/nfc.h"
#include "text/utf8.h"

namespace incipit::compress {
namespace {

using text::is_space;
using text::line_end;

constexpr std::size_t kPlacesPerLine = 4;

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

}  // namespace

RepeatedBlocks::Text RepeatedBlocks::split(std::string_view text) {
  Text split;
  // What is no UTF-8 has no form C and stays as it is.
  const bool is_valid = text::valid_front(text) == text.size();
  split.bytes = is_valid ? std::string(text::NfcText(text).text()) : std::string(text);
  for (std::size_t begin = 0; begin < split.bytes.size();) {
    const std::size_t end = line_end(split.bytes, begin);
    std::size_t shown = end;
    while (shown > begin && is_space(split.bytes[shown - 1])) --shown;
    const auto line = std::string_view(split.bytes).substr(begin, shown - begin);
    split.lines.push_back({begin, shown, base::xxh3_64(base::as_bytes(line))});
    begin = end;
  }
  return split;
}

/// The longest run of lines from line `at` on, and of lines in front of it from `first_free` on,
/// that an added text holds.
RepeatedBlocks::Run RepeatedBlocks::longest_run(const Text& text, std::size_t at,
                                                std::size_t first_free) const {
  Run longest;
  const auto found = places_.find(text.lines[at].hash);
  if (found == places_.end()) return longest;
  for (const Place& place : found->second) {
    const Text& source = texts_[place.text];
    std::size_t begin = at, end = at;
    const auto same = [&](std::size_t line) {
      const std::size_t other = place.line + line - at;
      return text.lines[line].hash == source.lines[other].hash &&
             text.line(line) == source.line(other);
    };
    while (end < text.lines.size() && place.line + end - at < source.lines.size() && same(end)) {
      ++end;
    }
    if (end == at) continue;
    while (begin > first_free && place.line + begin > at && same(begin - 1)) --begin;
    if (end - begin > longest.end - longest.begin) {
      const auto first = static_cast<std::uint32_t>(place.line + begin - at);
      longest = {{place.text, first}, begin, end};
    }
  }
  return longest;
}

std::vector<RepeatedBlock> RepeatedBlocks::find(std::string_view text) const {
  std::vector<RepeatedBlock> blocks;
  if (places_.empty() || text.size() < kMinBytes) return blocks;
  const Text lines = split(text);
  // Normalising neither adds nor removes line feeds, so lines have the same numbers in both.
  std::vector<std::size_t> begins;
  for (std::size_t begin = 0; begin < text.size(); begin = line_end(text, begin)) {
    begins.push_back(begin);
  }
  begins.push_back(text.size());
  std::size_t first_free = 0;  // lines before it are in a block or were looked at
  for (std::size_t at = 0; at < lines.lines.size(); ++at) {
    if (characters(lines.line(at)) < kMinCharacters) continue;
    const Run run = longest_run(lines, at, first_free);
    if (run.end == run.begin) continue;
    at = run.end - 1;
    const text::Span span{begins[run.begin], begins[run.end]};
    if (span.end - span.begin >= kMinBytes) {
      blocks.push_back(
          {span, run.source.text, run.source.line + std::size_t{1}, run.end - run.begin});
      first_free = run.end;
    }
  }
  return blocks;
}

void RepeatedBlocks::add(std::string_view text) {
  const auto number = static_cast<std::uint32_t>(texts_.size());
  texts_.push_back(text.size() < kMinBytes ? Text() : split(text));
  const Text& lines = texts_.back();
  for (std::size_t i = 0; i < lines.lines.size(); ++i) {
    if (characters(lines.line(i)) < kMinCharacters) continue;
    std::vector<Place>& places = places_[lines.lines[i].hash];
    if (places.size() < kPlacesPerLine) places.push_back({number, static_cast<std::uint32_t>(i)});
  }
}

std::string replace_blocks(std::string_view text, const std::vector<RepeatedBlock>& blocks,
                           base::FunctionRef<std::string(const RepeatedBlock& block)> marker) {
  std::string replaced;
  std::size_t copied = 0;
  for (const RepeatedBlock& block : blocks) {
    replaced.append(text.substr(copied, block.span.begin - copied));
    replaced += marker(block);
    // The line break of the block's last line, where it has one.
    if (text[block.span.end - 1] == '\n') replaced += '\n';
    copied = block.span.end;
  }
  return replaced.append(text.substr(copied));
}

}  // namespace incipit::compress
