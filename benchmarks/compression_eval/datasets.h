// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BENCHMARKS_COMPRESSION_EVAL_DATASETS_H_
#define INCIPIT_BENCHMARKS_COMPRESSION_EVAL_DATASETS_H_

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "conversation.h"

namespace bench {

inline constexpr std::array<std::string_view, 5> kDatasets{"json", "tau-bench", "qmsum",
                                                           "mt-bench-101", "crosswoz"};

/// Reads a file in the format of a data set. Of public ones that are:
/// - tau-bench: trajectories with tool calls and results. No questions.
/// - qmsum: meetings, what is said by user and assistant in turns. Questions and evidence are
/// QMSum's.
/// - mt-bench-101: 40 dialogues, one after the other, make a conversation. No questions.
/// - crosswoz: 20 dialogues make a conversation. At its end the slots that the system told are
///   asked for, by the name of the place; the evidence is the turn that told them.
/// Throws std::runtime_error for anything else.
std::vector<Conversation> read_dataset(std::string_view dataset, const std::string& path);

}  // namespace bench

#endif  // INCIPIT_BENCHMARKS_COMPRESSION_EVAL_DATASETS_H_
