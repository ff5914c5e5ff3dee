// SPDX-License-Identifier: Apache-2.0
#include "svp/links/mpi/load.h"

#include "runtime/host_mpi/module.h"
#include "runtime/options/svp_options.h"

namespace tombolo::svp {

Status load_host_messages(std::unique_ptr<HostMessages>& out) {
  const runtime::MpiModule module{.name = "svp",
                                  .user = "a program of families in several processes",
                                  .library = &runtime::svp_mpi_option,
                                  .entry = "tombolo_svp_host_messages",
                                  .beside = reinterpret_cast<const void*>(&load_host_messages)};
  return runtime::make_by(module, out);
}

}  // namespace tombolo::svp
