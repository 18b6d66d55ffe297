// SPDX-License-Identifier: Apache-2.0
#include "kv/entry.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "device/kv_layout.h"

namespace incipit::kv {
namespace {

constexpr std::size_t kLabelBytes = sizeof(LabelDigest) + sizeof(Epoch);
constexpr std::size_t kExtentFixedBytes =
    2 * sizeof(std::uint32_t) + sizeof(std::uint64_t) + sizeof(Digest256);
constexpr std::size_t kPointerFixedBytes = 2 * sizeof(Digest256) + 2 * sizeof(std::uint32_t);

// Copies values behind each other into bytes that are known to be enough.
class Output {
 public:
  explicit Output(std::span<std::byte> out) : out_(out) {}
  Output& put(base::Bytes bytes) {
    INCIPIT_CHECK(bytes.size() <= out_.size());
    std::ranges::copy(bytes, out_.begin());
    out_ = out_.subspan(bytes.size());
    return *this;
  }
  template <class T>
  requires std::is_arithmetic_v<T> Output& put(T value) {
    return put(std::as_bytes(std::span(&value, 1)));
  }
  Output& put(const EntryLabels& labels) {
    for (const std::vector<LabelEpoch>* some : {&labels.all, &labels.any}) {
      INCIPIT_CHECK(some->size() <= kMaxLabels);
      put(static_cast<std::uint32_t>(some->size()));
      for (const LabelEpoch& label : *some) put(label.label).put(label.epoch);
    }
    return *this;
  }
  std::span<std::byte> rest() const noexcept { return out_; }

 private:
  std::span<std::byte> out_;
};

EntryLabels get_labels(base::ByteReader& in) {
  EntryLabels labels;
  for (std::vector<LabelEpoch>* some : {&labels.all, &labels.any}) {
    const auto count = in.read<std::uint32_t>();
    if (count > kMaxLabels) in.fail("it names too many labels");
    some->resize(count);
    for (LabelEpoch& label : *some) {
      label.label = in.read<LabelDigest>();
      label.epoch = in.read<Epoch>();
    }
  }
  return labels;
}

// What `parse` makes of untrusted bytes; none where it finds them damaged.
template <class Parse>
auto parsed(base::Bytes body, Parse parse) -> decltype(parse(std::declval<base::ByteReader&>())) {
  try {
    base::ByteReader in(body, "record");
    auto result = parse(in);
    if (in.remaining() > 0) return std::nullopt;
    return result;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

LabelDigest label_digest(LabelKind kind, std::string_view name) {
  const auto number = static_cast<std::byte>(kind);
  const Digest256 whole = base::Sha256()
                              .add(base::as_bytes("incipit label 1"))
                              .add(base::Bytes(&number, 1))
                              .add(base::as_bytes(name))
                              .finish();
  LabelDigest digest;
  std::copy_n(whole.begin(), digest.size(), digest.begin());
  return digest;
}

std::size_t EntryLabels::bytes() const noexcept {
  return 2 * sizeof(std::uint32_t) + (all.size() + any.size()) * kLabelBytes;
}

std::size_t ExtentFacts::facts_bytes() const noexcept {
  return kExtentFixedBytes + labels.bytes() + tokens.size_bytes();
}

std::size_t most_extent_bytes(std::size_t blocks, std::uint64_t block_bytes) noexcept {
  return kExtentFixedBytes + 2 * (sizeof(std::uint32_t) + kMaxLabels * kLabelBytes) +
         blocks * (sizeof(TokenId[device::kBlockTokens]) + block_bytes);
}

std::span<std::byte> write_extent(const ExtentFacts& facts, std::span<std::byte> body) {
  INCIPIT_CHECK(facts.blocks <= kMaxExtentBlocks &&
                facts.tokens.size() == facts.blocks * device::kBlockTokens &&
                body.size() == facts.facts_bytes() + facts.payload_bytes());
  return Output(body)
      .put(facts.first_block)
      .put(facts.blocks)
      .put(facts.block_bytes)
      .put(facts.parent)
      .put(facts.labels)
      .put(std::as_bytes(facts.tokens))
      .rest();
}

std::optional<Extent> read_extent(base::Bytes body, const ExtentFacts& wanted) {
  return parsed(body, [&](base::ByteReader& in) -> std::optional<Extent> {
    const auto first_block = in.read<std::uint32_t>();
    const auto blocks = in.read<std::uint32_t>();
    const auto block_bytes = in.read<std::uint64_t>();
    const auto parent = in.read<Digest256>();
    if (first_block != wanted.first_block || blocks < wanted.blocks || blocks > kMaxExtentBlocks ||
        block_bytes != wanted.block_bytes || parent != wanted.parent) {
      return std::nullopt;
    }
    Extent extent;
    extent.labels = get_labels(in);
    const base::Bytes tokens = in.take(blocks * sizeof(TokenId[device::kBlockTokens]));
    extent.payload = in.take(blocks * block_bytes).first(wanted.payload_bytes());
    if (!std::ranges::equal(tokens.first(wanted.tokens.size_bytes()),
                            std::as_bytes(wanted.tokens))) {
      return std::nullopt;
    }
    return extent;
  });
}

std::size_t Pointer::bytes() const noexcept { return kPointerFixedBytes + labels.bytes(); }

void write_pointer(const Pointer& pointer, std::span<std::byte> body) {
  INCIPIT_CHECK(body.size() == pointer.bytes());
  Output(body)
      .put(pointer.prefix)
      .put(pointer.extent)
      .put(pointer.first_block)
      .put(pointer.blocks)
      .put(pointer.labels);
}

std::optional<Pointer> read_pointer(base::Bytes body, const Digest256& prefix) {
  return parsed(body, [&](base::ByteReader& in) -> std::optional<Pointer> {
    Pointer pointer;
    pointer.prefix = in.read<Digest256>();
    pointer.extent = in.read<Digest256>();
    pointer.first_block = in.read<std::uint32_t>();
    pointer.blocks = in.read<std::uint32_t>();
    pointer.labels = get_labels(in);
    if (pointer.prefix != prefix) return std::nullopt;
    return pointer;
  });
}

}  // namespace incipit::kv
