// SPDX-License-Identifier: Apache-2.0
#include "text/unigram.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/check.h"
#include "text/utf8.h"

namespace incipit::text {
namespace {

constexpr double kUnknownPenalty = 10;           // below the lowest score, as in SentencePiece
constexpr std::size_t kMaxNodes = 1 << 23;       // bounds the memory of the edges to 256 MiB
constexpr std::size_t kMaxTokenBytes = 1 << 10;  // bounds the work per byte of text

[[noreturn]] void fail(const std::string& why) {
  base::throw_error(ErrorCode::kModelUnreadable, "the unigram tokenizer " + why);
}

std::size_t common_prefix(std::string_view a, std::string_view b) {
  const std::size_t most = std::min(a.size(), b.size());
  std::size_t size = 0;
  while (size < most && a[size] == b[size]) ++size;
  return size;
}

}  // namespace

Unigram::Unigram(const Vocabulary& vocabulary, const TokenizerSpec& spec, std::uint64_t seed)
    : vocabulary_(vocabulary), scores_(spec.scores), unknown_(spec.unknown), edges_(0, seed) {
  if (!vocabulary.contains(unknown_)) fail("has no unknown token");
  if (scores_.empty() || scores_.size() > vocabulary.size()) {
    fail("has " + std::to_string(scores_.size()) + " scores for " +
         std::to_string(vocabulary.size()) + " tokens");
  }
  for (std::size_t i = 0; i < scores_.size(); ++i) {
    if (!std::isfinite(scores_[i])) fail("gives token " + std::to_string(i) + " no finite score");
  }
  unknown_score_ = *std::min_element(scores_.begin(), scores_.end()) - kUnknownPenalty;

  std::vector<TokenId> ids;
  for (std::size_t i = 0; i < scores_.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const std::string_view text = vocabulary.text_of(id);
    if (text.size() > kMaxTokenBytes) {
      fail("has a token of " + std::to_string(text.size()) + " bytes; at most " +
           std::to_string(kMaxTokenBytes) + " are supported");
    }
    if (vocabulary.find(text) == id) ids.push_back(id);
  }
  build_trie(std::move(ids), seed);
}

void Unigram::build_trie(std::vector<TokenId> ids, std::uint64_t seed) {
  const auto text_of = [&](std::size_t i) { return vocabulary_.text_of(ids[i]); };
  std::sort(ids.begin(), ids.end(),
            [&](TokenId a, TokenId b) { return vocabulary_.text_of(a) < vocabulary_.text_of(b); });
  std::size_t nodes = 1;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    nodes += text_of(i).size() - (i == 0 ? 0 : common_prefix(text_of(i - 1), text_of(i)));
  }
  if (nodes > kMaxNodes) fail("has too many long tokens");
  edges_ = MergeTable(nodes - 1, seed);
  token_here_.assign(1, -1);
  for (const TokenId id : ids) {
    TokenId node = 0;
    for (const char byte : vocabulary_.text_of(id)) {
      const TokenId label = static_cast<unsigned char>(byte);
      TokenId next = edges_.find(node, label).id;
      if (next < 0) {
        next = static_cast<TokenId>(token_here_.size());
        token_here_.push_back(-1);
        edges_.insert(node, label, {0, next});
      }
      node = next;
    }
    token_here_[static_cast<std::size_t>(node)] = id;
  }
}

void Unigram::encode_byte(char byte, std::vector<TokenId>& out) const {
  const TokenId id = vocabulary_.find_byte(byte);
  out.push_back(id >= 0 ? id : unknown_);
}

void Unigram::encode(std::string_view pre_token, Scratch& scratch,
                     std::vector<TokenId>& out) const {
  auto& nodes = scratch.nodes_;
  std::size_t base = 0;   // all before is encoded; nodes_[0] is there
  std::size_t reach = 0;  // the farthest end of a token so far
  nodes.assign(1, {});
  for (std::size_t at = 0; at < pre_token.size(); at += first_unit(pre_token.substr(at)).bytes) {
    // Where all ways meet, the best one is known; unknown characters may go on. The score goes
    // with it, so that sums round as over the whole text.
    if (at > base && reach == at && nodes[at - base].id != unknown_) {
      const double score = nodes[at - base].score;
      emit(pre_token, base, at, scratch, out);
      base = at;
      nodes.assign(1, {score, 0, -1});
    }
    reach_from(pre_token, base, at, reach, scratch);
  }
  emit(pre_token, base, pre_token.size(), scratch, out);
}

void Unigram::reach_from(std::string_view text, std::size_t base, std::size_t at,
                         std::size_t& reach, Scratch& scratch) const {
  auto& nodes = scratch.nodes_;
  const double so_far = nodes[at - base].score;
  const auto offer = [&](std::size_t end, double score, TokenId id) {
    if (nodes.size() <= end - base) nodes.resize(end - base + 1);
    Scratch::Node& node = nodes[end - base];
    if (node.id < 0 || score > node.score) node = {score, at, id};
    reach = std::max(reach, end);
  };
  const std::size_t next = at + first_unit(text.substr(at)).bytes;
  bool known = false;
  TokenId here = 0;
  for (std::size_t end = at; end < text.size();) {
    here = edges_.find(here, static_cast<unsigned char>(text[end])).id;
    if (here < 0) break;
    ++end;
    const TokenId id = token_here_[static_cast<std::size_t>(here)];
    if (id < 0) continue;
    offer(end, so_far + scores_[static_cast<std::size_t>(id)], id);
    known = known || end == next;
  }
  if (!known) offer(next, so_far + unknown_score_, unknown_);
}

void Unigram::emit(std::string_view text, std::size_t base, std::size_t end, Scratch& scratch,
                   std::vector<TokenId>& out) const {
  auto& pieces = scratch.pieces_;
  pieces.clear();
  while (end > base) {  // from the back
    const Scratch::Node& node = scratch.nodes_[end - base];
    if (node.id == unknown_ && !pieces.empty() && pieces.back().id == unknown_) {
      pieces.back().begin = node.begin;
    } else {
      pieces.push_back({node.begin, end, node.id});
    }
    end = node.begin;
  }
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
    if (piece->id == unknown_) {
      emit_unknown(text.substr(piece->begin, piece->end - piece->begin), out);
    } else {
      out.push_back(piece->id);
    }
  }
}

void Unigram::emit_unknown(std::string_view text, std::vector<TokenId>& out) const {
  const auto has_byte = [&](char byte) { return vocabulary_.find_byte(byte) >= 0; };
  if (!std::all_of(text.begin(), text.end(), has_byte)) return out.push_back(unknown_);
  for (const char byte : text) out.push_back(vocabulary_.find_byte(byte));
}

}  // namespace incipit::text
