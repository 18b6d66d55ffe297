// SPDX-License-Identifier: Apache-2.0
// Which rows of a batch go through the last layer changes nothing but the time.
#include "model/transformer.h"

#include <array>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>

#include "base/file.h"
#include "cpu/cpu_device.h"
#include "model/model_file.h"
#include "support/catch.h"
#include "support/forwarding_device.h"
#include "support/temporary_directory.h"
#include "support/tiny_model.h"

using namespace incipit;
using namespace incipit::test;

namespace {

using Rows = std::map<std::uint32_t, std::vector<float>>;  // logits by batch row

/// Two sequences of a model in a pool: 21 tokens behind 18 that were there, and 17 new ones.
class Batch {
 public:
  Batch(const std::filesystem::path& file, device::Device& device) : device_(device) {
    const auto opened = model::open_model(file);
    transformer_ = std::make_unique<model::Transformer>(device, opened->config(),
                                                        opened->load_weights(device, {}));
    const model::ModelConfig& config = transformer_->config();
    layout_ = device::KvLayout(
        {config.layers, config.kv_heads, config.head_dim, device.info().default_kv_type});
    for (std::size_t i = 0; i < 18 + kRows; ++i) {
      ids_.push_back(static_cast<TokenId>((i * 37 + 11) % config.vocabulary));
    }
  }

  static constexpr std::uint32_t kFirst = 21, kRows = 21 + 17;

  /// The logits of the rows that are wanted, in an otherwise empty pool.
  Rows run(const std::vector<std::uint32_t>& wanted) {
    memory_ = device_.allocate(kBlocks * layout_.block_bytes());
    forward({device::SequenceRows{a_, 0, 18}}, 0, {});
    return forward({device::SequenceRows{a_, 18, kFirst}, device::SequenceRows{b_, 0, 17}}, 18,
                   wanted);
  }

  /// What is in the pool.
  std::vector<std::byte> kv() const {
    const auto bytes = memory_.as<const std::byte>();
    return {bytes.begin(), bytes.end()};
  }

  Rows forward(const std::vector<device::SequenceRows>& sequences, std::size_t first_id,
               const std::vector<std::uint32_t>& wanted) {
    std::size_t rows = 0;
    for (const device::SequenceRows& sequence : sequences) rows += sequence.rows;
    Rows out;
    transformer_->forward({memory_.data(), kBlocks, layout_},
                          {std::span(ids_).subspan(first_id, rows), sequences, wanted},
                          [&](std::size_t first, tensor::ConstMatrix logits) {
                            for (std::size_t i = 0; i < logits.rows; ++i) {
                              const float* const row = logits.row(i);
                              out[wanted[first + i]].assign(row, row + logits.columns);
                            }
                          });
    return out;
  }

 private:
  static constexpr std::size_t kBlocks = 5;

  device::Device& device_;
  std::unique_ptr<model::Transformer> transformer_;
  device::KvLayout layout_;
  device::Buffer memory_;
  std::vector<TokenId> ids_;
  const std::array<device::BlockId, 3> a_ = {4, 0, 2};
  const std::array<device::BlockId, 2> b_ = {1, 3};
};

std::vector<std::uint32_t> all_rows() {
  std::vector<std::uint32_t> rows(Batch::kRows);
  std::iota(rows.begin(), rows.end(), 0u);
  return rows;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

const std::vector<std::vector<std::uint32_t>> kWanted = {
    {}, {0}, {20}, {21}, {37}, {20, 37}, {3, 9}, {9, 20, 21}, {0, 36}, {19, 20, 35, 36, 37}};

}  // namespace

TEST_CASE("logits of some rows are those of all rows, and all rows leave their KV") {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "model.gguf";
  for (const Family family : {Family::kLlama, Family::kQwen2, Family::kQwen3}) {
    for (const std::size_t layers : {1u, 2u}) {
      make_tiny_model({.family = family, .layers = layers, .type = tensor::DType::kQ4_1})
          .write_gguf(path);
      const auto device = cpu::make_cpu_device({.threads = 2});
      Batch batch(path, *device);
      const Rows expected = batch.run(all_rows());
      const auto kv = batch.kv();
      REQUIRE(expected.size() == Batch::kRows);
      for (const auto& wanted : kWanted) {
        CAPTURE(static_cast<int>(family), layers, wanted);
        const Rows got = batch.run(wanted);
        CHECK(got.size() == wanted.size());
        for (const std::uint32_t row : wanted) CHECK(same_bits(got.at(row), expected.at(row)));
        CHECK(batch.kv() == kv);
      }
    }
  }
}

TEST_CASE("layers with a window keep their own RoPE where the window hides nothing") {
  // The window is longer than the batch, so that only its angles can tell such a layer from others.
  const TemporaryDirectory directory;
  const auto original = std::filesystem::path(INCIPIT_TEST_DATA) / "reference" / "tiny-gemma3";
  const auto device = cpu::make_cpu_device({.threads = 2});
  const auto logits = [&](std::size_t context) {
    const auto path = directory.path() / std::to_string(context);
    std::filesystem::copy(original, path);
    auto config = nlohmann::json::parse(base::read_text_file(path / "config.json", 1 << 20));
    config["sliding_window"] = 64;
    config["max_position_embeddings"] = context;
    write_file(path / "config.json", config.dump());
    Batch batch(path, *device);
    return std::pair(batch.run(all_rows()), batch.run({20, 37}));
  };
  const auto [expected, expected_tail] = logits(512);
  for (const std::size_t context : {63u, 64u, 65u}) {
    const auto [all, tail] = logits(context);
    REQUIRE(all.size() == Batch::kRows);
    for (const auto& [row, values] : all) CHECK(same_bits(values, expected.at(row)));
    for (const auto& [row, values] : tail) CHECK(same_bits(values, expected_tail.at(row)));
  }
}

TEST_CASE("a batch without rows is no work") {
  const TemporaryDirectory directory;
  make_tiny_model().write_gguf(directory.path() / "model.gguf");
  const auto device = cpu::make_cpu_device({.threads = 1});
  Batch batch(directory.path() / "model.gguf", *device);
  batch.run({0});
  CHECK(batch.forward({}, 0, {}).empty());
}

TEST_CASE("logits in a device's own memory are downloaded") {
  const TemporaryDirectory directory;
  make_tiny_model().write_gguf(directory.path() / "model.gguf");
  const auto device = cpu::make_cpu_device({.threads = 1});
  ForwardingDevice apart(cpu::make_cpu_device({.threads = 1}));
  const Rows expected = Batch(directory.path() / "model.gguf", *device).run(all_rows());
  const Rows got = Batch(directory.path() / "model.gguf", apart).run(all_rows());
  CHECK(apart.downloads == 2);  // in slices of 32 rows
  CHECK(apart.steps == 2);
  REQUIRE(got.size() == expected.size());
  for (const auto& [row, logits] : expected) CHECK(same_bits(got.at(row), logits));
}

TEST_CASE("a step that fails ends all the same") {
  const TemporaryDirectory directory;
  make_tiny_model().write_gguf(directory.path() / "model.gguf");
  ForwardingDevice apart(cpu::make_cpu_device({.threads = 1}));
  Batch batch(directory.path() / "model.gguf", apart);
  const Rows expected = batch.run({3});
  apart.no_memory = true;
  CHECK_THROWS_AS(batch.run({3}), Error);
  apart.no_memory = false;
  CHECK(apart.steps == 3);
  CHECK(same_bits(batch.run({3}).at(3), expected.at(3)));
}
