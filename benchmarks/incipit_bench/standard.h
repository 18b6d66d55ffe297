// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BENCHMARKS_INCIPIT_BENCH_STANDARD_H_
#define INCIPIT_BENCHMARKS_INCIPIT_BENCH_STANDARD_H_

#include <incipit/engine.h>

#include <string>
#include <string_view>
#include <vector>

#include "report.h"

namespace bench {

// The standard workload, which drivers of other programs run too (benchmarks/peers): one long
// document, and what is asked about it.

/// All its texts. A prompt is one of them, or the document with one of the questions behind it.
struct StandardTexts {
  std::string document = {};
  std::string warm_up = {}, story = {};
  std::vector<std::string> short_prompts = {};  // the front of the document, each begun otherwise
  std::vector<std::string> openings = {};       // put in front of the document, to find no cache
  std::vector<std::string> long_questions = {}, short_questions = {};
};

StandardTexts standard_texts(std::string_view document);

/// As the drivers read it.
Json to_json(const StandardTexts& texts);

/// One metric per key of the workload.
std::vector<Metric> measure_standard(incipit::Engine& engine, const Yardstick& yardstick,
                                     const StandardTexts& texts);

}  // namespace bench

#endif  // INCIPIT_BENCHMARKS_INCIPIT_BENCH_STANDARD_H_
