// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "benchmarks/full_cache.h"
#include "benchmarks/kernel_benchmark/work.h"
#include "cpu/cpu_device.h"
#include "cuda/cuda_device.h"
#include "examples/option_names.h"
#include "examples/support.h"
#include "incipit/error.h"
#include "support/random_matrix.h"
#include "support/weight_types.h"

// What the operations of a device and the prefix index take, one by one.

namespace {

using namespace incipit;
using namespace bench;
using State = benchmark::State;

constexpr KvFormat kKvFormats[] = {KvFormat::kF32, KvFormat::kF16, KvFormat::kBF16,
                                   KvFormat::kInt8};

benchmark::Counter per_second(double amount) {
  return {amount, benchmark::Counter::kIsIterationInvariantRate};
}

struct Target {
  Device& device;
  const WorkShape& shape;

  /// Times `work`, behind a first call that is not counted. Waiting for a GPU takes time of its
  /// own: it has some calls queued by then.
  void measure(State& state, const std::function<void()>& work) const {
    work();
    device.finish();
    while (state.KeepRunningBatch(static_cast<std::int64_t>(shape.queued))) {
      for (std::size_t call = 0; call < shape.queued; ++call) work();
      device.finish();
    }
  }
};

/// Makes the layers of a type when a benchmark first wants them, and keeps those of one type.
class LayerStore {
 public:
  explicit LayerStore(const Target& target) : target_(target) {}

  Layers& of(DType type) {
    if (!layers_ || type_ != type) {
      layers_.reset();
      layers_.emplace(target_.device, target_.shape, type);
      type_ = type;
    }
    return *layers_;
  }

 private:
  const Target& target_;
  std::optional<Layers> layers_ = {};
  DType type_ = DType::kF32;
};

/// All products of a layer.
void matmul(State& state, const Target& target, LayerStore& store, DType type) {
  Layers& layers = store.of(type);
  layers.set_rows(static_cast<std::size_t>(state.range(0)));
  target.measure(state, [&] { layers.run(); });
  state.counters["flop/s"] =
      per_second(2.0 * layers.parameters() * static_cast<double>(state.range(0)));
  state.counters["weight_B/s"] = per_second(layers.bytes());
}

void measure_attention(State& state, const Target& target, KvFormat format,
                       const Attention::Sequences& sequences) {
  Attention attention(target.device, target.shape, format, sequences);
  target.measure(state, [&] { attention.run(); });
  state.counters["flop/s"] = per_second(attention.flops());
  state.counters["kv_B/s"] = per_second(attention.bytes());
}

/// A step of decoding: one row of each of some samples over keys that they share, or over as many
/// of their own.
void attention_decode(State& state, const Target& target, KvFormat format, bool share) {
  measure_attention(state, target, format,
                    {.count = static_cast<std::uint32_t>(state.range(0)),
                     .cached = target.shape.cached_tokens,
                     .share = share});
}

/// 512 tokens of a prompt behind some that are in the cache.
void attention_prefill(State& state, const Target& target, KvFormat format) {
  measure_attention(state, target, format,
                    {.cached = static_cast<std::uint32_t>(state.range(0)), .rows = 512});
}

/// What it takes to prepare the input of quantised weights: a product that has next to no outputs.
void quantize(State& state, const Target& target) {
  constexpr std::size_t kInputs = 2048, kOutputs = 16;
  const auto rows = static_cast<std::size_t>(state.range(0));
  std::mt19937 random(1);
  const DeviceMatrix in(target.device, rows, kInputs), out(target.device, rows, kOutputs);
  const auto file = testing::random_weight(random, DType::kQ8_0, kOutputs, kInputs);
  const auto weight = target.device.make_weight(DType::kQ8_0, kOutputs, kInputs, file);
  const device::Product product = {.weight = weight.get(), .out = out.view()};
  target.measure(state, [&] { target.device.matmul(in.view(), {&product, 1}); });
  state.SetItemsProcessed(state.iterations() * state.range(0) * std::int64_t{kInputs});
}

void rms_norm(State& state, const Target& target) {
  const std::size_t width = target.shape.norm_width;
  const auto rows = static_cast<std::size_t>(state.range(0));
  const DeviceMatrix in(target.device, rows, width), out(target.device, rows, width);
  const DeviceMatrix weight(target.device, 1, width);
  target.measure(state,
                 [&] { target.device.rms_norm(in.view(), weight.values(), 1e-5f, out.view()); });
  state.SetItemsProcessed(state.iterations() * state.range(0) * static_cast<std::int64_t>(width));
  state.counters["B/s"] = per_second(8.0 * static_cast<double>(rows * width));
}

/// One matrix added to another: what memory gives, where the two are larger than every cache.
void add(State& state, const Target& target) {
  const std::size_t width = target.shape.sum_width;
  const auto rows = static_cast<std::size_t>(state.range(0));
  const DeviceMatrix x(target.device, rows, width), y(target.device, rows, width);
  target.measure(state, [&] { target.device.add(x.view(), y.view()); });
  state.counters["B/s"] = per_second(12.0 * static_cast<double>(rows * width));
}

/// Finds, pins and releases a prompt among so many blocks.
void look_up(State& state, Device& device) {
  FullCache cache(device, static_cast<std::size_t>(state.range(0)),
                  static_cast<std::size_t>(state.range(1)));
  for (auto _ : state) cache.look_up();
  state.counters["blocks_indexed"] = cache.blocks_indexed();
}

/// Indexes a prompt where as many blocks are evicted for it: start, extend, commit and release.
void insert(State& state, Device& device) {
  FullCache cache(device, static_cast<std::size_t>(state.range(0)),
                  static_cast<std::size_t>(state.range(1)));
  for (auto _ : state) cache.insert();
  state.counters["blocks_indexed"] = cache.blocks_indexed();
}

bool takes(Device& device, const WorkShape& shape, KvFormat format) {
  try {
    device.check_kv({shape.layers, shape.kv_heads, shape.head_dim, format});
    return true;
  } catch (const Error&) {
    return false;
  }
}

template <class Run>
void add_sizes(const std::string& name, Run run, const std::vector<std::int64_t>& sizes) {
  auto* added = benchmark::RegisterBenchmark(name.c_str(), run);
  for (const std::int64_t size : sizes) added->Arg(size);
  added->Unit(benchmark::kMicrosecond)->UseRealTime();
}

void register_operations(const Target& target, LayerStore& layers) {
  const WorkShape& shape = target.shape;
  for (const DType type : test::kWeightTypes) {
    add_sizes(
        "matmul/" + std::string(tensor::name(type)),
        [&, type](State& state) { matmul(state, target, layers, type); }, shape.product_rows);
  }
  for (const KvFormat format : kKvFormats) {
    if (!takes(target.device, shape, format)) continue;
    const std::string name(device::name(format));
    for (const bool share : {true, false}) {
      add_sizes(
          (share ? "attention_decode/" : "attention_decode_apart/") + name,
          [&, format, share](State& state) { attention_decode(state, target, format, share); },
          shape.samples);
    }
    add_sizes("attention_prefill/" + name,
              [&, format](State& state) { attention_prefill(state, target, format); }, {0, 3584});
  }
  add_sizes(
      "quantize", [&](State& state) { quantize(state, target); }, shape.rows);
  add_sizes(
      "rms_norm", [&](State& state) { rms_norm(state, target); }, shape.rows);
  add_sizes(
      "add", [&](State& state) { add(state, target); }, shape.rows);
}

/// The prefix index, which is the host's.
void register_index(Device& device) {
  const auto add_index = [](const char* name, auto run) {
    auto* added = benchmark::RegisterBenchmark(name, run)->ArgNames({"tokens", "blocks"});
    for (const std::int64_t blocks : {1'000, 1'002'000}) added->Args({8000, blocks});
    added->Unit(benchmark::kMicrosecond)->UseRealTime();
  };
  add_index("look_up", [&device](State& state) { look_up(state, device); });
  add_index("insert", [&device](State& state) { insert(state, device); });
}

/// Google Benchmark takes its options from a command line only, and keeps the program's name.
void initialize(char* program, const std::string& filter, const std::string& json) {
  std::vector<std::string> words = {"--benchmark_filter=" + filter};
  if (json == "-") words.push_back("--benchmark_format=json");
  if (!json.empty() && json != "-") {
    words.push_back("--benchmark_out=" + json);
    words.push_back("--benchmark_out_format=json");
  }
  std::vector<char*> pointers = {program};
  for (std::string& word : words) pointers.push_back(word.data());
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What single operations of a device take", "kernel_benchmark");
  cpu::CpuDeviceOptions cpu;
  cuda::CudaDeviceOptions gpu;
  std::string json, filter = ".", kind = "cpu", path = "auto", math = "exact";
  app.add_option("--device", kind, "Which device; cuda: a GPU, with more work")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_option("--threads", cpu.threads, "0: the CPUs that this process may use");
  app.add_option("--cpu-path", path, "Which kernels run on the CPU")
      ->check(CLI::IsMember(&examples::kCpuPaths));
  app.add_option("--gpu", gpu.number, "Which of the GPUs, as the driver counts");
  app.add_option("--gpu-math", math, "Which kernels may run on a GPU")
      ->check(CLI::IsMember(&examples::kGpuMath));
  app.add_option("--filter", filter, "Run the benchmarks whose name matches");
  app.add_option("--json", json, "Write the figures to this file; -: to standard output");
  return examples::run_main(app, argc, argv, [&] {
    initialize(argv[0], filter, json);
    cpu.path = examples::kCpuPaths.at(path);
    gpu.math = examples::kGpuMath.at(math);
    const bool on_gpu = kind == "cuda";
    const auto device = on_gpu ? cuda::open_cuda_device(gpu) : cpu::make_cpu_device(cpu);
    const Target target = {*device, on_gpu ? gpu_shape() : cpu_shape()};
    LayerStore layers(target);
    benchmark::AddCustomContext("numerics", device->info().numerics);
    benchmark::AddCustomContext("threads", std::to_string(device->info().threads));
    register_operations(target, layers);
    if (!on_gpu) register_index(*device);
    benchmark::RunSpecifiedBenchmarks();
    return 0;
  });
}
