// SPDX-License-Identifier: Apache-2.0
#include "litmus/programs/registry.h"

#include <iterator>

namespace tombolo::litmus {

const std::vector<ExploredProgram>& explored_programs() {
  static const std::vector<ExploredProgram> all = [] {
    std::vector<ExploredProgram> list = lock_programs();
    for (auto part : {other_programs(), window_programs(), memory_programs(), family_programs(),
                      broken_programs(), broken_window_programs(), broken_memory_programs(),
                      broken_family_programs()})
      list.insert(list.end(), std::make_move_iterator(part.begin()),
                  std::make_move_iterator(part.end()));
    return list;
  }();
  return all;
}

}  // namespace tombolo::litmus
