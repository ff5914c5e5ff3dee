// SPDX-License-Identifier: Apache-2.0
// Purpose: a creator of kernels.h whose places are the processes of the program.
// Thread safety: as svp::create.
#pragma once

#include <memory>
#include <utility>

#include <tombolo/svp.hpp>

namespace kernels {

struct AtProcesses {
  tombolo::svp::Job& job;

  template <class Function, class... Args>
  auto create(unsigned process, const tombolo::svp::Range& range, const Function& function,
              Args&&... args) {
    using Family = decltype(tombolo::svp::create(job.place(process), range, function, args...));
    return std::unique_ptr<Family>(
        new Family(tombolo::svp::create(job.place(process), range, function, args...)));
  }
  template <class Family>
  void sync(Family& family) {
    family.sync().rethrow();
  }
};

}  // namespace kernels
