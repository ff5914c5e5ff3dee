// SPDX-License-Identifier: Apache-2.0
// Window creation that fails half-way, at one process or at all: do all processes hear of it, once,
// are the host MPI's objects made by then freed, and does the next window work? The functions of
// the host MPI below stand in front of the real ones and fail when told to. Usage: half_way
// [apart]: of ranks that may not open each other's memory any more once some windows are made.
#include "mpi/faults/check.h"

#include <dlfcn.h>
#include <sys/prctl.h>
#include <sys/resource.h>

static int fail_carriers, fail_group, fail_pages;  // how many of the next calls
static int carriers, groups;                       // made and not freed
static int heard, heard_class;

#define REAL(name) ((__typeof__(&name))in_host(#name))

static void* in_host(const char* name) {
  Dl_info host;
  dladdr(dlsym(RTLD_DEFAULT, "MPI_Comm_rank"), &host);
  return dlsym(dlopen(host.dli_fname, RTLD_LAZY | RTLD_NOLOAD), name);
}

// As at a real host, the failing process has taken part, and the communicator's handler is called.
static int made(MPI_Comm comm, int error, MPI_Win* win) {
  if (error == MPI_SUCCESS && fail_carriers > 0) {
    --fail_carriers;
    *win = MPI_WIN_NULL;
    MPI_Comm_call_errhandler(comm, MPI_ERR_NO_MEM);
    return MPI_ERR_NO_MEM;
  }
  if (error == MPI_SUCCESS) ++carriers;
  return error;
}

int PMPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  return made(comm, REAL(PMPI_Win_create_dynamic)(info, comm, win), win);
}

int PMPI_Win_allocate(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void* base,
                      MPI_Win* win) {
  return made(comm, REAL(PMPI_Win_allocate)(size, unit, info, comm, base, win), win);
}

int PMPI_Win_free(MPI_Win* win) {
  --carriers;
  return REAL(PMPI_Win_free)(win);
}

int PMPI_Win_get_group(MPI_Win win, MPI_Group* group) {
  if (fail_group > 0) {
    --fail_group;
    return MPI_ERR_OTHER;
  }
  ++groups;
  return REAL(PMPI_Win_get_group)(win, group);
}

int PMPI_Comm_group(MPI_Comm of, MPI_Group* group) {
  ++groups;
  return REAL(PMPI_Comm_group)(of, group);
}

int PMPI_Group_free(MPI_Group* group) {
  --groups;
  return REAL(PMPI_Group_free)(group);
}

// Only our windows lie on pages.
void* aligned_alloc(size_t alignment, size_t bytes) {
  void* memory = NULL;
  if (fail_pages > 0 && alignment >= 4096) {
    --fail_pages;
    return NULL;
  }
  return posix_memalign(&memory, alignment, bytes) == 0 ? memory : NULL;
}

static void hear(MPI_Comm* comm, int* error, ...) {
  (void)comm;
  ++heard;
  heard_class = class_of(*error);
}

static MPI_Comm comm = MPI_COMM_NULL;
static MPI_Errhandler handler;
static MPI_Win win;
static char* base;

// Windows of a communicator keep parts for the next one: each case has a communicator of its own.
static void end_communicator(void) {
  MPI_Comm_free(&comm);
  EXPECT(carriers == 0 && groups == 0, "%d windows, %d groups are left", carriers, groups);
}
static void new_communicator(void) {
  if (comm != MPI_COMM_NULL) end_communicator();
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, handler);
}

static int create(MPI_Aint bytes) {
  heard = 0;
  win = MPI_WIN_NULL;
  return MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, comm, &base, &win);
}

static void succeeds_and_keeps(const char* when, int kept) {
  EXPECT(create(64) == MPI_SUCCESS, "%s", when);
  EXPECT(heard == 0, "%s", when);
  if (win == MPI_WIN_NULL) return;
  EXPECT(carriers == 1 && groups == 1, "%s: %d windows, %d groups", when, carriers, groups);
  MPI_Win_fence(0, win);
  const char value = 42;
  MPI_Put(&value, 1, MPI_CHAR, (rank + 1) % ranks, 3, 1, MPI_CHAR, win);
  MPI_Win_fence(0, win);
  EXPECT(base[3] == 42, "%s", when);
  MPI_Win_free(&win);
  EXPECT(carriers == kept && groups == kept, "%s: %d windows, %d groups", when, carriers, groups);
}
static void succeeds(const char* when) { succeeds_and_keeps(when, 0); }

static void fails_and_keeps(const char* when, int carriers_left, int kept, MPI_Aint bytes) {
  const int error = create(bytes);
  EXPECT(error != MPI_SUCCESS, "%s", when);
  EXPECT(heard == 1, "%s: heard %d times", when, heard);
  EXPECT(heard_class == class_of(error), "%s", when);
  EXPECT(win == MPI_WIN_NULL, "%s", when);
  EXPECT(carriers == carriers_left + kept && groups == kept, "%s: %d windows, %d groups", when,
         carriers, groups);
  carriers = kept;
}
static void fails(const char* when, int carriers_left, MPI_Aint bytes) {
  new_communicator();
  fails_and_keeps(when, carriers_left, 0, bytes);
}

static void fails_without_address_space(const char* when) {
  struct rlimit all, few;
  getrlimit(RLIMIT_AS, &all);
  few = all;
  few.rlim_cur = 1;
  if (rank == 1) setrlimit(RLIMIT_AS, &few);
  fails_and_keeps(when, 0, 0, 16 << 20);
  EXPECT(heard_class == MPI_ERR_NO_MEM, "class %d", heard_class);
  if (rank == 1) setrlimit(RLIMIT_AS, &all);
}

// The second window of a communicator leaves its carrier and group to the next ones.
static void fails_with_kept_parts(void) {
  new_communicator();
  succeeds("the first");
  fail_carriers = rank == 1;
  fails_and_keeps("the second, refused by one host", rank != 1, 0, 64);
  fail_group = rank == 1;
  fails_and_keeps("the second, without a group at one process", 0, 0, 64);
  succeeds_and_keeps("the second", 1);
  succeeds_and_keeps("with kept parts", 1);
  fail_pages = rank == 1;
  fails_and_keeps("no memory at one process, before the parts are taken", 0, 1, 64);
  succeeds_and_keeps("with the same parts", 1);
  fails_without_address_space("no address space, behind the parts");
  succeeds_and_keeps("with new parts", 1);
}

static void hide(void) {
  enum { nobody = 65534 };
  if (geteuid() == 0 && (setgid(nobody) != 0 || setuid(nobody) != 0)) MPI_Abort(MPI_COMM_WORLD, 2);
  prctl(PR_SET_DUMPABLE, 0);
  MPI_Barrier(MPI_COMM_WORLD);
}

// A window that needs new memory, but has taken kept parts, is left to the host MPI in the end.
static void is_left_to_the_host_with_kept_parts(void) {
  succeeds_and_keeps("the first", 0);
  succeeds_and_keeps("the second", 1);
  hide();
  EXPECT(create(1 << 20) == MPI_SUCCESS);
  EXPECT(carriers == 1 && groups == 0, "%d windows, %d groups", carriers, groups);
  MPI_Win_free(&win);
}

static void fails_at_some_hosts(void) {
  succeeds("at first");

  new_communicator();
  fail_carriers = 1;
  succeeds("one kind of window refused by all hosts");
  fail_carriers = 2;
  fails("both kinds refused by all hosts", 0, 64);
  succeeds("after both kinds were refused");
  fail_carriers = rank == 1;
  fails("refused by one host", rank != 1, 64);
  succeeds("after one host had refused");
  fail_group = rank == 1;
  fails("no group at one process", 0, 64);
  succeeds("after one process had no group");

  fail_pages = rank == 1;
  fails("no memory for the window at one process", 0, 64);
  EXPECT(heard_class == MPI_ERR_NO_MEM, "class %d", heard_class);
  EXPECT(fail_pages == 0, "nothing was asked for on pages");
  succeeds("after one process had no memory for the window");

  new_communicator();
  fails_without_address_space("no address space at one process");
  succeeds("after one process had no address space");
  fails_with_kept_parts();
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  MPI_Comm_create_errhandler(&hear, &handler);
  new_communicator();
  if (argc > 1)
    is_left_to_the_host_with_kept_parts();
  else
    fails_at_some_hosts();

  MPI_Errhandler same;
  MPI_Comm_get_errhandler(comm, &same);
  EXPECT(same == handler);
  MPI_Errhandler_free(&same);
  end_communicator();
  MPI_Errhandler_free(&handler);
  return end();
}
