// SPDX-License-Identifier: Apache-2.0
#include "reference/fixture.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/bytes.h"
#include "base/file.h"

namespace incipit::test {
namespace {

constexpr std::uint64_t kMaxFileBytes = std::uint64_t{16} << 20;

template <class T>
std::vector<T> read_values(base::ByteReader& in, std::size_t count) {
  std::vector<T> values(count);
  for (T& value : values) value = in.read<T>();
  return values;
}

std::string read_name(base::ByteReader& in) {
  const base::Bytes bytes = in.take(in.read<std::uint32_t>());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

FixtureRow read_row(base::ByteReader& in, std::size_t top, std::size_t fixed) {
  FixtureRow row;
  row.log_sum_exp = in.read<float>();
  row.top_ids = read_values<TokenId>(in, top);
  row.top = read_values<float>(in, top);
  row.fixed = read_values<float>(in, fixed);
  return row;
}

double log_sum_exp(std::span<const float> logits) {
  const double largest = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  return largest + std::log(sum);
}

}  // namespace

std::optional<std::size_t> FixtureRow::rank(TokenId id) const {
  const auto found = std::find(top_ids.begin(), top_ids.end(), id);
  if (found == top_ids.end()) return std::nullopt;
  return static_cast<std::size_t>(found - top_ids.begin());
}

Fixture read_fixture(const std::filesystem::path& path) {
  const std::string file = base::read_text_file(path, kMaxFileBytes);
  base::ByteReader in(base::as_bytes(file), path.string());
  const base::Bytes magic = in.take(8);
  const base::Bytes expected = base::as_bytes("incipref");
  if (!std::equal(magic.begin(), magic.end(), expected.begin())) in.fail("this is no fixture");
  if (in.read<std::uint32_t>() != 1) in.fail("the fixture has an unknown version");

  Fixture fixture;
  fixture.vocabulary = in.read<std::uint32_t>();
  const std::size_t top = in.read<std::uint32_t>();
  const std::size_t fixed = in.read<std::uint32_t>();
  fixture.noise = in.read<float>();
  fixture.weight_bytes = in.read<std::uint64_t>();
  fixture.fixed_ids = read_values<TokenId>(in, fixed);
  fixture.cases.resize(in.read<std::uint32_t>());
  for (FixtureCase& fixture_case : fixture.cases) {
    fixture_case.name = read_name(in);
    fixture_case.prompt = in.read<std::uint32_t>();
    fixture_case.ids = read_values<TokenId>(in, in.read<std::uint32_t>());
    for (std::size_t i = 0; i + 1 < fixture_case.ids.size(); ++i) {
      fixture_case.rows.push_back(read_row(in, top, fixed));
    }
  }
  if (in.remaining() != 0) in.fail("the fixture goes on behind its last case");
  return fixture;
}

double largest_difference(const Fixture& fixture, const FixtureRow& expected,
                          std::span<const float> logits) {
  double largest = std::abs(log_sum_exp(logits) - static_cast<double>(expected.log_sum_exp));
  if (std::isnan(largest)) return std::numeric_limits<double>::infinity();
  const auto compare = [&](std::span<const TokenId> ids, std::span<const float> values) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const double logit = static_cast<double>(logits[static_cast<std::size_t>(ids[i])]);
      largest = std::max(largest, std::abs(logit - static_cast<double>(values[i])));
    }
  };
  compare(expected.top_ids, expected.top);
  compare(fixture.fixed_ids, expected.fixed);
  return largest;
}

}  // namespace incipit::test
