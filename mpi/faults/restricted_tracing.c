// SPDX-License-Identifier: Apache-2.0
// Ranks on a host whose kernel lets a process copy from another one only if that one has allowed
// it, as Ubuntu's does (kernel.yama.ptrace_scope 1). The functions of the C library that are
// defined here stand for that kernel: a process that allows all to trace it changes its name, which
// the others look at. A window over memory of the program works.
#define _GNU_SOURCE
#include "mpi/faults/check.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static const char kAllows[] = "lets-all-trace";

int prctl(int option, ...) {
  va_list list;
  unsigned long arguments[4];
  va_start(list, option);
  for (int i = 0; i < 4; ++i) arguments[i] = va_arg(list, unsigned long);
  va_end(list);
  if (option == PR_SET_PTRACER && arguments[0] == PR_SET_PTRACER_ANY) {
    option = PR_SET_NAME;
    arguments[0] = (unsigned long)kAllows;
  }
  return (int)syscall(SYS_prctl, option, arguments[0], arguments[1], arguments[2], arguments[3]);
}

static int allowed(pid_t process) {
  char path[64], name[32] = "";
  snprintf(path, sizeof path, "/proc/%d/comm", process);
  FILE* file = fopen(path, "r");
  if (file == NULL) return 0;
  if (fgets(name, sizeof name, file) == NULL) name[0] = 0;
  fclose(file);
  return strncmp(name, kAllows, strlen(kAllows)) == 0;
}

static ssize_t copy(long call, pid_t process, const struct iovec* here, unsigned long n,
                    const struct iovec* there, unsigned long m, unsigned long flags) {
  if (process != getpid() && !allowed(process)) {
    errno = EPERM;
    return -1;
  }
  return syscall(call, process, here, n, there, m, flags);
}

ssize_t process_vm_readv(pid_t process, const struct iovec* here, unsigned long n,
                         const struct iovec* there, unsigned long m, unsigned long flags) {
  return copy(SYS_process_vm_readv, process, here, n, there, m, flags);
}

ssize_t process_vm_writev(pid_t process, const struct iovec* here, unsigned long n,
                          const struct iovec* there, unsigned long m, unsigned long flags) {
  return copy(SYS_process_vm_writev, process, here, n, there, m, flags);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  static int memory[1024];
  const int value = 100 + rank, left = (rank + ranks - 1) % ranks;
  MPI_Win win;
  MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_fence(0, win);
  MPI_Put(&value, 1, MPI_INT, (rank + 1) % ranks, 7, 1, MPI_INT, win);
  MPI_Win_fence(0, win);
  EXPECT(memory[7] == 100 + left, "%d", memory[7]);
  MPI_Win_free(&win);
  return end();
}
