// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_MODEL_TRANSFORMER_H_
#define INCIPIT_MODEL_TRANSFORMER_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "device/device.h"
#include "incipit/sampling.h"
#include "model/config.h"
#include "model/weights.h"

namespace incipit::model {

/// One ragged batch: some consecutive rows of each of several sequences.
struct ForwardBatch {
  std::span<const TokenId> ids = {};                     // [rows], sequence after sequence
  std::span<const device::SequenceRows> sequences = {};  // their rows add up to `rows`
  std::span<const std::uint32_t> logit_rows = {};        // ascending batch rows of wanted logits
};

/// The forward pass of every family, written once over the device seam; what differs is data in the
/// config. K and V are written to the pool first and read from the pool by attention, by the rows
/// that wrote them too.
///
/// Not thread-safe: it owns the scratch memory of one step.
class Transformer {
 public:
  /// The device must outlive it.
  Transformer(device::Device& device, ModelConfig config, ModelWeights weights);

  const ModelConfig& config() const noexcept { return config_; }
  const ModelWeights& weights() const noexcept { return weights_; }
  device::Device& device() const noexcept { return device_; }

  /// Hears of the logits in host memory, slice by slice: those of logit_rows[first],
  /// logit_rows[first + 1], ...; [slice, vocabulary].
  using LogitsSink = std::function<void(std::size_t first, tensor::ConstMatrix logits)>;

  /// Runs the batch. Every block table covers its rows. Scratch grows with the batch's rows.
  void forward(const device::KvPoolView& pool, const ForwardBatch& batch, const LogitsSink& sink);

 private:
  class Step;

  // Views of the first `rows` rows of the scratch matrices.
  struct Scratch {
    tensor::Matrix x, h;      // [rows, width] residual stream, branch
    tensor::Matrix embedded;  // [rows, embedding width] before it is led to width, if it is
    tensor::Matrix q, k, v;   // [rows, heads|kv_heads * head_dim]
    tensor::Matrix attended;  // [rows, heads * head_dim]
    tensor::Matrix gate, up;  // [rows, ffn_width]
    tensor::Matrix angles;    // [rows, 2 * rope half]
    // Those of layers with a window, where they have frequencies of their own.
    tensor::Matrix local_angles;
    // What of x and angles the last layer goes on with.
    tensor::Matrix tail_x, tail_angles;
  };
  Scratch scratch(std::size_t rows);
  void place_rows(const ForwardBatch& batch);
  void prepare_angles(const Scratch& s);
  void plan_attention(std::span<const device::SequenceRows> sequences);
  void embed(std::span<const TokenId> ids, const Scratch& s);
  void keep_tails(const ForwardBatch& batch);
  void whole_layer(const device::KvPoolView& pool, std::size_t layer, const Scratch& s);
  Scratch last_layer(const device::KvPoolView& pool, const Scratch& s);
  bool has_local_angles() const noexcept { return !config_.local_rope_frequencies.empty(); }
  tensor::Matrix angles_of(std::size_t layer, const Scratch& s) const noexcept {
    return config_.has_local_rope(layer) ? s.local_angles : s.angles;
  }
  // What a branch reads: the stream, or in the common case the norm of it, which is written to h.
  tensor::ConstMatrix branch_input(const NormWeights& norm, const Scratch& s);
  // The branch in h goes into the stream.
  void end_branch(const NormWeights& norm, const NormWeights& after, const Scratch& s);
  void normalise(tensor::ConstMatrix x, const NormWeights& norm, tensor::Matrix out);
  void normalise_heads(tensor::Matrix x, const NormWeights& norm);
  void turn(std::size_t layer, tensor::Matrix x, const Scratch& s);
  void turn_queries(std::size_t layer, const Scratch& s);
  void write_keys(const device::KvPoolView& pool, std::size_t layer, const Scratch& s);
  void attend(const device::KvPoolView& pool, std::size_t layer, const device::AttentionPlan& plan,
              const Scratch& s);
  void ffn_branch(const LayerWeights& layer, const Scratch& s);
  void output_logits(Step& step, std::span<const std::uint32_t> wanted, tensor::ConstMatrix x,
                     const LogitsSink& sink);
  void project_logits(tensor::Matrix state, tensor::Matrix projected, tensor::Matrix logits);
  tensor::ConstMatrix on_host(tensor::ConstMatrix logits);

  device::Device& device_;
  const ModelConfig config_;
  const ModelWeights weights_;
  float attention_scale_ = 1.0f;
  bool any_whole_layer_ = false, any_windowed_layer_ = false;
  device::Buffer alibi_slopes_;   // [heads], or none
  device::Buffer memory_;         // scratch for capacity_ rows
  std::size_t capacity_ = 0;      // rows
  device::Buffer logits_memory_;  // one slice: final states, then logits

  // Of the batch that runs, by row.
  std::vector<std::uint32_t> positions_;
  std::vector<std::int32_t> position_rows_;  // of the table of learned positions
  std::vector<device::KvSlot> slots_;
  std::vector<float> host_angles_;                    // the next to be uploaded
  std::vector<float> host_logits_;                    // of one slice; grows
  device::AttentionPlan whole_plan_, windowed_plan_;  // of layers that see all keys, of the others
  // What the last layer goes on with: of each sequence the rows from its first logit row on.
  std::vector<std::uint32_t> tail_rows_;              // batch rows
  std::vector<device::SequenceRows> tail_sequences_;  // likewise
  std::vector<std::uint32_t> tail_logit_rows_;        // indices into tail_rows_
  device::AttentionPlan tail_plan_;                   // of the last layer
};

}  // namespace incipit::model

#endif  // INCIPIT_MODEL_TRANSFORMER_H_
