// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_RETRIEVE_TERMS_H_
#define INCIPIT_RETRIEVE_TERMS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "text/segmentation.h"

namespace incipit::retrieve {

/// Calls `take` with the hash of each term of `text`, in order, repetitions included. Terms are
/// words in lower case without a possessive 's; of scripts that are written without spaces, each
/// pair of neighbouring characters, or a character that has no neighbour. Full-width forms equal
/// ASCII. O(length).
void for_each_term(std::string_view text, base::FunctionRef<void(std::uint64_t term)> take);

/// Calls `see`, too, with each word that terms are made of.
void for_each_term(std::string_view text, base::FunctionRef<void(std::uint64_t term)> take,
                   base::FunctionRef<void(const text::Word& word)> see);

/// The same as a list.
std::vector<std::uint64_t> terms_of(std::string_view text);

}  // namespace incipit::retrieve

#endif  // INCIPIT_RETRIEVE_TERMS_H_
