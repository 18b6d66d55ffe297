// SPDX-License-Identifier: Apache-2.0
#include "kv/prefix_chain.h"

#include "device/kv_layout.h"

namespace incipit::kv {

std::vector<Digest256> prefix_chain(std::string_view name_space, std::span<const TokenId> tokens) {
  constexpr std::size_t kBlock = device::kBlockTokens;
  std::vector<Digest256> chain;
  chain.reserve(tokens.size() / kBlock + 1);
  base::Sha256 hash;
  chain.push_back(
      hash.add(base::as_bytes("incipit prefix 1")).add(base::as_bytes(name_space)).finish());
  for (; tokens.size() >= kBlock; tokens = tokens.subspan(kBlock)) {
    chain.push_back(hash.add(chain.back()).add(std::as_bytes(tokens.first(kBlock))).finish());
  }
  return chain;
}

}  // namespace incipit::kv
