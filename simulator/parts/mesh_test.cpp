// SPDX-License-Identifier: Apache-2.0
// Ways through the mesh, their times, and the cost of crossing traffic.
#include "simulator/parts/mesh.h"

#include <gtest/gtest.h>

#include <string>

namespace tombolo::simulator {
namespace {

constexpr Duration ns(std::int64_t n) { return Duration::nanoseconds(n); }
constexpr Time at_ns(std::int64_t n) { return Time::after_start(ns(n)); }

std::string way(Tile from, Tile to) {
  std::string links;
  Mesh::follow(from, to, [&](Tile t, Direction d) {
    links += fmt::format("{}{}{} ", t.x, t.y, "EWSN"[static_cast<int>(d)]);
  });
  return links;
}

TEST(Mesh, RoutesAlongTheRowFirst) {
  EXPECT_EQ(way({0, 0}, {2, 1}), "00E 10E 20S ");
  EXPECT_EQ(way({2, 1}, {0, 0}), "21W 11W 01N ");
  EXPECT_EQ(way({5, 3}, {5, 1}), "53N 52N ");
  EXPECT_EQ(way({4, 2}, {4, 2}), "");
}

TEST(Mesh, M1M2EveryWayHasItsDistanceInLinksAndTakesThatManyHops) {
  for (std::uint32_t from = 0; from < 24; ++from) {
    for (std::uint32_t to = 0; to < 24; ++to) {
      const Tile a{from % 6, from / 6};
      const Tile b{to % 6, to / 6};
      Mesh mesh(6, 4, ns(5));
      std::uint32_t links = 0;
      Tile last = a;
      Mesh::follow(a, b, [&](Tile t, Direction) {
        ++links;
        last = t;
        EXPECT_TRUE(mesh.contains(t));
      });
      EXPECT_EQ(links, Mesh::hops(a, b));
      EXPECT_LE(Mesh::hops(last, b), 1u);
      EXPECT_EQ(mesh.send(a, b, at_ns(7), ns(3)), at_ns(7) + ns(5) * links);
    }
  }
}

TEST(Mesh, PacketsOverOneLinkWaitForEachOther) {
  Mesh mesh(4, 1, ns(5));
  EXPECT_EQ(mesh.send({0, 0}, {3, 0}, at_ns(0), ns(20)), at_ns(15));
  EXPECT_EQ(mesh.send({1, 0}, {2, 0}, at_ns(6), ns(20)), at_ns(30)) << "behind the first: 5 + 20";
  EXPECT_EQ(mesh.link({1, 0}, Direction::east).served(), 2u);
  EXPECT_EQ(mesh.link({1, 0}, Direction::east).waited(), ns(19));
}

TEST(Mesh, OppositeAndSeparateWaysDoNotDisturbEachOther) {
  Mesh mesh(3, 3, ns(5));
  mesh.send({0, 0}, {2, 0}, at_ns(0), ns(50));
  EXPECT_EQ(mesh.send({2, 0}, {0, 0}, at_ns(0), ns(50)), at_ns(10));
  EXPECT_EQ(mesh.send({0, 1}, {2, 1}, at_ns(0), ns(50)), at_ns(10));
}

TEST(MeshDeathTest, ATileOutsideIsAMistake) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(Mesh(2, 2, ns(1)).send({0, 0}, {2, 0}, Time(), ns(1)), "in a mesh of 2 x 2 tiles");
}

}  // namespace
}  // namespace tombolo::simulator
