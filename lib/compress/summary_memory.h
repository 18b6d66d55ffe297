// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_COMPRESS_SUMMARY_MEMORY_H_
#define INCIPIT_COMPRESS_SUMMARY_MEMORY_H_

#include "incipit/message.h"

namespace incipit::compress {

/// The same, but asks once for the same summary: planning a prompt, perhaps several times, and then
/// applying it costs no more than applying it, and gives the same. Says nothing where the given one
/// throws, also when it is asked again. Empty for an empty one.
Summarizer remembering(Summarizer summarizer);

}  // namespace incipit::compress

#endif  // INCIPIT_COMPRESS_SUMMARY_MEMORY_H_
