// SPDX-License-Identifier: Apache-2.0
#include "support/reference_model.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include "model/safetensors.h"
#include "tensor/dtype.h"

namespace incipit::test {
namespace {

// Row-major.
struct Rows {
  Rows(std::size_t row_count, std::size_t column_count)
      : rows(row_count), columns(column_count), values(row_count * column_count) {}

  std::span<double> row(std::size_t i) { return std::span(values).subspan(i * columns, columns); }
  std::span<const double> row(std::size_t i) const {
    return std::span(values).subspan(i * columns, columns);
  }

  std::size_t rows, columns;
  std::vector<double> values;
};

double dot(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// x W^T for W [outputs, x.columns].
Rows product(const Rows& x, const std::vector<float>& weight) {
  const std::vector<double> w(weight.begin(), weight.end());
  Rows out(x.rows, w.size() / x.columns);
  for (std::size_t i = 0; i < x.rows; ++i) {
    for (std::size_t j = 0; j < out.columns; ++j) {
      out.row(i)[j] = dot(x.row(i), std::span(w).subspan(j * x.columns, x.columns));
    }
  }
  return out;
}

void add_to_rows(Rows& x, const std::vector<float>& bias) {
  for (std::size_t i = 0; i < x.values.size(); ++i)
    x.values[i] += static_cast<double>(bias[i % x.columns]);
}

void add(Rows& x, const Rows& y) {
  for (std::size_t i = 0; i < x.values.size(); ++i) x.values[i] += y.values[i];
}

// RMSNorm of each run of weight.size() values: a row, or a head of it.
Rows normalised(Rows x, const std::vector<float>& weight, float epsilon) {
  for (std::size_t begin = 0; begin < x.values.size(); begin += weight.size()) {
    const auto part = std::span(x.values).subspan(begin, weight.size());
    const double mean_square = dot(part, part) / static_cast<double>(part.size());
    const double scale = 1.0 / std::sqrt(mean_square + static_cast<double>(epsilon));
    for (std::size_t i = 0; i < part.size(); ++i) part[i] *= scale * static_cast<double>(weight[i]);
  }
  return x;
}

// Turns pair i of each head of row p by p * frequencies[i].
void rotate(Rows& x, const model::ModelConfig& config) {
  const bool halves = config.rope_pairs == device::RopePairs::kHalves;
  for (std::size_t begin = 0; begin < x.values.size(); begin += config.head_dim) {
    const auto position = static_cast<double>(begin / x.columns);
    const auto head = std::span(x.values).subspan(begin, config.head_dim);
    for (std::size_t i = 0; i < config.rope_frequencies.size(); ++i) {
      double& a = head[halves ? i : 2 * i];
      double& b = head[halves ? i + config.rope_frequencies.size() : 2 * i + 1];
      const double angle = position * static_cast<double>(config.rope_frequencies[i]);
      const double turned = a * std::cos(angle) - b * std::sin(angle);
      b = a * std::sin(angle) + b * std::cos(angle);
      a = turned;
    }
  }
}

void softmax(std::span<double> scores) {
  const double largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0.0;
  for (double& score : scores) sum += score = std::exp(score - largest);
  for (double& score : scores) score /= sum;
}

// Causal, over the last `window` keys in a layer that has one; query head h reads KV head h /
// (heads / kv_heads).
Rows attention(const Rows& q, const Rows& k, const Rows& v, const model::ModelConfig& config,
               std::size_t window) {
  const std::size_t dim = config.head_dim;
  const double scale = 1.0 / std::sqrt(static_cast<double>(dim));
  Rows out(q.rows, q.columns);
  for (std::size_t h = 0; h < config.heads; ++h) {
    const std::size_t kv = h / (config.heads / config.kv_heads) * dim;
    for (std::size_t i = 0; i < q.rows; ++i) {
      const std::size_t first = window > 0 && window <= i ? i + 1 - window : 0;
      std::vector<double> weights(i + 1, -std::numeric_limits<double>::infinity());
      for (std::size_t j = first; j <= i; ++j) {
        weights[j] = scale * dot(q.row(i).subspan(h * dim, dim), k.row(j).subspan(kv, dim));
      }
      softmax(weights);
      const auto result = out.row(i).subspan(h * dim, dim);
      for (std::size_t j = 0; j <= i; ++j) {
        for (std::size_t d = 0; d < dim; ++d) result[d] += weights[j] * v.row(j)[kv + d];
      }
    }
  }
  return out;
}

class Reference {
 public:
  Reference(const model::ModelConfig& config, const ModelTensors& tensors)
      : config_(config), tensors_(tensors) {}

  Rows logits(std::span<const TokenId> ids) const {
    Rows x = embed(ids);
    for (std::size_t layer = 0; layer < config_.layers; ++layer) {
      const std::string prefix = "model.layers." + std::to_string(layer) + '.';
      add(x, attention_branch(prefix, x, config_.window_of(layer)));
      add(x, ffn_branch(prefix, x));
    }
    return product(norm(x, "model.norm"),
                   weight(config_.tied_output ? "model.embed_tokens" : "lm_head"));
  }

 private:
  const std::vector<float>& weight(const std::string& name) const {
    return tensors_.at(name + ".weight");
  }

  Rows norm(const Rows& x, const std::string& name) const {
    return normalised(x, weight(name), config_.norm_epsilon);
  }

  Rows embed(std::span<const TokenId> ids) const {
    Rows x(ids.size(), config_.width);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const auto row = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(ids[i]) * x.columns);
      std::copy_n(weight("model.embed_tokens").begin() + row, x.columns, x.row(i).begin());
    }
    return x;
  }

  // q, k or v.
  Rows project(const Rows& h, const std::string& name) const {
    Rows out = product(h, weight(name + "_proj"));
    if (config_.qkv_bias) add_to_rows(out, tensors_.at(name + "_proj.bias"));
    return out;
  }

  Rows attention_branch(const std::string& prefix, const Rows& x, std::size_t window) const {
    const Rows h = norm(x, prefix + "input_layernorm");
    Rows q = project(h, prefix + "self_attn.q");
    Rows k = project(h, prefix + "self_attn.k");
    const Rows v = project(h, prefix + "self_attn.v");
    if (config_.qk_norm) {
      q = norm(q, prefix + "self_attn.q_norm");
      k = norm(k, prefix + "self_attn.k_norm");
    }
    rotate(q, config_);
    rotate(k, config_);
    return product(attention(q, k, v, config_, window), weight(prefix + "self_attn.o_proj"));
  }

  Rows ffn_branch(const std::string& prefix, const Rows& x) const {
    const Rows h = norm(x, prefix + "post_attention_layernorm");
    Rows gate = product(h, weight(prefix + "mlp.gate_proj"));
    const Rows up = product(h, weight(prefix + "mlp.up_proj"));
    for (std::size_t i = 0; i < gate.values.size(); ++i) {
      const double z = gate.values[i];
      gate.values[i] = z / (1.0 + std::exp(-z)) * up.values[i];
    }
    return product(gate, weight(prefix + "mlp.down_proj"));
  }

  const model::ModelConfig& config_;
  const ModelTensors& tensors_;
};

}  // namespace

ModelTensors read_tensors(const std::filesystem::path& directory) {
  const model::TensorSource source = model::open_safetensors(directory);
  ModelTensors tensors;
  for (const model::TensorInfo& info : source.tensors()) {
    std::vector<std::byte> bytes(info.bytes);
    source.read(info, 0, bytes);
    std::vector<float> values(bytes.size() / tensor::block_bytes(info.type));
    tensor::dequantize_row(info.type, bytes.data(), values);
    tensors.emplace(info.name, std::move(values));
  }
  return tensors;
}

std::vector<std::vector<double>> reference_logits(const model::ModelConfig& config,
                                                  const ModelTensors& tensors,
                                                  std::span<const TokenId> ids) {
  const Rows logits = Reference(config, tensors).logits(ids);
  std::vector<std::vector<double>> rows;
  for (std::size_t i = 0; i < logits.rows; ++i) {
    rows.emplace_back(logits.row(i).begin(), logits.row(i).end());
  }
  return rows;
}

}  // namespace incipit::test
