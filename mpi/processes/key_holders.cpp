// SPDX-License-Identifier: Apache-2.0
#include "mpi/processes/key_holders.h"

#include <fmt/format.h>

#include <string>

#include "host/mpi/host.h"

namespace tombolo::mpi {
namespace {

constexpr int tag = 0x7b2;  // the program has sent no message yet

std::string key_of(int rank) { return fmt::format("tombolo-{}", rank); }

// The own rank at the latest.
int first_holder(const runtime::WorldName& world) {
  int rank = 0;
  while (rank < world.rank && !world.keys.has(key_of(rank))) ++rank;
  return rank;
}

// By the first holder: whether each rank has a key.
std::vector<char> ask_for_all(const runtime::WorldName& world) {
  std::vector<char> has(static_cast<std::size_t>(world.size), 0);
  has[static_cast<std::size_t>(world.rank)] = 1;
  for (int rank = world.rank + 1; rank < world.size; ++rank)
    has[static_cast<std::size_t>(rank)] = world.keys.has(key_of(rank)) ? 1 : 0;
  return has;
}

bool tell(const runtime::WorldName& world, const std::vector<char>& has) {
  bool told = true;
  for (int rank = world.rank + 1; rank < world.size; ++rank)
    if (has[static_cast<std::size_t>(rank)] != 0)
      told &=
          host().Send(has.data(), world.size, MPI_CHAR, rank, tag, MPI_COMM_WORLD) == MPI_SUCCESS;
  return told;
}

}  // namespace

bool put_key(const runtime::WorldName& world) { return world.keys.put(key_of(world.rank)); }

std::optional<std::vector<int>> key_holders(const runtime::WorldName& world) {
  const int first = first_holder(world);
  std::vector<char> has;
  if (first == world.rank) {
    has = ask_for_all(world);
    if (!tell(world, has)) return {};
  } else {
    has.resize(static_cast<std::size_t>(world.size));
    if (host().Recv(has.data(), world.size, MPI_CHAR, first, tag, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE) != MPI_SUCCESS)
      return {};
  }
  std::vector<int> ranks;
  for (int rank = 0; rank < world.size; ++rank)
    if (has[static_cast<std::size_t>(rank)] != 0) ranks.push_back(rank);
  return ranks;
}

}  // namespace tombolo::mpi
