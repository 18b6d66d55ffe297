// SPDX-License-Identifier: Apache-2.0
#include "report.h"

#include <iomanip>
#include <ostream>

namespace bench {

namespace {

/// Billions, or null for what was not measured or cannot be done.
Json giga(double value) { return value > 0.0 ? Json(value * 1e-9) : Json(); }

Json limits_json(const MachineLimits& limits) {
  return {{"memory_gb_s", giga(limits.memory_bytes)},
          {"f32_gflop_s", giga(limits.f32_flops)},
          {"bf16_gflop_s", giga(limits.bf16_flops)},
          {"int8_gop_s", giga(limits.int8_ops)}};
}

void print_limits(std::ostream& out, const MachineLimits& limits) {
  out << std::fixed << std::setprecision(1) << "limits: reads " << limits.memory_bytes * 1e-9
      << " GB/s; f32 " << limits.f32_flops * 1e-9;
  if (limits.bf16_flops > 0.0) out << ", BF16 " << limits.bf16_flops * 1e-9;
  out << " GFLOP/s";
  if (limits.int8_ops > 0.0) out << "; int8 " << limits.int8_ops * 1e-9 << " GOP/s";
  out << "\n";
}

}  // namespace

void print_head(std::ostream& out, const incipit::Engine& engine, const Yardstick& yardstick) {
  const incipit::ModelInfo& model = engine.model();
  out << cpu_name() << ", " << model.threads << " threads\n";
  if (yardstick.limits) print_limits(out, *yardstick.limits);
  out << model.name << " (" << model.architecture << "), " << model.parameters << " parameters, "
      << model.numerics << "\n";
}

void print(std::ostream& out, const Metric& metric) {
  out << std::fixed << std::setprecision(3) << std::left << std::setw(24) << metric.name
      << std::right << std::setw(12) << median(metric.values) << " " << metric.unit << "  ("
      << metric.smallest() << " to " << metric.largest() << ", spread " << std::setprecision(1)
      << 100 * metric.spread() << " %)";
  if (!metric.fractions.empty()) {
    out << ", " << 100 * median(metric.fractions) << " % of the limit of " << metric.limit;
  }
  out << "\n";
}

Json head_json(const std::string& file, const incipit::Engine& engine, const Yardstick& yardstick) {
  const incipit::ModelInfo& model = engine.model();
  return {{"machine",
           {{"cpu", cpu_name()},
            {"threads", model.threads},
            {"limits", yardstick.limits ? limits_json(*yardstick.limits) : Json()}}},
          {"model",
           {{"file", file},
            {"name", model.name},
            {"architecture", model.architecture},
            {"numerics", model.numerics},
            {"parameters", model.parameters},
            {"weight_bytes", yardstick.shape ? Json(yardstick.shape->weight_bytes) : Json()},
            {"kv_bytes_per_token", model.kv_bytes_per_token}}}};
}

Json results_json(const std::vector<Metric>& metrics) {
  Json results = Json::object();
  for (const Metric& metric : metrics) {
    const bool compared = !metric.fractions.empty();
    results[metric.name] = {
        {"unit", metric.unit},
        {"median", median(metric.values)},
        {"min", metric.smallest()},
        {"max", metric.largest()},
        {"spread", metric.spread()},
        {"values", metric.values},
        {"limit", compared ? Json(metric.limit) : Json()},
        {"fraction_of_limit", compared ? Json(median(metric.fractions)) : Json()}};
  }
  return results;
}

}  // namespace bench
