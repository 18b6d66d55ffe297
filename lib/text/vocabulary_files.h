// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_VOCABULARY_FILES_H_
#define INCIPIT_TEXT_VOCABULARY_FILES_H_

#include <string>
#include <string_view>

#include "text/tokenizer.h"

namespace incipit::text {

/// The texts of the files that a directory without tokenizer.json has for a byte-level BPE
/// tokenizer; empty where a file is not there.
struct VocabularyFiles {
  std::string vocabulary = {};          // vocab.json: tokens with their ids
  std::string merges = {};              // merges.txt: one to a line
  std::string added_tokens = {};        // added_tokens.json: tokens with their ids
  std::string special_tokens_map = {};  // special_tokens_map.json: the special ones
  std::string tokenizer_config = {};    // tokenizer_config.json: more of both
  std::string model_type = {};          // of config.json; names the kind where no file does
};

/// The tokenizer that transformers makes of them: GPT-2's (OPT has it, too) or Qwen 2's. Throws
/// Error{kModelUnreadable} that names what is damaged or not supported.
TokenizerSpec parse_vocabulary_files(const VocabularyFiles& files);

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_VOCABULARY_FILES_H_
