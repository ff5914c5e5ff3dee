// SPDX-License-Identifier: Apache-2.0
#include "mpi/processes/key_holders.h"

#include <fmt/format.h>

#include <string>

#include "host/mpi/host.h"

namespace tombolo::mpi {
namespace {

constexpr int tag = 0x7b2;  // the program has sent no message yet

// The list has one of these for each rank.
constexpr char without = 0;
constexpr char is_told = 1;
constexpr char asks = 2;

std::string key_of(int rank, bool by_session) {
  return fmt::format("tombolo-{}{}", by_session ? "session-" : "", rank);
}

// The first of the ranks that are told: the own rank at the latest.
int first_holder(const runtime::WorldName& world) {
  int rank = 0;
  while (rank < world.rank && !world.keys.has(key_of(rank, false))) ++rank;
  return rank;
}

std::vector<char> ask_for_all(const runtime::WorldName& world, bool by_session) {
  std::vector<char> list(static_cast<std::size_t>(world.size), without);
  for (int rank = 0; rank < world.size; ++rank) {
    char& says = list[static_cast<std::size_t>(rank)];
    if (rank == world.rank)
      says = by_session ? asks : is_told;
    else if (world.keys.has(key_of(rank, false)))
      says = is_told;
    else if (world.keys.has(key_of(rank, true)))
      says = asks;
  }
  return list;
}

bool tell(const runtime::WorldName& world, const std::vector<char>& list) {
  bool told = true;
  for (int rank = world.rank + 1; rank < world.size; ++rank)
    if (list[static_cast<std::size_t>(rank)] == is_told)
      told &=
          host().Send(list.data(), world.size, MPI_CHAR, rank, tag, MPI_COMM_WORLD) == MPI_SUCCESS;
  return told;
}

}  // namespace

bool put_key(const runtime::WorldName& world, bool by_session) {
  return world.keys.put(key_of(world.rank, by_session));
}

std::optional<std::vector<int>> key_holders(const runtime::WorldName& world, bool by_session) {
  const int first = by_session ? world.rank : first_holder(world);
  std::vector<char> list(static_cast<std::size_t>(world.size));
  if (first == world.rank) {
    list = ask_for_all(world, by_session);
    if (!by_session && !tell(world, list)) return {};
  } else if (host().Recv(list.data(), world.size, MPI_CHAR, first, tag, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE) != MPI_SUCCESS) {
    return {};
  }
  std::vector<int> ranks;
  for (int rank = 0; rank < world.size; ++rank)
    if (list[static_cast<std::size_t>(rank)] != without) ranks.push_back(rank);
  return ranks;
}

}  // namespace tombolo::mpi
