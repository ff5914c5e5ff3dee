// SPDX-License-Identifier: Apache-2.0
// Purpose: private to the links of this folder: a message as it lies in memory of two cores.
// Thread safety: plain values.
#pragma once

#include <cstdint>
#include <cstring>

#include "machine/optional.h"
#include "svp/links/link.h"

namespace tombolo::svp::detail {

// In front of the bytes of a message.
struct Letter {
  std::uint32_t bytes = 0;
  std::uint32_t kind = 0;
  std::uint32_t opener = 0;
  std::uint32_t number = 0;
};
static_assert(sizeof(Letter) == 16);

// Where the bytes of a letter can be looked at in place, they are not copied.
template <class C>
inline constexpr bool reads_in_place = C::properties.coherent && !machine::HasNoViews<C>;

// Writes a letter and its bytes, and publishes them. Its memory is mapped, so nothing fails.
template <machine::Core C>
void write_letter(C& core, machine::DataPlace at, const Letter& letter,
                  std::span<const std::byte> bytes) {
  if constexpr (reads_in_place<C>) {
    std::byte* const view = core.view(at);
    std::memcpy(view, &letter, sizeof letter);
    if (!bytes.empty()) std::memcpy(view + sizeof letter, bytes.data(), bytes.size());
  } else {
    (void)core.write(at, &letter, sizeof letter).ok();
    if (!bytes.empty()) (void)core.write(at + sizeof letter, bytes.data(), bytes.size()).ok();
  }
  // R4: before the word that tells of the letter.
  core.publish(at, sizeof letter + bytes.size());
}

// R5: after the word that tells of the letter was loaded.
template <machine::Core C>
Letter read_letter(C& core, machine::DataPlace at) {
  Letter letter;
  core.refresh(at, sizeof letter);
  if constexpr (reads_in_place<C>)
    std::memcpy(&letter, core.view(at), sizeof letter);
  else
    (void)core.read(at, &letter, sizeof letter).ok();
  return letter;
}

// Its bytes; in `scratch`, where they cannot be looked at in place.
template <machine::Core C>
std::span<const std::byte> read_bytes(C& core, machine::DataPlace at, const Letter& letter,
                                      std::byte* scratch) {
  const machine::DataPlace from = at + sizeof letter;
  core.refresh(from, letter.bytes);  // R5, as above
  if constexpr (reads_in_place<C>) return {core.view(from), letter.bytes};
  if (letter.bytes != 0) (void)core.read(from, scratch, letter.bytes).ok();
  return {scratch, letter.bytes};
}

inline Message message_of(const Letter& letter, Site sender, std::span<const std::byte> bytes) {
  return {.channel = {.opener = letter.opener, .peer = sender, .number = letter.number},
          .kind = static_cast<Kind>(letter.kind),
          .bytes = bytes};
}

}  // namespace tombolo::svp::detail
