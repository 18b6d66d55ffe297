// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer_json_steps.h"

#include <array>
#include <string_view>
#include <utility>

#include "text/pre_token_pattern.h"
#include "text/replace.h"
#include "text/utf8.h"

namespace incipit::text {
namespace {

using Kind = NormalizerStep::Kind;

constexpr std::size_t kMaxNested = 16;  // parts of a Sequence

/// The steps of a Sequence, or the one that there is. A Sequence in a Sequence is left as it is.
std::vector<const Json*> steps_of(const Json& step, const char* list) {
  if (string_at(step, "type") != "Sequence") return {&step};
  std::vector<const Json*> steps;
  for (const Json& part : array_at(step, list)) steps.push_back(&part);
  if (steps.size() > kMaxNested) fail_unsupported_json("a Sequence of so many parts");
  return steps;
}

std::string pattern_at(const Json& step, const char* kind) {
  const Json* pattern = find(step, "pattern");
  return pattern == nullptr ? std::string() : string_at(*pattern, kind);
}

void read_replace(const Json& step, TokenizerSpec& spec) {
  const std::string text = pattern_at(step, "String"), by = string_at(step, "content");
  if (!text.empty()) {
    spec.normalizer.push_back({Kind::kReplace, text, by});
  } else if (pattern_at(step, "Regex") == " {2,}") {
    spec.normalizer.push_back({Kind::kReplaceSpaceRuns, {}, by});
  } else {
    fail_unsupported_json("the normalizer " + excerpt(step));
  }
}

void read_normalizer_step(const Json& step, TokenizerSpec& spec) {
  constexpr auto kPlain = std::to_array<std::pair<std::string_view, Kind>>({
      {"NFC", Kind::kNfc},
      {"NFD", Kind::kNfd},
      {"NFKC", Kind::kNfkc},
      {"NFKD", Kind::kNfkd},
      {"Lowercase", Kind::kLowerCase},
      {"StripAccents", Kind::kStripAccents},
  });
  const std::string type = string_at(step, "type");
  for (const auto& [name, kind] : kPlain) {
    if (type == name) return spec.normalizer.push_back({kind, {}, {}});
  }
  if (type == "Replace") return read_replace(step, spec);
  if (type == "Prepend") {
    return spec.normalizer.push_back({Kind::kPrepend, {}, string_at(step, "prepend")});
  }
  if (type == "Strip") {
    if (bool_at(step, "strip_left", true)) spec.normalizer.push_back({Kind::kStripLeft, {}, {}});
    if (bool_at(step, "strip_right", true)) spec.normalizer.push_back({Kind::kStripRight, {}, {}});
    return;
  }
  fail_unsupported_json("the normalizer " + excerpt(step));
}

bool is_byte_level(const Json& step, bool use_regex) {
  return string_at(step, "type") == "ByteLevel" && bool_at(step, "use_regex", true) == use_regex;
}

bool adds_space(const Json& step) { return bool_at(step, "add_prefix_space", true); }

/// Cuts by the expression of `kind` and loses nothing: its matches and what is between them, or, as
/// there is nothing between them, the matches only.
bool is_split_by(const Json& step, PreTokenizer kind) {
  const std::string behavior = string_at(step, "behavior");
  const bool invert = bool_at(step, "invert", false);
  const bool keeps = (behavior == "Isolated" && !invert) ||
                     (behavior == "Removed" && invert && kind != PreTokenizer::kBloom);
  return string_at(step, "type") == "Split" && keeps &&
         pattern_at(step, "Regex") == published_regex(kind);
}

/// The id of a token of a template.
TokenId template_token(const Json& processor, const std::string& name) {
  const Json* specials = find(processor, "special_tokens");
  const Json* special = specials == nullptr ? nullptr : find(*specials, name.c_str());
  if (special == nullptr) fail_json("has a template with an unknown token \"" + name + "\"");
  const Json& ids = array_at(*special, "ids");
  if (ids.size() != 1) fail_unsupported_json("a template token \"" + name + "\" of several ids");
  return id_of(ids[0], name);
}

/// A template that puts one special token in front of the text, one behind it, or none.
void read_template(const Json& processor, TokenizerSpec& spec) {
  const Json& single = array_at(processor, "single");
  bool text_seen = false;
  for (const Json& part : single) {
    const Json* token = find(part, "SpecialToken");
    const Json* sequence = find(part, "Sequence");
    bool& there = text_seen ? spec.add_eos : spec.add_bos;
    if (token != nullptr && !there) {
      (text_seen ? spec.eos : spec.bos) = template_token(processor, string_at(*token, "id"));
      there = true;
    } else if (sequence != nullptr && !text_seen && string_at(*sequence, "id") == "A") {
      text_seen = true;
    } else {
      fail_unsupported_json("the post_processor template " + excerpt(single));
    }
  }
  if (!text_seen) fail_unsupported_json("the post_processor template " + excerpt(single));
}

/// The character that stands for a space; Hugging Face reads no longer text there.
std::string replacement_at(const Json& metaspace) {
  std::string mark = string_at(metaspace, "replacement");
  if (!is_one_character(mark)) {
    fail_unsupported_json("a Metaspace whose replacement is not one character: " +
                          excerpt(metaspace));
  }
  return mark;
}

/// What the tokens of a decoder write for a space; one only.
void set_space(const std::string& space, TokenizerSpec& spec) {
  if (space.empty() || !spec.space.empty()) fail_unsupported_json("such a decoder");
  spec.space = space;
}

void read_strip(const Json& step, TokenizerSpec& spec) {
  const Json* start = find(step, "start");
  const Json* stop = find(step, "stop");
  const bool plain = string_at(step, "content") == " " && (stop == nullptr || *stop == 0) &&
                     start != nullptr && (*start == 0 || *start == 1);
  if (!plain) fail_unsupported_json("the decoder " + excerpt(step));
  spec.strip_space = *start == 1;
}

/// Whether a Metaspace puts its mark in front of a text, and the name of the way if so. Old files
/// have a flag.
std::string prepend_scheme(const Json& metaspace) {
  const std::string scheme = string_at(metaspace, "prepend_scheme");
  if (!scheme.empty()) return scheme;
  return bool_at(metaspace, "add_prefix_space", true) ? "always" : "never";
}

void read_metaspace(const Json& step, TokenizerSpec& spec) {
  const std::string mark = replacement_at(step), scheme = prepend_scheme(step);
  if (scheme != "always" && scheme != "first" && scheme != "never") {
    fail_unsupported_json("the pre_tokenizer " + excerpt(step));
  }
  spec.spacing.push_back({Kind::kReplace, " ", mark});
  if (scheme != "never") spec.spacing.push_back({Kind::kPrependMissing, {}, mark});
  spec.spacing_at_begin_only = scheme == "first";
  if (bool_at(step, "split", true)) spec.split_before = mark;
}

/// True where the normaliser leaves no space for a pre_tokenizer to see.
bool replaces_spaces(const TokenizerSpec& spec) {
  return !spec.normalizer.empty() && spec.normalizer.back().kind == Kind::kReplace &&
         spec.normalizer.back().text == " " &&
         spec.normalizer.back().by.find(' ') == std::string::npos;
}

}  // namespace

bool is_byte_level_pre_tokenizer(const Json* pre_tokenizer) {
  if (pre_tokenizer == nullptr) return false;
  for (const Json* step : steps_of(*pre_tokenizer, "pretokenizers")) {
    if (string_at(*step, "type") == "ByteLevel") return true;
  }
  return false;
}

void read_normalizer(const Json& normalizer, TokenizerSpec& spec) {
  const std::vector<const Json*> steps = steps_of(normalizer, "normalizers");
  if (steps.size() == 1 && string_at(*steps[0], "type") == "NFC") {
    spec.normalize_nfc = true;
    return;
  }
  for (const Json* step : steps) read_normalizer_step(*step, spec);
}

void read_byte_level_pre_tokenizer(const Json& pre_tokenizer, TokenizerSpec& spec) {
  const std::vector<const Json*> steps = steps_of(pre_tokenizer, "pretokenizers");
  if (steps.size() == 1 && is_byte_level(*steps[0], /*use_regex=*/true)) {
    spec.pre = PreTokenizer::kGpt2;
    if (adds_space(*steps[0])) spec.spacing.push_back({Kind::kPrependMissing, {}, " "});
    return;
  }
  if (steps.size() == 2 && !adds_space(*steps[1])) {
    if (string_at(*steps[0], "type") == "Digits" && is_byte_level(*steps[1], true) &&
        bool_at(*steps[0], "individual_digits", false)) {
      spec.pre = PreTokenizer::kSmolLm;
      return;
    }
    for (const PreTokenizer kind :
         {PreTokenizer::kGpt2, PreTokenizer::kLlama3, PreTokenizer::kQwen2, PreTokenizer::kBloom,
          PreTokenizer::kTekken}) {
      if (is_byte_level(*steps[1], /*use_regex=*/false) && is_split_by(*steps[0], kind)) {
        spec.pre = kind;
        return;
      }
    }
  }
  fail_unsupported_json("the pre_tokenizer " + excerpt(pre_tokenizer));
}

void read_pre_tokenizer(const Json& pre_tokenizer, TokenizerSpec& spec) {
  const std::vector<const Json*> steps = steps_of(pre_tokenizer, "pretokenizers");
  const auto type_of = [&](std::size_t i) { return string_at(*steps[i], "type"); };
  if (steps.size() == 1 && type_of(0) == "Metaspace") return read_metaspace(*steps[0], spec);
  if (steps.size() == 2 && type_of(0) == "WhitespaceSplit" && type_of(1) == "Metaspace" &&
      prepend_scheme(*steps[1]) == "always") {
    // Without the marks, nothing would tell the words apart.
    if (!bool_at(*steps[1], "split", true)) {
      fail_unsupported_json("a WhitespaceSplit before a Metaspace that does not split: " +
                            excerpt(pre_tokenizer));
    }
    read_metaspace(*steps[1], spec);
    spec.spacing = {{Kind::kMarkWords, {}, replacement_at(*steps[1])}};
    return;
  }
  // Gemma's: it cuts at spaces, of which its normaliser leaves none.
  if (steps.size() == 1 && type_of(0) == "Split" && pattern_at(*steps[0], "String") == " " &&
      replaces_spaces(spec)) {
    return;
  }
  fail_unsupported_json("the pre_tokenizer " + excerpt(pre_tokenizer));
}

void read_post_processor(const Json& processor, TokenizerSpec& spec) {
  for (const Json* step : steps_of(processor, "processors")) {
    const std::string type = string_at(*step, "type");
    if (type == "ByteLevel") continue;  // concerns offsets, not ids
    if (type != "TemplateProcessing" || spec.add_bos || spec.add_eos) {
      fail_unsupported_json("the post_processor " + excerpt(*step));
    }
    read_template(*step, spec);
  }
}

void read_decoder(const Json& decoder, TokenizerSpec& spec) {
  bool fused = false;
  for (const Json* step : steps_of(decoder, "decoders")) {
    const std::string type = string_at(*step, "type");
    if (type == "Metaspace") {
      set_space(replacement_at(*step), spec);
      spec.strip_space = prepend_scheme(*step) != "never";
    } else if (type == "Replace" && string_at(*step, "content") == " ") {
      set_space(pattern_at(*step, "String"), spec);
    } else if (type == "Strip" && fused) {
      read_strip(*step, spec);
    } else if (type == "Fuse") {
      fused = true;
    } else if (type != "ByteFallback") {
      fail_unsupported_json("the decoder " + excerpt(*step));
    }
  }
}

}  // namespace incipit::text
