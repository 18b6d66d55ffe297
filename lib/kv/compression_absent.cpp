// SPDX-License-Identifier: Apache-2.0
// Stands in for compression.cpp in a build without zstd.
#include "base/check.h"
#include "kv/compression.h"

namespace incipit::kv {

bool have_compression() noexcept { return false; }

std::optional<std::size_t> compress(std::span<std::byte>, std::size_t) {
  base::throw_error(ErrorCode::kInvalidArgument,
                    "this build of incipit has no zstd, which Tier::compress needs; install "
                    "libzstd-dev and configure with INCIPIT_WITH_ZSTD=ON");
}

std::optional<Planes> decompress(base::Bytes, std::size_t) { return std::nullopt; }

void join(base::Bytes, std::size_t, std::span<std::byte>) noexcept {}

}  // namespace incipit::kv
