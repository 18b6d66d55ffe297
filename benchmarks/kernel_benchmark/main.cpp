// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "benchmarks/full_cache.h"
#include "cpu/cpu_device.h"
#include "device/attention_plan.h"
#include "device/device.h"
#include "examples/option_names.h"
#include "examples/support.h"
#include "kv/kv_cache.h"
#include "support/random_matrix.h"
#include "support/weight_types.h"

// What the device's operations and the prefix index take, one by one.

namespace {

using namespace incipit;
using device::Device;
using device::KvFormat;
using tensor::DType;

constexpr KvFormat kKvFormats[] = {KvFormat::kF32, KvFormat::kF16, KvFormat::kBF16,
                                   KvFormat::kInt8};

benchmark::Counter per_second(double amount) {
  return {amount, benchmark::Counter::kIsIterationInvariantRate};
}

/// A layer's products as a model has them: one input, several weights.
struct ProductGroup {
  std::size_t inputs;
  std::vector<std::size_t> outputs;
};

/// Layers of random weights, so many that no cache holds them all.
class Layers {
 public:
  Layers(Device& device, DType type) : device_(device) {
    constexpr std::size_t kWidth = 1024, kKvWidth = 256, kFfnWidth = 4096;
    groups_ = {{kWidth, {kWidth, kKvWidth, kKvWidth}},  // q, k, v
               {kWidth, {kWidth}},                      // attention's output
               {kWidth, {kFfnWidth, kFfnWidth}},        // gate, up
               {kFfnWidth, {kWidth}}};                  // down
    std::mt19937 random(1);
    std::vector<std::vector<std::byte>> layer;
    for (const ProductGroup& group : groups_) {
      for (const std::size_t outputs : group.outputs) {
        layer.push_back(testing::random_weight(random, type, outputs, group.inputs));
        parameters_ += static_cast<double>(outputs * group.inputs);
        bytes_ += static_cast<double>(layer.back().size());
      }
    }
    constexpr double kEnough = 128 << 20;
    for (double bytes = 0; bytes < kEnough; bytes += bytes_) {
      auto file = layer.begin();
      for (const ProductGroup& group : groups_) {
        for (const std::size_t outputs : group.outputs) {
          weights_.push_back(device.make_weight(type, outputs, group.inputs, *file++));
        }
      }
    }
  }

  double parameters() const { return parameters_; }  // of a layer
  double bytes() const { return bytes_; }            // of a layer, in a file

  /// All products of the next layer.
  void run(std::size_t rows) {
    if (next_ == weights_.size()) next_ = 0;
    for (const ProductGroup& group : groups_) {
      in_.resize(rows * group.inputs, 0.5f);
      std::vector<device::Product> products;
      out_.resize(group.outputs.size());
      for (std::size_t i = 0; i < group.outputs.size(); ++i) {
        out_[i].resize(rows * group.outputs[i]);
        products.push_back(
            {.weight = weights_[next_++].get(), .out = testing::view(out_[i], group.outputs[i])});
      }
      device_.matmul({in_.data(), rows, group.inputs, group.inputs}, products);
    }
  }

 private:
  Device& device_;
  std::vector<ProductGroup> groups_ = {};
  std::vector<std::unique_ptr<device::Weight>> weights_ = {};
  std::vector<float> in_ = {};
  std::vector<std::vector<float>> out_ = {};
  double parameters_ = 0, bytes_ = 0;
  std::size_t next_ = 0;
};

/// Attention of all layers of a 135M model, over keys in memory: `sequences` that share their first
/// `cached` tokens bring `rows` new ones each.
class Attention {
 public:
  Attention(Device& device, KvFormat format, std::uint32_t sequences, std::uint32_t cached,
            std::uint32_t rows)
      : device_(device), layout_({kLayers, kKvHeads, kHeadDim, format}), rows_(sequences * rows) {
    const std::uint32_t shared = cached / kBlockTokens;  // blocks
    const std::uint32_t own = (rows + kBlockTokens - 1) / kBlockTokens;
    blocks_ = shared + sequences * own;
    buffer_ = device.allocate(blocks_ * layout_.block_bytes());
    fill();
    std::vector<device::SequenceRows> batch;
    tables_.resize(sequences);
    for (std::uint32_t i = 0; i < sequences; ++i) {
      for (std::uint32_t block = 0; block < shared; ++block) tables_[i].push_back(block);
      for (std::uint32_t block = 0; block < own; ++block) {
        tables_[i].push_back(shared + i * own + block);
      }
      batch.push_back({tables_[i], cached, rows});
    }
    plan_ = device::plan_attention(batch, device.info().plan);
    std::mt19937 random(2);
    q_ = testing::random_floats(random, rows_ * kHeads * kHeadDim);
    out_.resize(q_.size());
    const double pairs = static_cast<double>(rows_) * (cached + 0.5 * (rows + 1.0));
    flops_ = 4.0 * kLayers * kHeads * kHeadDim * pairs;
  }

  double flops() const { return flops_; }
  double bytes() const { return static_cast<double>(buffer_.bytes()); }

  void run() {
    for (std::size_t layer = 0; layer < kLayers; ++layer) {
      const device::AttentionParams params = {.layer = layer, .heads = kHeads, .scale = 0.125f};
      device_.attention(pool(), params, plan_, testing::view(q_, kHeads * kHeadDim),
                        testing::view(out_, kHeads * kHeadDim));
    }
  }

 private:
  static constexpr std::size_t kLayers = 30, kHeads = 9, kKvHeads = 3, kHeadDim = 64;
  static constexpr std::uint32_t kBlockTokens = device::kBlockTokens;

  device::KvPoolView pool() const { return {buffer_.data(), blocks_, layout_}; }

  void fill() {
    std::mt19937 random(1);
    const auto k = testing::random_floats(random, kBlockTokens * kKvHeads * kHeadDim);
    const auto v = testing::random_floats(random, kBlockTokens * kKvHeads * kHeadDim);
    for (std::uint32_t block = 0; block < blocks_; ++block) {
      std::vector<device::KvSlot> slots;
      for (std::uint32_t token = 0; token < kBlockTokens; ++token) slots.push_back({block, token});
      for (std::size_t layer = 0; layer < kLayers; ++layer) {
        device_.append_kv(pool(), layer, testing::view(k, kKvHeads * kHeadDim),
                          testing::view(v, kKvHeads * kHeadDim), slots);
      }
    }
  }

  Device& device_;
  device::KvLayout layout_;
  std::uint32_t rows_, blocks_ = 0;
  device::Buffer buffer_ = {};
  std::vector<std::vector<device::BlockId>> tables_ = {};
  device::AttentionPlan plan_ = {};
  std::vector<float> q_ = {}, out_ = {};
  double flops_ = 0;
};

/// Makes the layers of a type when a benchmark first wants them, and keeps those of one type.
class LayerStore {
 public:
  explicit LayerStore(Device& device) : device_(device) {}

  Layers& of(DType type) {
    if (!layers_ || type_ != type) {
      layers_.reset();
      layers_.emplace(device_, type);
      type_ = type;
    }
    return *layers_;
  }

 private:
  Device& device_;
  std::optional<Layers> layers_ = {};
  DType type_ = DType::kF32;
};

/// All products of a layer.
void matmul(benchmark::State& state, LayerStore& store, DType type) {
  Layers& layers = store.of(type);
  const auto rows = static_cast<std::size_t>(state.range(0));
  for (auto _ : state) layers.run(rows);
  state.counters["flop/s"] = per_second(2.0 * layers.parameters() * static_cast<double>(rows));
  state.counters["weight_B/s"] = per_second(layers.bytes());
}

/// A step of decoding: one row of each of some samples over 4,096 shared keys.
void attention_decode(benchmark::State& state, Device& device, KvFormat format) {
  Attention attention(device, format, static_cast<std::uint32_t>(state.range(0)), 4096, 1);
  for (auto _ : state) attention.run();
  state.counters["flop/s"] = per_second(attention.flops());
  state.counters["kv_B/s"] = per_second(attention.bytes());
}

/// 512 tokens of a prompt behind some that are in the cache.
void attention_prefill(benchmark::State& state, Device& device, KvFormat format) {
  Attention attention(device, format, 1, static_cast<std::uint32_t>(state.range(0)), 512);
  for (auto _ : state) attention.run();
  state.counters["flop/s"] = per_second(attention.flops());
}

/// What it takes to prepare the input of quantised weights: a product that has next to no outputs.
void quantize(benchmark::State& state, Device& device) {
  constexpr std::size_t kInputs = 2048, kOutputs = 16;
  const auto rows = static_cast<std::size_t>(state.range(0));
  std::mt19937 random(1);
  const auto in = testing::random_floats(random, rows * kInputs);
  std::vector<float> out(rows * kOutputs);
  const auto file = testing::random_weight(random, DType::kQ8_0, kOutputs, kInputs);
  const auto weight = device.make_weight(DType::kQ8_0, kOutputs, kInputs, file);
  const device::Product product = {.weight = weight.get(), .out = testing::view(out, kOutputs)};
  for (auto _ : state) device.matmul(testing::view(in, kInputs), {&product, 1});
  state.SetItemsProcessed(state.iterations() * state.range(0) * std::int64_t{kInputs});
}

void rms_norm(benchmark::State& state, Device& device) {
  constexpr std::size_t kWidth = 2048;
  const auto rows = static_cast<std::size_t>(state.range(0));
  std::mt19937 random(1);
  const auto in = testing::random_floats(random, rows * kWidth);
  const auto weight = testing::random_floats(random, kWidth);
  std::vector<float> out(in.size());
  for (auto _ : state) {
    device.rms_norm(testing::view(in, kWidth), weight, 1e-5f, testing::view(out, kWidth));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0) * std::int64_t{kWidth});
}

/// Finds, pins and releases a prompt among so many blocks.
void look_up(benchmark::State& state, Device& device) {
  bench::FullCache cache(device, static_cast<std::size_t>(state.range(0)),
                         static_cast<std::size_t>(state.range(1)));
  for (auto _ : state) cache.look_up();
  state.counters["blocks_indexed"] = cache.blocks_indexed();
}

/// Indexes a prompt where as many blocks are evicted for it: start, extend, commit and release.
void insert(benchmark::State& state, Device& device) {
  bench::FullCache cache(device, static_cast<std::size_t>(state.range(0)),
                         static_cast<std::size_t>(state.range(1)));
  for (auto _ : state) cache.insert();
  state.counters["blocks_indexed"] = cache.blocks_indexed();
}

void register_all(Device& device, LayerStore& layers) {
  const auto add = [](const std::string& name, auto run, const std::vector<std::int64_t>& sizes) {
    auto* added = benchmark::RegisterBenchmark(name.c_str(), run);
    for (const std::int64_t size : sizes) added->Arg(size);
    added->Unit(benchmark::kMicrosecond)->UseRealTime();
  };
  using State = benchmark::State;
  for (const DType type : test::kWeightTypes) {
    add("matmul/" + std::string(tensor::name(type)),
        [&layers, type](State& state) { matmul(state, layers, type); }, {1, 8, 16, 64, 512});
  }
  for (const KvFormat format : kKvFormats) {
    const std::string name(device::name(format));
    add("attention_decode/" + name,
        [&device, format](State& state) { attention_decode(state, device, format); }, {1, 8, 16});
    add("attention_prefill/" + name,
        [&device, format](State& state) { attention_prefill(state, device, format); }, {0, 3584});
  }
  add("quantize", [&device](State& state) { quantize(state, device); }, {1, 16, 512});
  add("rms_norm", [&device](State& state) { rms_norm(state, device); }, {1, 16, 512});
  const auto add_index = [](const char* name, auto run) {
    auto* added = benchmark::RegisterBenchmark(name, run)->ArgNames({"tokens", "blocks"});
    for (const std::int64_t blocks : {1'000, 1'002'000}) added->Args({8000, blocks});
    added->Unit(benchmark::kMicrosecond)->UseRealTime();
  };
  add_index("look_up", [&device](State& state) { look_up(state, device); });
  add_index("insert", [&device](State& state) { insert(state, device); });
}

/// Google Benchmark takes its options from a command line only.
void initialize(const std::string& program, const std::string& filter, const std::string& json) {
  std::vector<std::string> words = {program, "--benchmark_filter=" + filter};
  if (json == "-") words.push_back("--benchmark_format=json");
  if (!json.empty() && json != "-") {
    words.push_back("--benchmark_out=" + json);
    words.push_back("--benchmark_out_format=json");
  }
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What single operations of the CPU device take", "kernel_benchmark");
  cpu::CpuDeviceOptions options;
  std::string json, filter = ".", path = "auto";
  app.add_option("--threads", options.threads, "0: the CPUs that this process may use");
  app.add_option("--cpu-path", path, "Which kernels run")
      ->check(CLI::IsMember(&examples::kCpuPaths));
  app.add_option("--filter", filter, "Run the benchmarks whose name matches");
  app.add_option("--json", json, "Write the figures to this file; -: to standard output");
  return examples::run_main(app, argc, argv, [&] {
    initialize(argv[0], filter, json);
    options.path = examples::kCpuPaths.at(path);
    const std::unique_ptr<Device> device = cpu::make_cpu_device(options);
    LayerStore layers(*device);
    benchmark::AddCustomContext("numerics", device->info().numerics);
    benchmark::AddCustomContext("threads", std::to_string(device->info().threads));
    register_all(*device, layers);
    benchmark::RunSpecifiedBenchmarks();
    return 0;
  });
}
