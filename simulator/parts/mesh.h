// SPDX-License-Identifier: Apache-2.0
// Purpose: a mesh of width x height tiles with XY routing: a packet goes along its row first, then
// along its column. Each direction of each link is a Server.
//
//   const Time head = mesh.send({0, 0}, {5, 3}, core.now(), clock.cycles(8));
//
// A packet is switched through (wormhole): its head takes `hop` for each link, and each link is
// occupied from the head's departure for the packet's length. The caller adds the times at both
// ends (the way into the mesh, the last flit behind the head).
//
// Invariants: ME1 the way has |dx| + |dy| links, its order depends on nothing but its ends.
//             ME2 without other traffic the head takes hops * hop.
// Thread safety: one thread at a time. A core has the turn when it calls send.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "simulator/kernel/time.h"
#include "simulator/parts/server.h"

namespace tombolo::simulator {

struct Tile {
  std::uint32_t x = 0;
  std::uint32_t y = 0;
  bool operator==(const Tile&) const = default;
};

enum class Direction : std::uint8_t { east, west, south, north };  // x + 1, x - 1, y + 1, y - 1

class Mesh {
 public:
  Mesh(std::uint32_t width, std::uint32_t height, Duration hop)
      : width_(width), height_(height), hop_(hop), links_(std::size_t{width} * height) {
    TOMBOLO_CHECK(width > 0 && height > 0, "a mesh of {} x {} tiles", width, height);
  }

  static std::uint32_t hops(Tile from, Tile to) {
    return distance(from.x, to.x) + distance(from.y, to.y);
  }

  // Calls visit(tile, direction) for each link of the way, in order.
  template <class Visit>
  static void follow(Tile from, Tile to, Visit&& visit) {
    while (from.x != to.x) {
      const bool forth = from.x < to.x;
      visit(from, forth ? Direction::east : Direction::west);
      from.x += forth ? 1 : -1;
    }
    while (from.y != to.y) {
      const bool forth = from.y < to.y;
      visit(from, forth ? Direction::south : Direction::north);
      from.y += forth ? 1 : -1;
    }
  }

  // A packet that occupies each link for `length` sets out at `start`; when its head arrives.
  Time send(Tile from, Tile to, Time start, Duration length) {
    TOMBOLO_CHECK(contains(from) && contains(to), "({}, {}) to ({}, {}) in a mesh of {} x {} tiles",
                  from.x, from.y, to.x, to.y, width_, height_);
    Time head = start;
    follow(from, to, [&](Tile tile, Direction direction) {
      head = link_server(tile, direction).serve(head, length).begin + hop_;
    });
    return head;
  }

  bool contains(Tile t) const { return t.x < width_ && t.y < height_; }
  std::uint32_t width() const { return width_; }
  std::uint32_t height() const { return height_; }
  Duration hop() const { return hop_; }
  // The link that leaves `tile` towards `direction`; at an edge, one that nothing uses.
  const Server& link(Tile tile, Direction direction) const {
    return links_[index(tile)][static_cast<std::size_t>(direction)];
  }

 private:
  static std::uint32_t distance(std::uint32_t a, std::uint32_t b) { return a < b ? b - a : a - b; }
  std::size_t index(Tile t) const { return std::size_t{t.y} * width_ + t.x; }
  Server& link_server(Tile tile, Direction direction) {
    return links_[index(tile)][static_cast<std::size_t>(direction)];
  }

  std::uint32_t width_;
  std::uint32_t height_;
  Duration hop_;
  std::vector<std::array<Server, 4>> links_;
};

}  // namespace tombolo::simulator
