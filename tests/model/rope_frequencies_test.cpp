// SPDX-License-Identifier: Apache-2.0
#include "model/rope_frequencies.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <vector>

#include "support/catch.h"
#include "support/tiny_model.h"
#include "support/unreadable.h"

namespace incipit::model {
namespace {

using test::check_unreadable;

// What transformers 5 (torch 2.15, CPU) computes for SmolLM2: base 100,000, 64 rotated.
constexpr float kSmolLm2[] = {
    0x1p+0f,         0x1.654a0cp-1f,  0x1.f2a79ep-2f,  0x1.5bf9fep-2f,  0x1.e5a846p-3f,
    0x1.52e812p-3f,  0x1.d8ffacp-4f,  0x1.4a12acp-4f,  0x1.ccab84p-5f,  0x1.41783ap-5f,
    0x1.c0a9a4p-6f,  0x1.39172ep-6f,  0x1.b4f7e4p-7f,  0x1.30ee0ap-7f,  0x1.a9942ap-8f,
    0x1.28fb5cp-8f,  0x1.9e7c7p-9f,   0x1.213db6p-9f,  0x1.93aeb8p-10f, 0x1.19b3b6p-10f,
    0x1.892918p-11f, 0x1.125c04p-11f, 0x1.7ee9aep-12f, 0x1.0b3552p-12f, 0x1.74eea6p-13f,
    0x1.043e56p-13f, 0x1.6b3636p-14f, 0x1.faeba8p-15f, 0x1.61bea4p-15f, 0x1.edb52cp-16f,
    0x1.58863ap-16f, 0x1.e0d6dap-17f,
};

// For Qwen2.5: base 1,000,000, 128 rotated.
constexpr float kQwen2[] = {
    0x1p+0f,         0x1.9c975ap-1f,  0x1.4c7bcp-1f,   0x1.0beddep-1f,  0x1.afd136p-2f,
    0x1.5bf9fep-2f,  0x1.186a08p-2f,  0x1.c3f06ap-3f,  0x1.6c310ep-3f,  0x1.257b22p-3f,
    0x1.d8ffacp-4f,  0x1.7d298cp-4f,  0x1.33281ap-4f,  0x1.ef0a26p-5f,  0x1.8eec7ep-5f,
    0x1.41783ap-5f,  0x1.030dc6p-5f,  0x1.a1835p-6f,   0x1.507316p-6f,  0x1.0f201p-6f,
    0x1.b4f7e4p-7f,  0x1.6020a4p-7f,  0x1.1bc25ap-7f,  0x1.c9548cp-8f,  0x1.708938p-8f,
    0x1.28fb5cp-8f,  0x1.dea41cp-9f,  0x1.81b58ap-9f,  0x1.36d21ap-9f,  0x1.f4f1ep-10f,
    0x1.93aeb8p-10f, 0x1.454deep-10f, 0x1.0624dep-10f, 0x1.a67e5p-11f,  0x1.547688p-11f,
    0x1.125c04p-11f, 0x1.ba2e4ap-12f, 0x1.6453f6p-12f, 0x1.1f24e4p-12f, 0x1.cec924p-13f,
    0x1.74eea6p-13f, 0x1.2c8648p-13f, 0x1.e459c4p-14f, 0x1.864f6ap-14f, 0x1.3a8748p-14f,
    0x1.faeba8p-15f, 0x1.987f7cp-15f, 0x1.492f56p-15f, 0x1.094564p-15f, 0x1.ab8882p-16f,
    0x1.58863ap-16f, 0x1.15a1dap-16f, 0x1.bf749ep-17f, 0x1.68941cp-17f, 0x1.2291c6p-17f,
    0x1.d44e64p-18f, 0x1.796182p-18f, 0x1.301c04p-18f, 0x1.ea20ep-19f,  0x1.8af756p-19f,
    0x1.3e47c8p-19f, 0x1.007bd8p-19f, 0x1.9d5ef2p-20f, 0x1.4d1c98p-20f,
};

// For LLaMA 3.2 1B: base 500,000, 64 rotated, factor 32 of 8,192.
constexpr float kLlama32[] = {
    0x1p+0f,         0x1.53c38cp-1f,  0x1.c2ef78p-2f,  0x1.2b3dc6p-2f,  0x1.8d276p-3f,
    0x1.078d4p-3f,   0x1.5dc95ap-4f,  0x1.d03ccep-5f,  0x1.34119p-5f,   0x1.98de92p-6f,
    0x1.0f5386p-6f,  0x1.681adap-7f,  0x1.ddee9ep-8f,  0x1.3d2804p-8f,  0x1.a4ee4p-9f,
    0x1.524f36p-10f, 0x1.c26c4p-12f,  0x1.9731eep-14f, 0x1.46831ap-16f, 0x1.b15902p-17f,
    0x1.1f91fp-17f,  0x1.7da9e8p-18f, 0x1.fa8b86p-19f, 0x1.5024d6p-19f, 0x1.be2188p-20f,
    0x1.280d96p-20f, 0x1.88ec2p-21f,  0x1.04be68p-21f, 0x1.5a0f4ep-22f, 0x1.cb4a9ap-23f,
    0x1.30c94ep-23f, 0x1.94836p-24f,
};

// Floats between two positive ones.
std::int64_t ulps(float a, float b) {
  return std::abs(std::int64_t{std::bit_cast<std::int32_t>(a)} -
                  std::int64_t{std::bit_cast<std::int32_t>(b)});
}

constexpr RopeScaling kLlama32Scaling = {.kind = RopeScaling::Kind::kLlama3, .factor = 32.0};

TEST_CASE("The frequencies are those that a model was trained with") {
  const std::vector<float> smollm2 = rope_frequencies(1e5, 64);
  REQUIRE(smollm2.size() == 32);
  for (std::size_t i = 0; i < 32; ++i) CHECK(smollm2[i] == kSmolLm2[i]);
  const std::vector<float> qwen2 = rope_frequencies(1e6, 128);
  REQUIRE(qwen2.size() == 64);
  for (std::size_t i = 0; i < 64; ++i) CHECK(ulps(qwen2[i], kQwen2[i]) <= 1);
}

TEST_CASE("LLaMA-3's scaling keeps, blends and divides as transformers does") {
  const std::vector<float> scaled = rope_frequencies(5e5, 64, kLlama32Scaling);
  const std::vector<float> plain = rope_frequencies(5e5, 64);
  REQUIRE(scaled.size() == 32);
  std::size_t kept = 0, divided = 0;
  for (std::size_t i = 0; i < 32; ++i) {
    CHECK(ulps(scaled[i], kLlama32[i]) <= 1);
    if (scaled[i] == plain[i]) ++kept;
    if (scaled[i] == plain[i] / 32.0f) ++divided;
  }
  CHECK(kept == 15);
  CHECK(divided == 14);
}

TEST_CASE("Frequencies fall from 1 by a constant factor") {
  for (const std::size_t rotated : {std::size_t{2}, std::size_t{16}, std::size_t{256}}) {
    const std::vector<float> frequencies = rope_frequencies(10000.0, rotated);
    REQUIRE(frequencies.size() == rotated / 2);
    CHECK(frequencies[0] == 1.0f);
    for (std::size_t i = 0; i < frequencies.size(); ++i) {
      const double exact =
          std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(rotated));
      CHECK(ulps(frequencies[i], static_cast<float>(exact)) <= 2);
    }
  }
}

TEST_CASE("Linear scaling divides every frequency") {
  const std::vector<float> plain = rope_frequencies(1e4, 32);
  const std::vector<float> scaled =
      rope_frequencies(1e4, 32, {.kind = RopeScaling::Kind::kLinear, .factor = 4.0});
  for (std::size_t i = 0; i < plain.size(); ++i) CHECK(scaled[i] == plain[i] / 4.0f);
}

TEST_CASE("A file's factors divide the frequencies one by one") {
  std::vector<float> frequencies = {1.0f, 0.5f, 0.25f};
  divide_frequencies(frequencies, std::vector<float>{1.0f, 2.0f, 8.0f});
  CHECK(frequencies == std::vector<float>{1.0f, 0.25f, 0.03125f});
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float factor : {0.0f, -1.0f, 0.5f, kNan, kInfinity}) {
    check_unreadable("frequency factor", [&] {
      divide_frequencies(frequencies, std::vector<float>{1.0f, factor, 1.0f});
      return 0;
    });
  }
}

TEST_CASE("The factors of a GGUF file and the parameters of a config give the same model") {
  const test::TinyModel model = test::make_tiny_model({.llama3_rope = true});
  std::vector<float> frequencies = rope_frequencies(10000.0, 16);
  divide_frequencies(frequencies, model.rope_factors);
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(ulps(frequencies[i], model.config.rope_frequencies[i]) <= 2);
  }
}

TEST_CASE("A base or scaling that makes no sense is refused") {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const double base : {0.0, -1.0, 0.5, 1e13, kNan}) {
    check_unreadable("base", [&] { return rope_frequencies(base, 64); });
  }
  for (const double factor : {0.0, -8.0, 0.5, 1e7, kNan}) {
    RopeScaling scaling = kLlama32Scaling;
    scaling.factor = factor;
    check_unreadable("scaling factor", [&] { return rope_frequencies(1e4, 64, scaling); });
  }
  RopeScaling scaling = kLlama32Scaling;
  scaling.low = 4.0;
  check_unreadable("not above the low", [&] { return rope_frequencies(1e4, 64, scaling); });
  scaling.low = 0.0;
  check_unreadable("low frequency", [&] { return rope_frequencies(1e4, 64, scaling); });
  scaling = kLlama32Scaling;
  scaling.high = kNan;
  check_unreadable("high frequency", [&] { return rope_frequencies(1e4, 64, scaling); });
  scaling = kLlama32Scaling;
  scaling.original_context = 0.0;
  check_unreadable("original context", [&] { return rope_frequencies(1e4, 64, scaling); });
}

}  // namespace
}  // namespace incipit::model
