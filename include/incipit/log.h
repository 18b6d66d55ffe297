// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_LOG_H_
#define INCIPIT_LOG_H_

#include <functional>
#include <string_view>

namespace incipit::inline v0 {

/// How much a message matters.
enum class LogLevel { kDebug, kInfo, kWarning, kError };

/// Receives what an object has to say; given in its options, so that two users in one process do
/// not share it. Without one, incipit is silent. May be called from any incipit thread; must not
/// throw. Prompts and generated text are never logged.
using LogSink = std::function<void(LogLevel level, std::string_view message)>;

}  // namespace incipit::inline v0

#endif  // INCIPIT_LOG_H_
