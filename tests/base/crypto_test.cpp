// SPDX-License-Identifier: Apache-2.0
#include "base/crypto.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "incipit/error.h"
#include "support/catch.h"

namespace incipit::base {
namespace {

std::string hex(Bytes bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    text += "0123456789abcdef"[std::to_integer<int>(byte) >> 4];
    text += "0123456789abcdef"[std::to_integer<int>(byte) & 15];
  }
  return text;
}

std::vector<std::byte> unhex(std::string_view text) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    bytes.push_back(std::byte(std::stoi(std::string(text.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

SecretKey key_of(std::byte fill) { return SecretKey(std::vector<std::byte>(32, fill)); }

TEST_CASE("SHA-256 gives the digests of FIPS 180-4's examples", "[crypto]") {
  CHECK(hex(sha256(as_bytes(""))) ==
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(hex(sha256(as_bytes("abc"))) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Sha256 pieces;
  CHECK(pieces.add(as_bytes("a")).add(as_bytes("bc")).finish() == sha256(as_bytes("abc")));
  CHECK(pieces.add(as_bytes("abc")).finish() == sha256(as_bytes("abc")));
}

TEST_CASE("HMAC-SHA-256 gives the digest of RFC 4231, case 2", "[crypto]") {
  CHECK(hex(hmac_sha256(as_bytes("Jefe"), as_bytes("what do ya want for nothing?"))) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST_CASE("HKDF gives the first block of RFC 5869's kind of expansion", "[crypto]") {
  // HMAC(HMAC(salt, key), purpose || 0x01), made by hand from the tested HMAC.
  const auto salt = unhex("000102030405060708090a0b0c");
  const SecretKey key = key_of(std::byte{0x0b});
  const Digest256 extracted = hmac_sha256(salt, key.bytes());
  CHECK(std::ranges::equal(key.derive(salt, "purpose").bytes(),
                           hmac_sha256(extracted, as_bytes("purpose\1"))));
  CHECK_FALSE(
      std::ranges::equal(key.derive(salt, "purpose").bytes(), key.derive(salt, "another").bytes()));
}

TEST_CASE("AES-256-GCM gives the ciphertext of McGrew and Viega, case 14", "[crypto]") {
  std::vector<std::byte> body(16);
  const SealTag tag = seal(key_of(std::byte{0}), {}, body);
  CHECK(hex(body) == "cea7403d4d606b6e074ec5d3baf39d18");
  CHECK(hex(tag) == "d0d1c8a799996bf0265b98b5d48ab919");
}

TEST_CASE("What was sealed opens with its key, header, body and tag only", "[crypto]") {
  const SecretKey key = key_of(std::byte{7});
  const std::string header = "header";
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{1000}}) {
    std::vector<std::byte> plain(size, std::byte{3});
    std::vector<std::byte> sealed = plain;
    const SealTag tag = seal(key, as_bytes(header), sealed);
    const auto opens = [&](const SecretKey& with, std::string_view head,
                           std::vector<std::byte> body, const SealTag& by) {
      return unseal(with, as_bytes(head), body, by) && body == plain;
    };
    CHECK(opens(key, header, sealed, tag));
    CHECK_FALSE(opens(key_of(std::byte{8}), header, sealed, tag));
    CHECK_FALSE(opens(key, "Header", sealed, tag));
    SealTag other = tag;
    other[15] ^= std::byte{1};
    CHECK_FALSE(opens(key, header, sealed, other));
    for (std::size_t i = 0; i < size; i += 97) {
      std::vector<std::byte> damaged = sealed;
      damaged[i] ^= std::byte{0x80};
      CHECK_FALSE(opens(key, header, damaged, tag));
    }
  }
}

TEST_CASE("A key has 32 bytes", "[crypto]") {
  CHECK_THROWS_AS(SecretKey(std::vector<std::byte>(31)), Error);
  CHECK_THROWS_AS(SecretKey(std::vector<std::byte>(33)), Error);
}

TEST_CASE("Random bytes do not repeat", "[crypto]") {
  std::set<std::array<std::byte, 16>> seen;
  for (int i = 0; i < 100; ++i) {
    std::array<std::byte, 16> bytes = {};
    fill_random(bytes);
    CHECK(seen.insert(bytes).second);
  }
}

}  // namespace
}  // namespace incipit::base
