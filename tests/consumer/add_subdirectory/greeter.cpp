// SPDX-License-Identifier: Apache-2.0
#include "greeter.h"

#include <incipit/engine.h>

namespace host {

incipit::ErrorCode open_model(const char* path) {
  try {
    incipit::Engine engine({.model = path});
  } catch (const incipit::Error& error) {
    return error.code();
  }
  return incipit::ErrorCode::kInternal;
}

}  // namespace host
