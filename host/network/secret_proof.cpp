// SPDX-License-Identifier: Apache-2.0
#include "host/network/secret_proof.h"

#include <sodium.h>
#include <sys/random.h>

#include <type_traits>

namespace tombolo::host {
namespace {

// The digest is SipHash-2-4 with 128 bits, a pseudorandom function made to authenticate short
// messages. Of libsodium it is the one that stands alone: linked statically it adds 3 KB to a
// library that is loaded into the user's program, where HMAC or BLAKE2b would add 200 KB, and
// libcrypto some MB. The kernel's HMAC (AF_ALG) is not there in most containers. It needs no
// sodium_init().
static_assert(sizeof(Secret) == crypto_shorthash_siphashx24_KEYBYTES);
static_assert(sizeof(Proof) == crypto_shorthash_siphashx24_BYTES);
static_assert(sizeof(Proof) == crypto_verify_16_BYTES);

struct Proven {
  ProvingRole role;
  Challenge challenge;
};
static_assert(std::has_unique_object_representations_v<Proven>);

const unsigned char* bytes_of(const void* data) { return static_cast<const unsigned char*>(data); }

}  // namespace

std::optional<std::array<std::byte, 16>> random_bytes() {
  std::array<std::byte, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return std::nullopt;
  return bytes;
}

Proof proof_of(const Secret& secret, ProvingRole role, const Challenge& challenge) {
  const Proven proven{role, challenge};
  Proof made{};
  (void)crypto_shorthash_siphashx24(reinterpret_cast<unsigned char*>(made.data()),
                                    bytes_of(&proven), sizeof proven, bytes_of(secret.data()));
  return made;
}

bool proves(const Proof& proof, const Secret& secret, ProvingRole role,
            const Challenge& challenge) {
  const Proof expected = proof_of(secret, role, challenge);
  return crypto_verify_16(bytes_of(proof.data()), bytes_of(expected.data())) == 0;
}

}  // namespace tombolo::host
