// SPDX-License-Identifier: Apache-2.0
#include <greeter.h>

int main() {
  return host::open_model("there/is/no/such/model.gguf") == incipit::ErrorCode::kModelUnreadable
             ? 0
             : 1;
}
