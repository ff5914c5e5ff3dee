// SPDX-License-Identifier: Apache-2.0
#include "pthreads/program/launched_team.h"

#include "pthreads/program/team_runtime.h"
#include "runtime/host_mpi/module.h"

namespace tombolo::dsm {

Status make_launched_team(OneSided& job, std::unique_ptr<LaunchedTeam>& out) {
  using Make = void(OneSided*, TeamRuntime*, std::unique_ptr<LaunchedTeam>*);
  void* make = nullptr;
  TOMBOLO_TRY(runtime::load_library({.user = "transport mpi",
                                     .file = "libtombolo_pthread_hosts.so",
                                     .entry = "tombolo_pthread_make_launched_team",
                                     .beside = reinterpret_cast<const void*>(&make_launched_team)},
                                    make));
  reinterpret_cast<Make*>(make)(&job, &TeamRuntime::here(), &out);
  return {};
}

}  // namespace tombolo::dsm
