// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_KV_PREFIX_CHAIN_H_
#define INCIPIT_KV_PREFIX_CHAIN_H_

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "base/crypto.h"
#include "incipit/sampling.h"

namespace incipit::kv {

using base::Digest256;

/// A random id that stands for a state of things until it is renewed.
using Epoch = std::array<std::byte, 16>;

/// SHA-256 over a namespace and all token ids from position 0 on, block by block: equal digests
/// mean equal prefixes. Element i stands for the first i blocks; so it has one more element than
/// `tokens` has whole blocks.
std::vector<Digest256> prefix_chain(std::string_view name_space, std::span<const TokenId> tokens);

}  // namespace incipit::kv

#endif  // INCIPIT_KV_PREFIX_CHAIN_H_
