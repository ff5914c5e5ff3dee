// SPDX-License-Identifier: Apache-2.0
// Purpose: the store of keys that MPICH's launcher keeps for the processes of one MPI_COMM_WORLD,
// on all of its hosts, over the connection that the launcher has made for the MPI (lines of PMI 1).
//
//   KeyStore keys = KeyStore::behind(socket);  // asks for the store's name
//   keys.put("tombolo 2");                     // in front of the MPI's initialization
//   ... MPI_Init ...
//   if (keys.has("tombolo 3")) ...
//
// Invariants: KS1 behind an initialization of the MPI that has taken all of the world, a key that a
//                 process has put in front of its own is seen by all: the initialization hands
//                 all keys of the store on.
// Thread safety: none, and the MPI uses the same connection: ask in front of its initialization, or
// behind it before it may be called again.
#pragma once

#include <string>
#include <string_view>

namespace tombolo::runtime {

class KeyStore {
 public:
  KeyStore() = default;  // of a launcher that has none
  // The store has no name if the launcher does not answer.
  static KeyStore behind(int socket);

  const std::string& name() const { return name_; }
  // Whether the store has taken it. Keys are names without spaces, and have 1 as their value.
  bool put(std::string_view key) const;
  bool has(std::string_view key) const;

 private:
  int socket_ = -1;
  std::string name_;
};

}  // namespace tombolo::runtime
