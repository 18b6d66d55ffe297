// SPDX-License-Identifier: Apache-2.0
#include "baselines.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "compress/extract.h"
#include "compress/salience.h"
#include "text/segmentation.h"

namespace bench {

using incipit::Message;
using incipit::Role;

Units::Units(std::size_t budget, incipit::TokenCounter counter)
    : budget_(budget), counter_(std::move(counter)), system_tokens_(counter_.prompt) {}

void Units::add(const Message& message) {
  const std::size_t tokens = count(message);
  if (message.role == Role::kSystem) {
    system_.push_back(message);
    system_tokens_ += tokens;
    return;
  }
  if (message.role != Role::kTool || units_.empty()) units_.emplace_back();
  units_.back().messages.push_back(message);
  units_.back().tokens += tokens;
}

std::size_t Units::room() const {
  if (system_tokens_ >= budget_) throw std::runtime_error("the system prompt exceeds the budget");
  return budget_ - system_tokens_;
}

SummaryBuffer::SummaryBuffer(std::size_t budget, const incipit::TokenCounter& counter)
    : units_(budget, counter), counter_(counter) {}

void SummaryBuffer::add(const Message& message) {
  units_.add(message);
  index_.add(message.text);
}

std::vector<Message> SummaryBuffer::prompt() {
  fold();
  std::vector<Message> messages = units_.system();
  if (!summary_.empty()) {
    Message summary{.role = Role::kSystem, .text = "Earlier in this conversation:\n"};
    for (const std::string& sentence : summary_) summary.text += sentence + "\n";
    messages.push_back(std::move(summary));
  }
  for (std::size_t unit = first_live_; unit < units_.all().size(); ++unit) {
    const std::vector<Message>& live = units_.all()[unit].messages;
    messages.insert(messages.end(), live.begin(), live.end());
  }
  return messages;
}

std::vector<Message> SummaryBuffer::probe(const Message& question) const {
  SummaryBuffer copy = *this;
  copy.add(question);
  return copy.prompt();
}

void SummaryBuffer::fold() {
  const std::vector<Unit>& units = units_.all();
  std::size_t live = 0;
  for (std::size_t unit = first_live_; unit < units.size(); ++unit) live += units[unit].tokens;
  const std::size_t room = units_.room();
  const std::size_t most = std::min(units_.budget() / 4, room / 2);  // of the summary
  if (live + summary_tokens_ <= room) return;

  std::vector<Message> gone;
  while (live + most > room && first_live_ + 1 < units.size()) {
    const Unit& oldest = units[first_live_++];
    gone.insert(gone.end(), oldest.messages.begin(), oldest.messages.end());
    live -= oldest.tokens;
  }
  if (live > room) throw std::runtime_error("the last message exceeds the budget");
  summarize(gone, std::min(most, room - live));
}

void SummaryBuffer::summarize(const std::vector<Message>& gone, std::size_t most) {
  std::vector<std::string> sentences = std::move(summary_);
  for (const Message& message : gone) {
    const std::string text = shown_text(message);
    for (const incipit::text::Span& span : incipit::text::sentences(text)) {
      std::string sentence(span.of(text));
      sentence.erase(sentence.find_last_not_of(" \t\r\n") + 1);
      if (!sentence.empty()) sentences.push_back(std::move(sentence));
    }
  }
  // Each sentence stands on a line of its own.
  std::vector<incipit::compress::Candidate> candidates;
  for (const std::string& sentence : sentences) {
    candidates.push_back(
        {counter_.text(sentence) + 1, incipit::compress::salience(sentence, index_)});
  }
  const std::size_t frame =
      units_.count({.role = Role::kSystem, .text = "Earlier in this conversation:\n"});
  summary_.clear();
  summary_tokens_ = 0;
  if (frame > most) return;
  summary_tokens_ = frame;
  for (const std::size_t chosen : incipit::compress::extract(candidates, most - frame)) {
    summary_.push_back(std::move(sentences[chosen]));
    summary_tokens_ += candidates[chosen].tokens;
  }
}

QueryRewrite::QueryRewrite(std::size_t budget, const incipit::TokenCounter& counter)
    : units_(budget, counter) {}

void QueryRewrite::add(const Message& message) {
  units_.add(message);
  index_.add(shown_text(message));
  unit_of_.push_back(units_.all().empty() ? 0 : units_.all().size() - 1);
}

std::vector<Message> QueryRewrite::prompt() {
  const std::size_t count = units_.all().size() - 1;
  return choose(units_.all().back().messages.front(), count);
}

std::vector<Message> QueryRewrite::probe(const Message& question) const {
  return choose(question, units_.all().size());
}

std::vector<Message> QueryRewrite::choose(const Message& query, std::size_t count) const {
  const std::vector<Unit>& units = units_.all();
  std::vector<std::uint64_t> matches(count);
  for (const auto& hit : index_.search(query.text, index_.documents())) {
    const std::size_t unit = unit_of_[hit.document];
    if (unit < count) matches[unit] += hit.score;
  }
  // What follows a match often answers it; what precedes it, sometimes.
  std::vector<std::uint64_t> scores = matches;
  for (std::size_t unit = 0; unit < count; ++unit) {
    if (unit > 0) scores[unit] += matches[unit - 1] / 2;
    if (unit + 1 < count) scores[unit] += matches[unit + 1] * 3 / 10;
  }
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a > b;
  });

  const std::size_t own = units_.count(query);
  if (own > units_.room()) throw std::runtime_error("the last message exceeds the budget");
  std::size_t left = units_.room() - own;
  std::vector<bool> chosen(count);
  for (const std::size_t unit : order) {
    if (units[unit].tokens > left) continue;
    chosen[unit] = true;
    left -= units[unit].tokens;
  }
  std::vector<Message> messages = units_.system();
  for (std::size_t unit = 0; unit < count; ++unit) {
    if (!chosen[unit]) continue;
    messages.insert(messages.end(), units[unit].messages.begin(), units[unit].messages.end());
  }
  messages.push_back(query);
  return messages;
}

}  // namespace bench
