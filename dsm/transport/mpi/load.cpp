// SPDX-License-Identifier: Apache-2.0
#include "dsm/transport/mpi/load.h"

#include "base/option_table.h"
#include "runtime/host_mpi/module.h"

namespace tombolo::dsm {

Status load_one_sided(std::unique_ptr<OneSided>& out) {
  const runtime::MpiModule module{.name = "dsm",
                                  .user = "transport mpi",
                                  .library = &options::dsm_mpi,
                                  .entry = "tombolo_dsm_one_sided",
                                  .beside = reinterpret_cast<const void*>(&load_one_sided)};
  return runtime::make_by(module, out);
}

}  // namespace tombolo::dsm
