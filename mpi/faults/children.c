// SPDX-License-Identifier: Apache-2.0
// Each rank forks while a window is open: children that _exit(), exit() (with the library's and the
// MPI's destructors), are killed, or run a shell. Nothing of it may be noticed in the window.
#include "mpi/faults/check.h"

#include <signal.h>
#include <sys/wait.h>

static int* base;
static MPI_Win win;

// Every rank adds to every rank; the sum says that nothing was lost.
static void use(int round) {
  const int one = 1;
  MPI_Win_lock_all(0, win);
  for (int r = 0; r < ranks; ++r) MPI_Accumulate(&one, 1, MPI_INT, r, 0, 1, MPI_INT, MPI_SUM, win);
  MPI_Win_unlock_all(win);
  MPI_Win_fence(0, win);
  EXPECT(base[0] == round * ranks, "%d after round %d", base[0], round);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
}

static void child(int how) {
  if (how == 0) _exit(0);
  if (how == 1) exit(0);
  if (how == 2) kill(getpid(), SIGKILL);
  execl("/bin/true", "true", (char*)NULL);
  _exit(1);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  MPI_Win_allocate(4096, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  MPI_Win_fence(0, win);
  base[0] = 0;
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  int round = 0;
  use(++round);
  for (int how = 0; how < 4; ++how) {
    int status = -1;
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) child(how);
    EXPECT(waitpid(pid, &status, 0) == pid);
    if (how == 2)
      EXPECT(WIFSIGNALED(status), "%d", status);
    else
      EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0, "how %d: %d", how, status);
    use(++round);
  }
  // Inside an epoch, with the lock held.
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
  EXPECT(system("exit 3") >> 8 == 3);
  char line[16] = "";
  FILE* pipe = popen("echo hello", "r");
  EXPECT(pipe != NULL && fgets(line, sizeof line, pipe) != NULL && strcmp(line, "hello\n") == 0);
  if (pipe != NULL) pclose(pipe);
  MPI_Win_unlock(0, win);
  use(++round);
  MPI_Win_free(&win);
  // And with no window left, a new one.
  MPI_Win_allocate(4096, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  MPI_Win_free(&win);
  return end();
}
