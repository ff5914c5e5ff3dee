// SPDX-License-Identifier: Apache-2.0
// A process of another user tries to get at the memory of windows, by every name that it may have:
// /proc/PID/fd of each rank and /dev/shm, while windows are created and freed. Needs root, to
// become another user. Once a window exists, no rank holds a descriptor of its memory any more.
#include "mpi/faults/check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { nobody = 65534, windows = 80 };

// Files of ours in a folder: how many exist, and how many of them can be opened.
static int look(const char* folder, int by_target, int* opened) {
  DIR* entries = opendir(folder);
  if (entries == NULL) return 0;
  int found = 0;
  for (const struct dirent* entry; (entry = readdir(entries)) != NULL;) {
    char path[512], target[512] = "";
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    if (by_target) {
      const ssize_t length = readlink(path, target, sizeof target - 1);
      if (length < 0) continue;
    } else {
      snprintf(target, sizeof target, "%.500s", entry->d_name);
    }
    if (strstr(target, "tombolo") == NULL && strstr(target, "/dev/shm/#") == NULL) continue;
    struct stat shape;
    if (stat(path, &shape) == 0 && (shape.st_mode & 07777) != 0600) ++*opened;
    ++found;
    const int file = open(path, O_RDONLY);
    if (file >= 0) {
      ++*opened;
      close(file);
    }
  }
  closedir(entries);
  return found;
}

// Runs in a child until it is killed; its exit status says that it got in.
static void intrude(const int* pids, int n) {
  if (setgid(nobody) != 0 || setuid(nobody) != 0) _exit(2);
  for (;;) {
    int opened = 0;
    for (int r = 0; r < n; ++r) {
      char folder[64];
      snprintf(folder, sizeof folder, "/proc/%d/fd", pids[r]);
      look(folder, 1, &opened);
    }
    look("/dev/shm", 0, &opened);
    if (opened > 0) _exit(1);
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  int* pids = calloc((size_t)ranks, sizeof *pids);
  int me = getpid();
  MPI_Allgather(&me, 1, MPI_INT, pids, 1, MPI_INT, MPI_COMM_WORLD);
  pid_t child = 0;
  if (rank == 0) {
    child = fork();
    if (child == 0) intrude(pids, ranks);
  }
  MPI_Win win;
  char* base;
  for (int i = 0; i < windows; ++i) {
    MPI_Win_allocate(8192, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    base[0] = 1;
    int opened = 0;
    const int held = look("/proc/self/fd", 1, &opened);
    EXPECT(held == 0, "%d descriptors of window memory are still open", held);
    MPI_Win_free(&win);
    if (failures != 0) break;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    int status = 0;
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    EXPECT(WIFSIGNALED(status), "another user could open the memory of a window (%d)", status);
  }
  free(pids);
  return end();
}
