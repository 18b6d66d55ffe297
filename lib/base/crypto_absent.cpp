// SPDX-License-Identifier: Apache-2.0
// Stands in for crypto.cpp in a build without OpenSSL.
#include "base/check.h"
#include "base/crypto.h"

namespace incipit::base {
namespace {

[[noreturn]] void refuse() {
  throw_error(ErrorCode::kInvalidArgument,
              "this build of incipit has no OpenSSL, which cold tiers and encryption need; "
              "install libssl-dev and configure with INCIPIT_WITH_OPENSSL=ON");
}

}  // namespace

bool have_crypto() noexcept { return false; }

Sha256::Sha256() : context_(nullptr) { refuse(); }
Sha256::~Sha256() = default;
Sha256& Sha256::add(Bytes) { refuse(); }
Digest256 Sha256::finish() { refuse(); }
Digest256 sha256(Bytes) { refuse(); }
Digest256 hmac_sha256(Bytes, Bytes) { refuse(); }
SecretKey::SecretKey(Bytes) { refuse(); }
SecretKey::~SecretKey() = default;
SecretKey SecretKey::derive(Bytes, std::string_view) const { refuse(); }
SealTag seal(const SecretKey&, Bytes, std::span<std::byte>) { refuse(); }
bool unseal(const SecretKey&, Bytes, std::span<std::byte>, const SealTag&) { refuse(); }

}  // namespace incipit::base
