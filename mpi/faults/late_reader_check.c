// SPDX-License-Identifier: Apache-2.0
// A program whose job ends while the reader of its stderr is late. A child of it, which reads,
// tells in FILE whether the program was still there when it began to: "alive" or "gone".
//
//   mpiexec -n 1 late_reader_check FILE abort|window
//
// `abort`: it writes to stderr and calls MPI_Abort. `window`: it makes a window, for a run with a
// setting that ends the job there.
#define _GNU_SOURCE

#include <mpi.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void read_late(int from, pid_t program, const char* file) {
  char text[64];
  struct pollfd written = {.fd = from, .events = POLLIN};
  setsid();  // the launcher ends the program's processes only
  poll(&written, 1, 60000);
  usleep(600000);
  FILE* const verdict = fopen(file, "w");
  if (verdict == NULL) _exit(1);
  fputs(kill(program, 0) == 0 && getppid() == program ? "alive" : "gone", verdict);
  fclose(verdict);
  while (read(from, text, sizeof text) > 0) {
  }
  _exit(0);
}

int main(int argc, char** argv) {
  int ends[2];
  const pid_t program = getpid();
  if (argc < 3 || pipe(ends) != 0) return 2;
  const pid_t reader = fork();
  if (reader < 0) return 2;
  if (reader == 0) {
    close(ends[1]);
    read_late(ends[0], program, argv[1]);
  }
  close(ends[0]);
  MPI_Init(&argc, &argv);
  dup2(ends[1], STDERR_FILENO);
  close(ends[1]);
  if (strcmp(argv[2], "window") == 0) {
    MPI_Win win;
    void* memory;
    MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  }
  fputs("the last words\n", stderr);
  return MPI_Abort(MPI_COMM_WORLD, 5);
}
