// SPDX-License-Identifier: Apache-2.0
// Which device an engine takes, on a machine with three emulated GPUs.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cuda/tiny_cuda_model.h"
#include "support/catch.h"

using namespace incipit;
using namespace incipit::test;

namespace {

ErrorCode refusal(const EngineOptions& options) {
  try {
    const Engine engine(options);
  } catch (const Error& error) {
    return error.code();
  }
  FAIL("not refused");
  return ErrorCode::kInternal;
}

}  // namespace

TEST_CASE("the device is the one that was asked for, or the one that suits") {
  const TinyModelFile file(tiny(Family::kLlama, tensor::DType::kF32));
  const auto device = [](const EngineOptions& options) {
    const std::string numerics = Engine(options).model().numerics;
    return numerics.substr(0, numerics.find('/'));
  };
  CHECK(device(on(file, DeviceKind::kAuto)) == "cuda");
  CHECK(device(on(file, DeviceKind::kCuda)) == "cuda");
  CHECK(device(on(file, DeviceKind::kCpu)) == "cpu");

  // What a GPU cannot do.
  EngineOptions wide = on(file, DeviceKind::kAuto, KvType::kF32),
                path = on(file, DeviceKind::kAuto), none = on(file, DeviceKind::kAuto);
  path.cpu_path = CpuPath::kScalar;
  none.gpu = 3;
  std::string said;
  none.log = [&](LogLevel, std::string_view message) { said += message; };
  const TinyModelFile narrow_heads;
  for (EngineOptions options : {wide, path, none, on(narrow_heads, DeviceKind::kAuto)}) {
    CHECK(device(options) == "cpu");
    options.device = DeviceKind::kCuda;
    CHECK(refusal(options) == ErrorCode::kInvalidArgument);
  }
  CHECK(said.find("on the CPU: there is no GPU number 3") != std::string::npos);
}

TEST_CASE("a GPU without room for the weights leaves a model to the CPU, if that was left open") {
  const TinyModelFile file(tiny(Family::kLlama, tensor::DType::kF32));
  EngineOptions options = on(file, DeviceKind::kAuto);
  options.gpu = 2;  // has 96 KiB: enough to open it
  std::string said;
  std::vector<double> progress;
  options.log = [&](LogLevel, std::string_view message) { said += message; };
  options.on_load = [&](double fraction) { progress.push_back(fraction); };
  const std::string numerics = Engine(options).model().numerics;
  CHECK(numerics == Engine(on(file, DeviceKind::kCpu)).model().numerics);
  CHECK(said.find("on the CPU: the emulated GPU has no ") != std::string::npos);
  CHECK_FALSE(std::ranges::is_sorted(progress));  // began again
  CHECK(progress.back() == 1.0);
  options.device = DeviceKind::kCuda;
  CHECK(refusal(options) == ErrorCode::kOutOfMemory);
}

TEST_CASE("fast math is the GPU's, is named, and makes no cache suspect") {
  const TinyModelFile file(tiny(Family::kLlama, tensor::DType::kF32));
  const auto with = [&](DeviceKind device, GpuMath math) {
    EngineOptions options = on(file, device);
    options.gpu_math = math;
    return options;
  };
  CHECK(Engine(with(DeviceKind::kAuto, GpuMath::kFast))
            .model()
            .numerics.starts_with("cuda/emulated/16-bit/fast/"));
  CHECK(Engine(with(DeviceKind::kCpu, GpuMath::kFast)).model().numerics ==
        Engine(with(DeviceKind::kCpu, GpuMath::kExact)).model().numerics);

  Engine fast(with(DeviceKind::kCuda, GpuMath::kFast));
  const std::string text = "What is kept for one is of no use to the other, whoever asks first.";
  fast.prefetch(text);
  const CacheValidation found = fast.validate(text);
  CHECK(found.reused_tokens > 0);
  CHECK(found.equal);
}

TEST_CASE("a pool on the GPU takes most of what is free there") {
  const TinyModelFile file(tiny(Family::kLlama, tensor::DType::kF32));
  EngineOptions options = on(file, DeviceKind::kCuda);
  options.kv_pool_bytes = 0;
  Engine engine(options);
  constexpr std::size_t kMemory = std::size_t{64} << 20;  // system_driver.cpp
  const auto pool = engine.cache().stats().blocks_total * engine.model().pool_bytes_per_block;
  CHECK(pool > kMemory / 2);
  CHECK(pool < kMemory);
}

TEST_CASE("engines on several GPUs share one cache, and each keeps its own blocks") {
  const TinyModelFile file(tiny(Family::kLlama, tensor::DType::kF32));
  const auto cache = std::make_shared<PrefixCache>();
  const auto ids = random_ids(40, 3);
  std::string expected;
  for (const std::size_t gpu : {0u, 1u}) {
    EngineOptions options = on(file, DeviceKind::kCuda);
    options.gpu = gpu;
    Engine engine(options, cache);
    for (int round = 0; round < 2; ++round) {
      const auto result = engine.generate_with_cache(ids, whole_rows(engine, 2));
      if (expected.empty()) expected = fingerprint(result);
      CHECK(fingerprint(result) == expected);
      CHECK((result.reused_tokens > 0) == (round > 0));
    }
  }
}
