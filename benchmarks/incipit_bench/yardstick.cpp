// SPDX-License-Identifier: Apache-2.0
#include "yardstick.h"

namespace bench {

std::optional<double> Yardstick::decode_fraction(double steps, double kv_tokens,
                                                 double seconds) const {
  if (!limits || !shape) return std::nullopt;
  const double bytes = steps * shape->weight_bytes + kv_tokens * kv_bytes_per_token;
  return bytes / seconds / limits->memory_bytes;
}

std::optional<double> Yardstick::prefill_fraction(double prompts, double tokens, double cached,
                                                  double seconds) const {
  if (!limits || !shape) return std::nullopt;
  const double pairs = tokens * cached + tokens * (tokens + 1) / 2;
  const double flops = 2 * shape->layer_parameters * tokens + 2 * shape->output_parameters +
                       4 * shape->attention_width * pairs;
  return prompts * flops / seconds / limits->prefill_flops();
}

}  // namespace bench
