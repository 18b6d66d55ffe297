// SPDX-License-Identifier: Apache-2.0
#include "incipit/inspect.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "device/kv_layout.h"
#include "incipit/error.h"
#include "model/files.h"
#include "model/gguf.h"
#include "model/gguf_model.h"
#include "model/hugging_face.h"
#include "model/model_file.h"
#include "model/safetensors.h"
#include "text/chat_format.h"

namespace incipit::model {
namespace {

/// Fills a report part by part. Each part stands alone: one that fails leaves a problem.
class Inspector {
 public:
  explicit Inspector(ModelReport& report) : report_(report) {}

  void attempt(const std::function<void()>& part) {
    try {
      part();
    } catch (const Error& error) {
      if (seen_.insert(error.what()).second) report_.problems.emplace_back(error.what());
    }
  }

  void add_tensors(std::span<const TensorInfo> tensors) {
    for (const TensorInfo& tensor : tensors) {
      TensorReport& to = report_.tensors.emplace_back();
      to.name = tensor.name;
      to.type = tensor.unread   ? tensor.unread->name
                : tensor.stored ? tensor::name(*tensor.stored)
                                : tensor::name(tensor.type);
      if (tensor.stored) to.computed_as = tensor::name(tensor.type);
      to.shape = tensor.shape;
      to.bytes = tensor.file_bytes();
      std::uint64_t elements = 1;
      for (const std::uint64_t dimension : tensor.shape) elements *= dimension;
      report_.parameters += elements;
    }
    report_.converted = converted_types(tensors);
  }

  void add_config(const ModelConfig& config) {
    report_.name = config.name;
    report_.architecture = config.architecture;
    report_.context = config.context;
    report_.layers = config.layers;
    report_.width = config.width;
    report_.heads = config.heads;
    report_.kv_heads = config.kv_heads;
    report_.head_dim = config.head_dim;
    report_.vocabulary = config.vocabulary;
    const auto kv_bytes = [&](device::KvFormat type) {
      const device::KvLayout layout({config.layers, config.kv_heads, config.head_dim, type});
      return layout.block_bytes() / device::kBlockTokens;
    };
    report_.kv_bytes_per_token_f32 = kv_bytes(device::KvFormat::kF32);
    report_.kv_bytes_per_token_16 = kv_bytes(device::KvFormat::kF16);
    report_.kv_bytes_per_token_int8 = kv_bytes(device::KvFormat::kInt8);
  }

  void add_tokenizer(const text::TokenizerSpec& spec) {
    const auto token = [&](TokenId id) -> SpecialToken {
      return {id, spec.tokens.at(static_cast<std::size_t>(id))};
    };
    report_.adds_bos = spec.add_bos;
    if (spec.bos >= 0) report_.bos.push_back(token(spec.bos));
    for (const TokenId end : spec.ends) report_.ends.push_back(token(end));
    attempt([&] { text::Tokenizer checked(spec); });
  }

  void add_chat(const text::ChatTemplate& chat) {
    report_.has_chat_template = !chat.text.empty();
    const auto format = text::recognize_chat_format(chat);
    if (format) {
      report_.chat_format = format->name();
    } else if (report_.has_chat_template) {
      report_.problems.push_back(
          "The chat template is none of the formats that incipit knows (" +
          std::string(text::known_chat_formats()) +
          "): messages need EngineOptions::chat_renderer; texts work without one.");
    }
  }

 private:
  ModelReport& report_;
  std::set<std::string> seen_;
};

void inspect_gguf(const std::filesystem::path& path, ModelReport& report) {
  report.format = "GGUF";
  Inspector inspector(report);
  std::optional<GgufHeader> header;
  inspector.attempt([&] { header = read_gguf_header(base::ReadFile(path)); });
  if (!header) return;
  const GgufMetadata& metadata = header->metadata;
  inspector.attempt([&] {
    report.name = metadata.find_text("general.name").value_or("");
    report.architecture = metadata.find_text("general.architecture").value_or("");
  });
  inspector.attempt([&] {
    std::vector<base::ReadFile> files;
    files.emplace_back(path);
    const TensorSource tensors(std::move(files), std::move(header->tensors));
    inspector.add_tensors(tensors.tensors());
    inspector.add_config(read_gguf_config(metadata, tensors));
  });
  inspector.attempt([&] {
    report.tokenizer = metadata.find_text("tokenizer.ggml.model").value_or("");
    const auto pre = metadata.find_text("tokenizer.ggml.pre");
    if (pre) report.tokenizer += " (" + std::string(*pre) + ")";
    const text::TokenizerSpec spec = read_gguf_tokenizer(metadata);
    inspector.add_tokenizer(spec);
  });
}

void inspect_directory(const std::filesystem::path& path, ModelReport& report) {
  report.format = "Hugging Face";
  Inspector inspector(report);
  std::optional<TensorSource> tensors;
  inspector.attempt([&] {
    tensors = open_safetensors(path);
    inspector.add_tensors(tensors->tensors());
  });
  if (!is_present(path / "config.json")) return;
  inspector.attempt([&] {
    const JsonFile file(path / "config.json");
    report.architecture = file.root().find_text("model_type").value_or("");
    if (tensors) inspector.add_config(read_hugging_face_config(file.root(), *tensors));
    report.tokenizer = is_present(path / "tokenizer.json") ? "tokenizer.json" : "vocab.json";
    inspector.attempt([&] {
      const text::TokenizerSpec spec = read_hugging_face_tokenizer(path, file.root());
      inspector.add_tokenizer(spec);
    });
  });
}

}  // namespace
}  // namespace incipit::model

namespace incipit::inline v0 {

ModelReport inspect_model(const std::filesystem::path& path) {
  ModelReport report;
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (path.empty() || !std::filesystem::exists(status)) {
    model::fail(path, "there is no such file or directory");
  }
  if (std::filesystem::is_directory(status)) {
    model::inspect_directory(path, report);
  } else {
    model::inspect_gguf(path, report);
  }
  // Opened as an engine opens it: whatever it would refuse, and what only a whole model says.
  model::Inspector inspector(report);
  try {
    const auto file = model::open_model(path);
    inspector.add_chat(file->chat_template());
    report.sampling = file->sampling();
  } catch (const Error& refused) {
    if (std::find(report.problems.begin(), report.problems.end(), refused.what()) ==
        report.problems.end()) {
      report.problems.emplace_back(refused.what());
    }
  }
  return report;
}

}  // namespace incipit::inline v0
