// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_COMPRESS_INVARIANTS_H_
#define INCIPIT_TESTS_COMPRESS_INVARIANTS_H_

#include <span>
#include <string>
#include <vector>

#include "incipit/compressor.h"

namespace incipit::test {

std::size_t tokens_of(std::span<const Message> messages, const TokenCounter& counter);
bool same_message(const Message& a, const Message& b);
bool same_messages(std::span<const Message> a, std::span<const Message> b);
/// The messages that the Compressor has put in: frozen segments, summaries, evidence.
bool is_made(const Message& message);
/// All texts of the prompt that the Compressor made, as one.
std::string made_text(const CompressedPrompt& prompt);

/// The first promise of a prompt that is broken, in words; empty where all are kept. `input` is the
/// whole conversation.
std::string broken_promise(std::span<const Message> input, const CompressedPrompt& prompt,
                           const CompressorOptions& options, const TokenCounter& counter);

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_COMPRESS_INVARIANTS_H_
