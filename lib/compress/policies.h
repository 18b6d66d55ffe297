// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_COMPRESS_POLICIES_H_
#define INCIPIT_COMPRESS_POLICIES_H_

#include "compress/draft.h"

namespace incipit::compress {

/// A part, 0 to 1, of a number of tokens.
inline std::size_t share(double part, std::size_t whole) {
  return part < 1 ? static_cast<std::size_t>(part * static_cast<double>(whole)) : whole;
}

/// The last unit where results of its calls are still to come, else the end: such a unit stays as
/// it is, or they would have no place.
std::size_t open_unit(const View& view);

/// Makes the draft fit the budget as its options say. Throws Error{kBudgetInfeasible} where it
/// cannot.
void make_it_fit(Draft& draft);

// The policies. They leave a draft that cannot fit as small as they can make it.
void fit_window(Draft& draft, std::size_t first);
void fit_summary(Draft& draft);
void fit_frozen(Draft& draft);

/// What the last user turn needs of the messages that segments stand for, or of those in front of
/// `end`, in at most `max_tokens`.
Evidence recall(const Draft& draft, std::size_t end, std::size_t max_tokens);

}  // namespace incipit::compress

#endif  // INCIPIT_COMPRESS_POLICIES_H_
