// SPDX-License-Identifier: Apache-2.0
// Ranks whose kernel refuses to copy between processes, as the filter of a container does. Windows
// that need no such copies come first; those after them, of the same communicator, need them. All
// work. Usage: no_kernel_copies [late]: the kernel refuses at the last rank alone, and only after
// windows that need copies have been used.
#include "mpi/faults/check.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { words = 1024 };

static void refuse_copies(void) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    MPI_Abort(MPI_COMM_WORLD, 2);
}

static void put_to_the_next(MPI_Win win, MPI_Aint at, const int* memory) {
  const int value = 100 + rank, left = (rank + ranks - 1) % ranks;
  MPI_Win_fence(0, win);
  MPI_Put(&value, 1, MPI_INT, (rank + 1) % ranks, at, 1, MPI_INT, win);
  MPI_Win_fence(0, win);
  EXPECT(memory[7] == 100 + left, "%d", memory[7]);
}

static void use_allocated(void) {
  MPI_Win win;
  int* base;
  MPI_Win_allocate(words * sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  put_to_the_next(win, 7, base);
  MPI_Win_free(&win);
}

// On no page of their own: the program's other variables lie beside them.
static int memory[words];

static void use_created(void) {
  MPI_Win win;
  memset(memory, 0, sizeof memory);
  MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  put_to_the_next(win, 7, memory);
  MPI_Win_free(&win);
}

static void use_dynamic(void) {
  MPI_Aint peers[64];
  MPI_Win win;
  memset(memory, 0, sizeof memory);
  MPI_Get_address(memory + 7, &peers[rank]);
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, peers, 1, MPI_AINT, MPI_COMM_WORLD);
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_attach(win, memory, sizeof memory);
  put_to_the_next(win, peers[(rank + 1) % ranks], memory);
  MPI_Win_detach(win, memory);
  MPI_Win_free(&win);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  if (argc > 1) {
    for (int turn = 0; turn < 3; ++turn) use_dynamic();
    if (rank == ranks - 1) refuse_copies();
    MPI_Barrier(MPI_COMM_WORLD);
    use_created();
  } else {
    refuse_copies();
  }
  for (int turn = 0; turn < 3; ++turn) use_allocated();
  for (int turn = 0; turn < 2; ++turn) use_dynamic();
  return end();
}
