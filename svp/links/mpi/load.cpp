// SPDX-License-Identifier: Apache-2.0
#include "svp/links/mpi/load.h"

#include "base/option_table.h"
#include "runtime/host_mpi/module.h"

namespace tombolo::svp {

Status load_host_messages(std::unique_ptr<HostMessages>& out) {
  const runtime::MpiModule module{.name = "svp",
                                  .user = "a program of families in several processes",
                                  .library = &options::svp_mpi,
                                  .entry = "tombolo_svp_host_messages",
                                  .beside = reinterpret_cast<const void*>(&load_host_messages)};
  return runtime::make_by(module, out);
}

}  // namespace tombolo::svp
