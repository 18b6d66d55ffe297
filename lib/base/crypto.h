// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BASE_CRYPTO_H_
#define INCIPIT_BASE_CRYPTO_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"

// Digests that prove, keys, and sealed bytes, all by OpenSSL. In a build without it every function
// here throws Error{kInvalidArgument} that says so; have_crypto() tells beforehand.

namespace incipit::base {

bool have_crypto() noexcept;

using Digest256 = std::array<std::byte, 32>;

/// SHA-256 of bytes that come in pieces. Usable again after finish().
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  Sha256& add(Bytes bytes);
  Digest256 finish();

 private:
  void* context_;
};

Digest256 sha256(Bytes bytes);
Digest256 hmac_sha256(Bytes key, Bytes bytes);

/// A key of 256 bits; overwritten when it goes.
class SecretKey {
 public:
  SecretKey() = default;
  /// Throws Error{kInvalidArgument} where `bytes` are not 32.
  explicit SecretKey(Bytes bytes);
  ~SecretKey();
  SecretKey(const SecretKey&) = default;
  SecretKey& operator=(const SecretKey&) = default;

  Bytes bytes() const noexcept { return bytes_; }
  /// HKDF-SHA-256 (RFC 5869): a key for one purpose that says nothing about this one.
  SecretKey derive(Bytes salt, std::string_view purpose) const;

 private:
  Digest256 bytes_ = {};
};

using SealTag = std::array<std::byte, 16>;

/// AES-256-GCM in place. The nonce is zero: a key must seal once only.
SealTag seal(const SecretKey& key, Bytes header, std::span<std::byte> body);
/// The opposite; false, and anything in `body`, where key, header, body or tag are not those.
bool unseal(const SecretKey& key, Bytes header, std::span<std::byte> body, const SealTag& tag);

/// Bytes from the system that nobody can guess. Throws Error{kInternal} where it has none.
void fill_random(std::span<std::byte> out);

}  // namespace incipit::base

#endif  // INCIPIT_BASE_CRYPTO_H_
