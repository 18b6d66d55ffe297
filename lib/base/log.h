// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BASE_LOG_H_
#define INCIPIT_BASE_LOG_H_

#include <string_view>
#include <utility>

#include "incipit/log.h"

namespace incipit::base {

/// A host's log sink, which may be missing or throw: neither is ever noticed by who logs.
class Log {
 public:
  explicit Log(LogSink sink = {}) : sink_(std::move(sink)) {}

  /// False where a message would go nowhere, so that it need not be made.
  explicit operator bool() const noexcept { return static_cast<bool>(sink_); }

  void debug(std::string_view message) const noexcept { write(LogLevel::kDebug, message); }
  void info(std::string_view message) const noexcept { write(LogLevel::kInfo, message); }
  void warning(std::string_view message) const noexcept { write(LogLevel::kWarning, message); }
  void error(std::string_view message) const noexcept { write(LogLevel::kError, message); }

 private:
  void write(LogLevel level, std::string_view message) const noexcept {
    if (!sink_) return;
    try {
      sink_(level, message);
    } catch (...) {  // A log line is never worth a request.
    }
  }

  LogSink sink_;
};

}  // namespace incipit::base

#endif  // INCIPIT_BASE_LOG_H_
