// SPDX-License-Identifier: Apache-2.0
#include "cuda/launch/weights.h"

#include <cstring>
#include <vector>

#include "base/check.h"
#include "cuda/kernels/embed_coded.cuh"
#include "cuda/kernels/gather_rows.cuh"
#include "cuda/kernels/pack_weight.h"
#include "cuda/kernels/product.cuh"
#include "cuda/kernels/product_f32.cuh"
#include "cuda/kernels/scale_rows.cuh"
#include "cuda/launch/rows.h"

namespace incipit::cuda {
namespace {

using tensor::ConstMatrix;
using tensor::DType;
using tensor::Matrix;

/// Elements from row to row of a plain weight of 16 bits.
std::size_t padded(std::size_t columns) { return (columns + 7) / 8 * 8; }

template <class T>
struct Plain {
  using Value = T;
};
template <class Code>
struct Coded {
  using Coding = Code;
};

/// Calls body(Plain<T>) or body(Coded<Code>).
template <class Body>
void with_kind(WeightKind kind, const Body& body) {
  switch (kind) {
    case WeightKind::kF32:
      return body(Plain<float>());
    case WeightKind::kF16:
      return body(Plain<F16>());
    case WeightKind::kBF16:
      return body(Plain<BF16>());
    case WeightKind::kQ8_0:
      return body(Coded<CodingQ8_0>());
    case WeightKind::kQ4_0:
      return body(Coded<CodingQ4_0>());
    case WeightKind::kQ4_1:
      return body(Coded<CodingQ4_1>());
    case WeightKind::kQ6_K:
      return body(Coded<CodingQ6_K>());
  }
}

void pack_f32(DType type, std::size_t columns, const std::byte* row, std::byte* to) {
  std::vector<float> values(columns);
  tensor::dequantize_row(type, row, values);
  std::memcpy(to, values.data(), columns * sizeof(float));
}

void pack_f16(DType type, std::size_t columns, const std::byte* row, std::byte* to) {
  std::vector<float> values(columns);
  tensor::dequantize_row(type, row, values);
  for (std::size_t i = 0; i < columns; ++i) {
    const std::uint16_t bits = tensor::f32_to_f16(values[i]);
    std::memcpy(to + i * sizeof bits, &bits, sizeof bits);
  }
}

template <class T>
void embed_plain(Stream stream, const WeightView& weight, const std::int32_t* ids, float scale,
                 Matrix out) {
  GatherParams<T, float> params;
  params.table = reinterpret_cast<const T*>(weight.data);
  params.table_stride = stride(sizeof(T) == 2 ? padded(weight.columns) : weight.columns);
  params.ids = ids;
  params.scale = scale;
  params.out = out.data;
  params.out_stride = stride(out.stride);
  params.rows = count(out.rows);
  params.columns = count(out.columns);
  gather_rows(stream, params);
}

template <class Code>
CodedWeight<Code> coded(const WeightView& weight) {
  return {reinterpret_cast<const unsigned char*>(weight.data), weight.outputs, weight.columns};
}

template <class T>
PlainWeight<T> plain(const WeightView& weight) {
  return {reinterpret_cast<const T*>(weight.data), stride(padded(weight.columns)), weight.outputs,
          weight.columns};
}

template <class Weight>
void multiply(Stream stream, const Weight& weight, std::size_t rows, const RoundedInput& rounded,
              const float* bias, Matrix out) {
  ProductParams<Weight> params;
  params.x = reinterpret_cast<const typename Weight::T*>(rounded.values);
  params.scales = rounded.scales;
  params.weight = weight;
  params.bias = bias;
  params.out = out.data;
  params.out_stride = stride(out.stride);
  params.rows = count(rows);
  product(stream, params);
}

void multiply_f32(Stream stream, const WeightView& weight, ConstMatrix x, const float* bias,
                  Matrix out) {
  ProductF32Params params;
  params.x = x.data;
  params.x_stride = stride(x.stride);
  params.weight = reinterpret_cast<const float*>(weight.data);
  params.bias = bias;
  params.out = out.data;
  params.out_stride = stride(out.stride);
  params.rows = count(x.rows);
  params.outputs = weight.outputs;
  params.depth = weight.columns;
  product_f32(stream, params);
}

template <class T>
void round_to(Stream stream, ConstMatrix x, const RoundedInput& out) {
  RoundRowsParams<T> params;
  params.x = x.data;
  params.x_stride = stride(x.stride);
  params.out = reinterpret_cast<T*>(out.values);
  params.scales = out.scales;
  params.rows = count(x.rows);
  params.columns = count(x.columns);
  round_rows(stream, params);
}

}  // namespace

WeightKind kind_of(DType type, bool has_bf16) noexcept {
  switch (type) {
    case DType::kF32:
      return WeightKind::kF32;
    case DType::kBF16:
      return has_bf16 ? WeightKind::kBF16 : WeightKind::kF32;
    case DType::kQ8_0:
      return WeightKind::kQ8_0;
    case DType::kQ4_0:
      return WeightKind::kQ4_0;
    case DType::kQ4_1:
    case DType::kQ4_K:
      return WeightKind::kQ4_1;
    case DType::kQ6_K:
      return WeightKind::kQ6_K;
    case DType::kF16:
    case DType::kQ5_0:
    case DType::kQ5_1:
    case DType::kQ5_K:
      break;
  }
  return WeightKind::kF16;
}

std::size_t weight_bytes(WeightKind kind, std::size_t outputs, std::size_t columns) {
  std::size_t bytes = 0;
  with_kind(kind, [&]<class Kind>(Kind) {
    if constexpr (requires { typename Kind::Coding; }) {
      bytes = CodedWeight<typename Kind::Coding>::bytes(outputs, columns);
    } else {
      constexpr std::size_t kSize = sizeof(typename Kind::Value);
      bytes = outputs * (kSize == 2 ? padded(columns) : columns) * kSize;
    }
  });
  return bytes;
}

void pack_weight(WeightKind kind, DType type, std::size_t rows, std::size_t columns,
                 base::Bytes bytes, std::span<std::byte> out) {
  INCIPIT_CHECK(out.size() == weight_bytes(kind, rows, columns));
  with_kind(kind, [&]<class Kind>(Kind) {
    if constexpr (requires { typename Kind::Coding; }) {
      pack_rows<typename Kind::Coding>(type, 0, rows, columns, bytes,
                                       {reinterpret_cast<unsigned char*>(out.data()), out.size()});
    } else {
      const std::size_t from = bytes.size() / rows, to = out.size() / rows;
      for (std::size_t row = 0; row < rows; ++row) {
        std::byte* const target = out.data() + row * to;
        const std::byte* const source = bytes.data() + row * from;
        if (kind == WeightKind::kF32) {
          pack_f32(type, columns, source, target);
        } else if (tensor::is_quantized(type)) {
          pack_f16(type, columns, source, target);
        } else {
          std::memcpy(target, source, from);
        }
      }
    }
  });
}

void launch_embed(Stream stream, const WeightView& weight, const std::int32_t* ids, float scale,
                  Matrix out) {
  with_kind(weight.kind, [&]<class Kind>(Kind) {
    if constexpr (requires { typename Kind::Coding; }) {
      EmbedCodedParams<typename Kind::Coding> params;
      params.table = coded<typename Kind::Coding>(weight);
      params.ids = ids;
      params.scale = scale;
      params.out = out.data;
      params.out_stride = stride(out.stride);
      params.rows = count(out.rows);
      embed_coded(stream, params);
    } else {
      embed_plain<typename Kind::Value>(stream, weight, ids, scale, out);
    }
  });
}

void launch_gather(Stream stream, const GatherParams<float, float>& params) {
  gather_rows(stream, params);
}

InputType input_type(WeightKind kind) noexcept {
  if (kind == WeightKind::kF32) return InputType::kF32;
  return kind == WeightKind::kBF16 ? InputType::kBF16 : InputType::kF16;
}

std::size_t rounded_bytes(std::size_t rows, std::size_t columns) {
  return rows * product_columns(count(columns)) * sizeof(std::uint16_t);
}

void launch_round(Stream stream, InputType type, ConstMatrix x, const RoundedInput& out) {
  if (type == InputType::kF16) round_to<F16>(stream, x, out);
  if (type == InputType::kBF16) round_to<BF16>(stream, x, out);
}

GemmParams gemm_params(const WeightView& weight, const RoundedInput& rounded, Matrix out) {
  INCIPIT_CHECK(weight.kind == WeightKind::kF16 || weight.kind == WeightKind::kBF16);
  GemmParams params;
  params.bf16 = weight.kind == WeightKind::kBF16;
  params.x = rounded.values;
  params.weight = weight.data;
  params.out = out.data;
  params.x_stride = product_columns(weight.columns);
  params.weight_stride = padded(weight.columns);
  params.out_stride = out.stride;
  params.rows = out.rows;
  params.outputs = weight.outputs;
  params.depth = weight.columns;
  return params;
}

void launch_scale(Stream stream, const float* scales, const float* bias, Matrix out) {
  ScaleRowsParams params;
  params.x = out.data;
  params.x_stride = stride(out.stride);
  params.scales = scales;
  params.bias = bias;
  params.rows = count(out.rows);
  params.columns = count(out.columns);
  scale_rows(stream, params);
}

void launch_product(Stream stream, Math, const WeightView& weight, ConstMatrix x,
                    const RoundedInput& rounded, const float* bias, Matrix out) {
  with_kind(weight.kind, [&]<class Kind>(Kind) {
    if constexpr (requires { typename Kind::Coding; }) {
      multiply(stream, coded<typename Kind::Coding>(weight), x.rows, rounded, bias, out);
    } else if constexpr (sizeof(typename Kind::Value) == 2) {
      multiply(stream, plain<typename Kind::Value>(weight), x.rows, rounded, bias, out);
    } else {
      multiply_f32(stream, weight, x, bias, out);
    }
  });
}

}  // namespace incipit::cuda
