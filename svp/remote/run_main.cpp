// SPDX-License-Identifier: Apache-2.0
// Purpose: `tombolo-svp N PROGRAM [ARGUMENT]...`: runs a program of families in N processes, of
// which the first runs it and the others hold places. `tombolo svp run` starts it.
//
// Another process that ends before the first takes its places with it, and the program goes on.
#include "runtime/processes/launcher_command.h"

int main(int argc, char** argv) {
  return tombolo::runtime::run_launcher_command({.name = "tombolo-svp", .first_is_program = true},
                                                argc, argv);
}
