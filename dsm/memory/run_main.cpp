// SPDX-License-Identifier: Apache-2.0
// Purpose: `tombolo-dsm N PROGRAM [ARGUMENT]...`: runs the program in N processes, which are the
// threads of one program on virtual shared memory, and in as many more as TOMBOLO_DSM_SERVERS asks
// for, which are its memory servers (003 figure 4.3). `tombolo dsm run` starts it.
#include <fmt/format.h>

#include "dsm/memory/settings.h"
#include "runtime/processes/launcher_command.h"

namespace tombolo::dsm {
namespace {

Status with_servers(int threads, int& size) {
  Thread servers = 0;
  TOMBOLO_TRY(read_option(options::dsm_servers, servers));
  size = threads + static_cast<int>(servers);
  return {};
}

std::string naming(int threads, int rank) {
  return rank < threads ? "" : fmt::format("memory server {}: ", rank - threads);
}

}  // namespace
}  // namespace tombolo::dsm

int main(int argc, char** argv) {
  return tombolo::runtime::run_launcher_command(
      {.name = "tombolo-dsm", .size = &tombolo::dsm::with_servers, .naming = &tombolo::dsm::naming},
      argc, argv);
}
