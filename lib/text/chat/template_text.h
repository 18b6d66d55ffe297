// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_CHAT_TEMPLATE_TEXT_H_
#define INCIPIT_TEXT_CHAT_TEMPLATE_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

namespace incipit::text {

/// A chat template as a text to find marks in. Nothing of it is executed.
class TemplateText {
 public:
  explicit TemplateText(std::string_view chat_template);

  /// The code with its freedoms of writing taken out: spaces outside string literals, double quotes
  /// for single ones, message['x'] for message.x, line ends in literals written as such.
  const std::string& code() const noexcept { return code_; }
  bool has(std::string_view part) const { return code_.find(part) != std::string::npos; }

  /// The values of all string literals, in order.
  const std::vector<std::string>& literals() const noexcept { return literals_; }
  /// The first literal that contains `part`; empty: none.
  std::string literal(std::string_view part) const;

 private:
  std::string code_;
  std::vector<std::string> literals_;
};

/// `text` with every `from` replaced.
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_CHAT_TEMPLATE_TEXT_H_
