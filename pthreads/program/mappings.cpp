// SPDX-License-Identifier: Apache-2.0
#include "pthreads/program/mappings.h"

#include <new>
#include <utility>

#include "dsm/threads/runtime_hooks.h"
#include "host/memory/page.h"

namespace tombolo::dsm {
namespace {

std::uint64_t bits(const void* at) { return reinterpret_cast<std::uint64_t>(at); }

}  // namespace

// MPP2
class Mappings::Held {
 public:
  explicit Held(Mappings& all) : all_(all) { must(all_.memory_.acquire(all_.lock_)); }
  ~Held() { must(all_.memory_.release(all_.lock_)); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  Mappings& all_;
};

Mappings::Piece* Mappings::first() { return reinterpret_cast<Piece*>(memory_.load(list_)); }

Mappings::Piece* Mappings::new_piece(const host::AddressRange& pages, std::byte* block) {
  void* const place = heap_.allocate(sizeof(Piece), alignof(Piece), false);
  return place == nullptr ? nullptr : new (place) Piece{nullptr, pages, block};
}

void Mappings::put_first(Piece* piece) {
  piece->next = first();
  memory_.store(list_, bits(piece));
}

std::byte* Mappings::map(std::size_t bytes) {
  auto* const block = static_cast<std::byte*>(heap_.allocate(bytes, host::page_bytes(), true));
  if (block == nullptr) return nullptr;
  Piece* const piece = new_piece({bits(block), bits(block) + bytes}, block);
  if (piece == nullptr) {
    heap_.free(block);
    return nullptr;
  }
  const Held held(*this);
  put_first(piece);
  return block;
}

// A part in the middle makes two pieces. Without memory for the second one both ends stay mapped
// with it, and the block with them.
void Mappings::cut(Piece& piece, const host::AddressRange& part) {
  if (part.low == piece.pages.low) {
    piece.pages.low = part.high;
  } else if (part.high == piece.pages.high) {
    piece.pages.high = part.low;
  } else if (Piece* const behind = new_piece({part.high, piece.pages.high}, piece.block);
             behind != nullptr) {
    piece.pages.high = part.low;
    put_first(behind);
  }
}

bool Mappings::is_in_use(const std::byte* block) {
  for (const Piece* piece = first(); piece != nullptr; piece = piece->next)
    if (piece->block == block) return true;
  return false;
}

void Mappings::unmap(const host::AddressRange& range, void (*discard)(const host::AddressRange&)) {
  Piece* gone = nullptr;
  {
    const Held held(*this);
    Piece* before = nullptr;
    for (Piece *piece = first(), *next = nullptr; piece != nullptr; piece = next) {
      next = piece->next;
      const host::AddressRange part = host::common_part(piece->pages, range);
      if (part != piece->pages) {
        before = piece;
        if (part.empty()) continue;
        cut(*piece, part);
        if (discard != nullptr) discard(part);
        continue;
      }
      if (before != nullptr)
        before->next = next;
      else
        memory_.store(list_, bits(next));
      piece->next = std::exchange(gone, piece);
    }
    // MPP1: the last piece of a block takes it along.
    for (Piece* piece = gone; piece != nullptr; piece = piece->next) {
      bool is_needed = is_in_use(piece->block);
      for (const Piece* other = piece->next; other != nullptr; other = other->next)
        is_needed = is_needed || other->block == piece->block;
      if (is_needed) piece->block = nullptr;
    }
  }
  while (gone != nullptr) {
    Piece* const piece = std::exchange(gone, gone->next);
    if (piece->block != nullptr)
      heap_.free(piece->block);
    else if (discard != nullptr)
      discard(piece->pages);
    heap_.free(piece);
  }
}

bool Mappings::holds(const host::AddressRange& range) {
  const Held held(*this);
  for (std::uint64_t at = range.low; at < range.high;) {
    const Piece* piece = first();
    while (piece != nullptr && (at < piece->pages.low || at >= piece->pages.high))
      piece = piece->next;
    if (piece == nullptr) return false;
    at = piece->pages.high;
  }
  return true;
}

}  // namespace tombolo::dsm
