// SPDX-License-Identifier: Apache-2.0
#include "generate.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "vocabulary.h"

namespace bench {
namespace {

using incipit::Role;

/// SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::size_t below(std::size_t bound) {
    state_ += 0x9E3779B97F4A7C15;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return (z ^ (z >> 31)) % bound;
  }
  bool percent(std::size_t share) { return below(100) < share; }
  std::string_view of(std::span<const std::string_view> list) { return list[below(list.size())]; }

 private:
  std::uint64_t state_;
};

std::string_view one_of(std::string_view values, Random& random) {
  const auto count = static_cast<std::size_t>(std::count(values.begin(), values.end(), '|')) + 1;
  for (std::size_t skip = random.below(count); skip > 0; --skip) {
    values.remove_prefix(values.find('|') + 1);
  }
  return values.substr(0, values.find('|'));
}

/// A fact that was told.
struct Told {
  const FactKind* kind = nullptr;
  std::string_view name;
  std::size_t turn = 0;  // of the user, among all turns
};

class Writer {
 public:
  Writer(const Vocabulary& vocabulary, std::uint64_t seed, std::size_t turns)
      : vocabulary_(vocabulary), random_(seed), turns_(turns) {
    for (const FactKind& kind : vocabulary.facts) {
      for (const std::string_view name : vocabulary.names) untold_.push_back({&kind, name, 0});
    }
    for (std::size_t i = untold_.size(); i > 1; --i) {
      std::swap(untold_[i - 1], untold_[random_.below(i)]);
    }
  }

  Conversation write() {
    for (std::size_t turn = 0; turn < turns_; ++turn) {
      say(Role::kUser, user_turn());
      say(Role::kAssistant, replies(2 + random_.below(2)));
    }
    ask_all();
    std::stable_sort(conversation_.questions.begin(), conversation_.questions.end(),
                     [](const Question& a, const Question& b) { return a.after < b.after; });
    return std::move(conversation_);
  }

 private:
  void say(Role role, std::string text) {
    const std::string id = std::to_string(conversation_.turns.size() + 1);
    conversation_.turns.push_back({.role = role, .text = std::move(text), .id = id});
  }

  std::string user_turn() {
    std::string text;
    if (random_.percent(25) && !untold_.empty()) {
      text = fact();
    } else if (random_.percent(7) && !told_.empty()) {
      const Told& told = told_[random_.below(told_.size())];
      return filled(random_.percent(70) ? told.kind->asks : told.kind->hints, told.name, {});
    } else {
      text = chat(1 + random_.below(3));
    }
    if (random_.percent(10)) join(text, filled(random_.of(vocabulary_.wonders), {}, {}));
    return text;
  }

  /// A fact, sometimes with small talk in front or behind.
  std::string fact() {
    Told told = untold_.back();
    untold_.pop_back();
    told.turn = conversation_.turns.size();
    told_.push_back(told);
    std::string text = chat(random_.below(2));
    join(text, filled(told.kind->says, told.name, one_of(told.kind->values, random_)));
    join(text, chat(random_.below(2)));
    return text;
  }

  /// Each fact once, at least ten turns later; sometimes two of a kind together.
  void ask_all() {
    for (std::size_t i = 0; i < told_.size(); ++i) {
      const Told& told = told_[i];
      const std::size_t first = told.turn + 20;
      if (first >= conversation_.turns.size()) break;
      const std::size_t after =
          (first + random_.below(conversation_.turns.size() - first)) | 1;  // a reply
      const bool plainly = random_.percent(70);
      Question question{std::min(after, conversation_.turns.size() - 1), {}, {told.turn}};
      question.text = filled(plainly ? told.kind->asks : told.kind->hints, told.name, {});
      if (const Told* other = plainly && random_.percent(20) ? like(i) : nullptr) {
        join(question.text, filled(other->kind->asks, other->name, {}));
        question.evidence.push_back(other->turn);
      }
      conversation_.questions.push_back(std::move(question));
    }
  }

  /// An earlier fact of the same kind about somebody else.
  const Told* like(std::size_t fact) const {
    for (std::size_t i = 0; i < fact; ++i) {
      if (told_[i].kind == told_[fact].kind) return &told_[i];
    }
    return nullptr;
  }

  std::string chat(std::size_t count) {
    std::string text;
    for (; count > 0; --count) {
      std::string sentence;
      for (const auto& parts : {vocabulary_.openings, vocabulary_.clauses, vocabulary_.endings}) {
        sentence += filled(random_.of(parts), {}, {});
      }
      join(text, sentence);
    }
    return text;
  }

  std::string replies(std::size_t count) {
    std::string text;
    for (; count > 0; --count) join(text, filled(random_.of(vocabulary_.replies), {}, {}));
    return text;
  }

  void join(std::string& text, const std::string& more) const {
    if (!text.empty() && !more.empty()) text += vocabulary_.space;
    text += more;
  }

  std::string filled(std::string_view form, std::string_view name, std::string_view value) {
    std::string text;
    while (!form.empty()) {
      const std::size_t brace = std::min(form.find('{'), form.size());
      text += form.substr(0, brace);
      form.remove_prefix(brace);
      if (form.empty()) break;
      text += word(form[1], name, value);
      form.remove_prefix(3);
    }
    return text;
  }

  std::string_view word(char slot, std::string_view name, std::string_view value) {
    switch (slot) {
      case 'n':
        return name.empty() ? random_.of(vocabulary_.names) : name;
      case 'v':
        return value;
      case 't':
        return random_.of(vocabulary_.things);
      case 'p':
        return random_.of(vocabulary_.places);
      default:
        return random_.of(vocabulary_.adjectives);
    }
  }

  const Vocabulary& vocabulary_;
  Random random_;
  std::size_t turns_;
  std::vector<Told> untold_, told_;
  Conversation conversation_;
};

}  // namespace

std::vector<Conversation> generate(const GeneratorOptions& options) {
  std::vector<Conversation> conversations;
  for (std::size_t i = 0; i < options.conversations; ++i) {
    const Vocabulary& vocabulary = i % 2 == 0 ? english() : chinese();
    conversations.push_back(Writer(vocabulary, options.seed * 1000003 + i, options.turns).write());
  }
  return conversations;
}

}  // namespace bench
