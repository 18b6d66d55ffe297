// SPDX-License-Identifier: Apache-2.0
#include "base/crypto.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "base/check.h"

namespace incipit::base {
namespace {

template <auto Free>
struct Freer {
  template <class T>
  void operator()(T* object) const noexcept {
    Free(object);
  }
};
using CipherContext = std::unique_ptr<EVP_CIPHER_CTX, Freer<EVP_CIPHER_CTX_free>>;

// OpenSSL takes lengths as int.
constexpr std::size_t kPiece = std::size_t{1} << 30;

const unsigned char* input(Bytes bytes) noexcept {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

unsigned char* output(std::span<std::byte> bytes) noexcept {
  return reinterpret_cast<unsigned char*>(bytes.data());
}

void check(int result) {
  if (result != 1) throw_error(ErrorCode::kInternal, "OpenSSL refused an operation");
}

constexpr std::array<unsigned char, 12> kNonce = {};

// Header and body through the cipher; all but the tag.
void run_cipher(EVP_CIPHER_CTX* context, Bytes header, std::span<std::byte> body) {
  int done = 0;
  for (; !header.empty(); header = header.subspan(std::min(kPiece, header.size()))) {
    const Bytes piece = header.first(std::min(kPiece, header.size()));
    check(EVP_CipherUpdate(context, nullptr, &done, input(piece), static_cast<int>(piece.size())));
  }
  for (; !body.empty(); body = body.subspan(std::min(kPiece, body.size()))) {
    const std::span<std::byte> piece = body.first(std::min(kPiece, body.size()));
    check(EVP_CipherUpdate(context, output(piece), &done, input(piece),
                           static_cast<int>(piece.size())));
  }
}

CipherContext start_cipher(const SecretKey& key, bool encrypts) {
  CipherContext context(EVP_CIPHER_CTX_new());
  if (context == nullptr) throw std::bad_alloc();
  check(EVP_CipherInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, input(key.bytes()),
                          kNonce.data(), encrypts ? 1 : 0));
  return context;
}

}  // namespace

bool have_crypto() noexcept { return true; }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  if (context_ == nullptr) throw std::bad_alloc();
  check(EVP_DigestInit_ex(static_cast<EVP_MD_CTX*>(context_), EVP_sha256(), nullptr));
}

Sha256::~Sha256() { EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(context_)); }

Sha256& Sha256::add(Bytes bytes) {
  check(EVP_DigestUpdate(static_cast<EVP_MD_CTX*>(context_), bytes.data(), bytes.size()));
  return *this;
}

Digest256 Sha256::finish() {
  Digest256 digest;
  auto* const context = static_cast<EVP_MD_CTX*>(context_);
  check(EVP_DigestFinal_ex(context, output(digest), nullptr));
  check(EVP_DigestInit_ex(context, nullptr, nullptr));
  return digest;
}

Digest256 sha256(Bytes bytes) { return Sha256().add(bytes).finish(); }

Digest256 hmac_sha256(Bytes key, Bytes bytes) {
  INCIPIT_CHECK(key.size() <= kPiece);
  Digest256 digest;
  unsigned length = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), input(bytes), bytes.size(),
           output(digest), &length) == nullptr) {
    check(0);
  }
  INCIPIT_CHECK(length == digest.size());
  return digest;
}

SecretKey::SecretKey(Bytes bytes) {
  if (bytes.size() != bytes_.size()) {
    throw_error(ErrorCode::kInvalidArgument,
                "an encryption key has " + std::to_string(bytes.size()) + " bytes; it needs 32");
  }
  std::ranges::copy(bytes, bytes_.begin());
}

SecretKey::~SecretKey() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

SecretKey SecretKey::derive(Bytes salt, std::string_view purpose) const {
  // Extract, then the first and only block of expand, which is all that 32 bytes take.
  const SecretKey extracted(hmac_sha256(salt, bytes_));
  std::string info(purpose);
  info.push_back('\1');
  return SecretKey(hmac_sha256(extracted.bytes(), as_bytes(info)));
}

SealTag seal(const SecretKey& key, Bytes header, std::span<std::byte> body) {
  const CipherContext context = start_cipher(key, true);
  run_cipher(context.get(), header, body);
  int rest = 0;
  SealTag tag;
  check(EVP_CipherFinal_ex(context.get(), output(tag), &rest));
  check(EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, static_cast<int>(tag.size()),
                            tag.data()));
  return tag;
}

bool unseal(const SecretKey& key, Bytes header, std::span<std::byte> body, const SealTag& tag) {
  const CipherContext context = start_cipher(key, false);
  run_cipher(context.get(), header, body);
  SealTag expected = tag;
  check(EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, static_cast<int>(expected.size()),
                            expected.data()));
  int rest = 0;
  SealTag none;
  return EVP_CipherFinal_ex(context.get(), output(none), &rest) == 1;
}

}  // namespace incipit::base
