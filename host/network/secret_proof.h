// SPDX-License-Identifier: Apache-2.0
// Purpose: proves to the other end of a connection that this one knows a secret, without sending
// it. Each end draws a nonce, and each proves itself by a keyed digest of both nonces.
//
// Invariants: PRF1 a proof depends on the role of its sender, so one that is sent back proves
//                  nothing.
//             PRF2 a proof depends on the nonces of both ends, so one that was recorded proves
//                  nothing to an end that draws its nonce anew.
// Thread safety: yes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace tombolo::host {

using Secret = std::array<std::byte, 16>;
using Nonce = std::array<std::byte, 16>;
using Proof = std::array<std::byte, 16>;

// Random bytes of the kernel. Empty: it gives none, and errno says why.
std::optional<std::array<std::byte, 16>> random_bytes();

enum class ProvingRole : std::uint32_t { center = 1, member = 2 };

// Trivially copyable and without padding: the digest is of its bytes.
struct Challenge {
  Nonce of_center{};
  Nonce of_member{};
  std::int32_t member = 0;  // its number
};

Proof proof_of(const Secret& secret, ProvingRole role, const Challenge& challenge);
// Compares the proof in a time that does not depend on its bytes.
bool proves(const Proof& proof, const Secret& secret, ProvingRole role, const Challenge& challenge);

}  // namespace tombolo::host
