// SPDX-License-Identifier: Apache-2.0
#include <incipit/inspect.h>

#include <iostream>
#include <map>
#include <string>

#include "support.h"

// What is in a model file, and whether incipit runs it. Loads no weights.

namespace {

using Json = nlohmann::ordered_json;

Json to_json(const std::vector<incipit::SpecialToken>& tokens) {
  Json list = Json::array();
  for (const incipit::SpecialToken& token : tokens) {
    list.push_back({{"id", token.id}, {"text", token.text}});
  }
  return list;
}

Json to_json(const incipit::SamplingDefaults& sampling) {
  Json values = Json::object();
  const auto add = [&](const char* name, const auto& value) {
    if (value) values[name] = *value;
  };
  add("temperature", sampling.temperature);
  add("top_k", sampling.top_k);
  add("top_p", sampling.top_p);
  add("min_p", sampling.min_p);
  add("repetition_penalty", sampling.repetition_penalty);
  if (!sampling.stop_strings.empty()) values["stop_strings"] = sampling.stop_strings;
  return values;
}

Json to_json(const incipit::ModelReport& report) {
  Json tensors = Json::array();
  for (const incipit::TensorReport& tensor : report.tensors) {
    Json entry = {{"name", tensor.name},
                  {"type", tensor.type},
                  {"shape", tensor.shape},
                  {"bytes", tensor.bytes}};
    if (!tensor.computed_as.empty()) entry["computed_as"] = tensor.computed_as;
    tensors.push_back(std::move(entry));
  }
  return {{"format", report.format},
          {"name", report.name},
          {"architecture", report.architecture},
          {"context", report.context},
          {"layers", report.layers},
          {"width", report.width},
          {"heads", report.heads},
          {"kv_heads", report.kv_heads},
          {"head_dim", report.head_dim},
          {"vocabulary", report.vocabulary},
          {"parameters", report.parameters},
          {"converted", report.converted},
          {"tokenizer", report.tokenizer},
          {"adds_bos", report.adds_bos},
          {"bos", to_json(report.bos)},
          {"ends", to_json(report.ends)},
          {"has_chat_template", report.has_chat_template},
          {"chat_format", report.chat_format},
          {"sampling", to_json(report.sampling)},
          {"kv_bytes_per_token",
           {{"f32", report.kv_bytes_per_token_f32},
            {"f16", report.kv_bytes_per_token_16},
            {"bf16", report.kv_bytes_per_token_16},
            {"int8", report.kv_bytes_per_token_int8}}},
          {"problems", report.problems},
          {"tensors", tensors}};
}

std::string shape_of(const incipit::TensorReport& tensor) {
  std::string text;
  for (const std::uint64_t dimension : tensor.shape) {
    text += (text.empty() ? "" : " x ") + std::to_string(dimension);
  }
  return text;
}

void print_types(std::ostream& out, const incipit::ModelReport& report) {
  struct Sum {
    std::size_t tensors = 0;
    std::uint64_t bytes = 0;
  };
  std::map<std::string, Sum> types;
  for (const incipit::TensorReport& tensor : report.tensors) {
    Sum& sum = types[tensor.type];
    ++sum.tensors;
    sum.bytes += tensor.bytes;
  }
  for (const auto& [type, sum] : types) {
    out << "types         " << type << ": " << sum.tensors << " tensors, " << sum.bytes
        << " bytes\n";
  }
  if (!report.converted.empty()) out << "computed      " << report.converted << "\n";
}

void print_tokens(std::ostream& out, const char* title,
                  const std::vector<incipit::SpecialToken>& tokens) {
  out << title;
  for (const incipit::SpecialToken& token : tokens) out << " " << token.id << " " << token.text;
  out << (tokens.empty() ? " none\n" : "\n");
}

void print(std::ostream& out, const incipit::ModelReport& report, bool all_tensors) {
  out << "file          " << report.format << "\n"
      << "model         " << report.name << " (" << report.architecture << "), "
      << report.parameters << " parameters\n"
      << "shape         " << report.layers << " layers of width " << report.width << ", "
      << report.heads << " heads and " << report.kv_heads << " KV heads of " << report.head_dim
      << "\n"
      << "context       " << report.context << " tokens\n"
      << "KV per token  " << report.kv_bytes_per_token_16 << " bytes in 16 bits, "
      << report.kv_bytes_per_token_f32 << " in F32, " << report.kv_bytes_per_token_int8
      << " in int8\n";
  print_types(out, report);
  out << "tokenizer     " << report.tokenizer << ", " << report.vocabulary << " tokens"
      << (report.adds_bos ? ", texts begin with BOS\n" : "\n");
  print_tokens(out, "BOS          ", report.bos);
  print_tokens(out, "ends of text ", report.ends);
  out << "chat format   "
      << (!report.chat_format.empty() ? report.chat_format
          : report.has_chat_template  ? "not recognised"
                                      : "none: the file has no chat template")
      << "\n"
      << "sampling      " << to_json(report.sampling).dump() << "\n";
  if (all_tensors) {
    for (const incipit::TensorReport& tensor : report.tensors) {
      out << tensor.name << "  " << tensor.type << "  " << shape_of(tensor) << "\n";
    }
  }
  for (const std::string& problem : report.problems) out << "not supported: " << problem << "\n";
  if (report.problems.empty()) out << "incipit runs this model\n";
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Says what is in a model file, and what of it incipit does not support.", "inspect");
  std::string model, json;
  bool all_tensors = false;
  app.add_option("--model", model, "GGUF file or Hugging Face directory")->required();
  app.add_option("--json", json, "Write everything as JSON to this file; -: to stdout");
  app.add_flag("--tensors", all_tensors, "List each tensor, too");
  return examples::run_main(app, argc, argv, [&] {
    const incipit::ModelReport report = incipit::inspect_model(model);
    print(examples::console(json), report, all_tensors);
    if (!json.empty()) examples::write_json(json, to_json(report), 2);
    return report.problems.empty() ? 0 : examples::kFailure;
  });
}
