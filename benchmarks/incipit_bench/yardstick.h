// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BENCHMARKS_INCIPIT_BENCH_YARDSTICK_H_
#define INCIPIT_BENCHMARKS_INCIPIT_BENCH_YARDSTICK_H_

#include <optional>

#include "machine_limits.h"
#include "model_shape.h"

namespace bench {

/// What a time is compared with: the least that the machine could take for the same work. Nothing
/// where the machine's limits were not measured or the model's shape is not known.
struct Yardstick {
  std::optional<MachineLimits> limits = {};
  std::optional<ModelShape> shape = {};
  double kv_bytes_per_token = 0;

  /// A step of decoding reads all weights, and the KV of each token that some row of it sees:
  ///
  ///     fraction = (steps * weight bytes + kv_tokens * KV bytes per token) / seconds / bandwidth
  ///
  /// `kv_tokens` is summed over the steps; a token of a shared prefix counts once a step.
  std::optional<double> decode_fraction(double steps, double kv_tokens, double seconds) const;

  /// A prompt costs the products of each of its tokens, and attention:
  ///
  ///     fraction = flops / seconds / the higher peak of BF16 dot products and f32
  ///     flops = 2 * parameters of the layers * tokens + 2 * those of the output matrix
  ///           + 4 * layers * heads * head_dim * pairs of a token and one that it sees
  ///
  /// for `prompts` of `tokens` tokens each, behind `cached` ones that are in the cache.
  std::optional<double> prefill_fraction(double prompts, double tokens, double cached,
                                         double seconds) const;
};

/// Tokens of KV that `samples` texts read behind `prefix` tokens, which count once, summed over the
/// `steps` that make the second to the last token of each.
inline double kv_tokens_read(double steps, double prefix, double samples) noexcept {
  return steps * prefix + samples * steps * (steps + 1) / 2;
}

}  // namespace bench

#endif  // INCIPIT_BENCHMARKS_INCIPIT_BENCH_YARDSTICK_H_
