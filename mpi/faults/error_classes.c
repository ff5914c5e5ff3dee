// SPDX-License-Identifier: Apache-2.0
// Mistakes of the caller, one after the other, on a window whose errors return: is each answered
// with the standard's class, and is the window as good as before?
#include "mpi/faults/check.h"

static MPI_Win win;
static int buffer[16];

#define GIVES(class, call)                                                                   \
  do {                                                                                       \
    const int error_ = (call);                                                               \
    EXPECT(class_of(error_) == (class), "%s: class %d, not %s: %s", #call, class_of(error_), \
           #class, text_of(error_));                                                         \
  } while (0)
// Where the standard leaves a choice.
#define GIVES_ONE_OF(class, other, call)                                              \
  do {                                                                                \
    const int error_ = (call);                                                        \
    EXPECT(class_of(error_) == (class) || class_of(error_) == (other),                \
           "%s: class %d, not %s or %s: %s", #call, class_of(error_), #class, #other, \
           text_of(error_));                                                          \
  } while (0)
#define WORKS(call) GIVES(MPI_SUCCESS, call)

static void arguments(void) {
  const int next = (rank + 1) % ranks;
  MPI_Datatype uncommitted, pair;
  MPI_Type_contiguous(2, MPI_INT, &uncommitted);
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  WORKS(MPI_Win_lock_all(0, win));
  GIVES_ONE_OF(MPI_ERR_DISP, MPI_ERR_RMA_RANGE,
               MPI_Put(buffer, 1, MPI_INT, next, -1, 1, MPI_INT, win));
  GIVES_ONE_OF(MPI_ERR_DISP, MPI_ERR_RMA_RANGE,
               MPI_Get(buffer, 1, MPI_INT, next, -1, 1, MPI_INT, win));
  GIVES_ONE_OF(MPI_ERR_RMA_RANGE, MPI_ERR_DISP,
               MPI_Put(buffer, 1, MPI_INT, next, 16, 1, MPI_INT, win));
  GIVES_ONE_OF(MPI_ERR_RMA_RANGE, MPI_ERR_DISP,
               MPI_Get(buffer, 2, MPI_INT, next, 15, 2, MPI_INT, win));
  GIVES_ONE_OF(MPI_ERR_RMA_RANGE, MPI_ERR_DISP, MPI_Put(buffer, 1, pair, next, 15, 1, pair, win));
  GIVES_ONE_OF(MPI_ERR_RMA_RANGE, MPI_ERR_DISP,
               MPI_Accumulate(buffer, 1, MPI_INT, next, 16, 1, MPI_INT, MPI_SUM, win));
  // A displacement that overflows when it is multiplied must not come out as a good one.
  GIVES_ONE_OF(MPI_ERR_RMA_RANGE, MPI_ERR_DISP,
               MPI_Put(buffer, 1, MPI_INT, next, (MPI_Aint)1 << 62, 1, MPI_INT, win));
  GIVES_ONE_OF(MPI_ERR_RMA_RANGE, MPI_ERR_DISP,
               MPI_Get(buffer, 1, MPI_INT, next, ((MPI_Aint)1 << 61) - 1, 1, MPI_INT, win));
  GIVES(MPI_ERR_RANK, MPI_Put(buffer, 1, MPI_INT, ranks, 0, 1, MPI_INT, win));
  GIVES(MPI_ERR_RANK, MPI_Get(buffer, 1, MPI_INT, -7, 0, 1, MPI_INT, win));
  GIVES(MPI_ERR_RANK, MPI_Accumulate(buffer, 1, MPI_INT, ranks, 0, 1, MPI_INT, MPI_SUM, win));
  GIVES(MPI_ERR_RANK, MPI_Fetch_and_op(buffer, buffer + 1, MPI_INT, ranks, 0, MPI_SUM, win));
  GIVES(MPI_ERR_RANK, MPI_Win_flush(ranks, win));
  GIVES(MPI_ERR_COUNT, MPI_Put(buffer, -1, MPI_INT, next, 0, 1, MPI_INT, win));
  GIVES(MPI_ERR_COUNT, MPI_Get(buffer, 1, MPI_INT, next, 0, -1, MPI_INT, win));
  GIVES(MPI_ERR_TYPE, MPI_Put(buffer, 1, uncommitted, next, 0, 1, uncommitted, win));
  GIVES(MPI_ERR_TYPE, MPI_Get(buffer, 2, MPI_INT, next, 0, 1, uncommitted, win));
  GIVES(MPI_ERR_TYPE, MPI_Put(buffer, 1, MPI_DATATYPE_NULL, next, 0, 1, MPI_INT, win));
  GIVES(MPI_ERR_OP, MPI_Accumulate(buffer, 1, MPI_INT, next, 0, 1, MPI_INT, MPI_OP_NULL, win));
  GIVES(MPI_ERR_OP, MPI_Fetch_and_op(buffer, buffer + 1, MPI_DOUBLE, next, 0, MPI_BXOR, win));
  GIVES_ONE_OF(MPI_ERR_TYPE, MPI_ERR_OP,
               MPI_Compare_and_swap(buffer, buffer + 1, buffer + 2, MPI_DOUBLE, next, 0, win));
  WORKS(MPI_Put(buffer, 1, MPI_INT, next, 15, 1, MPI_INT, win));
  WORKS(MPI_Put(buffer, 0, MPI_INT, next, 16, 0, MPI_INT, win));
  WORKS(MPI_Put(buffer, 1, MPI_INT, MPI_PROC_NULL, -1, 1, MPI_INT, win));
  WORKS(MPI_Win_unlock_all(win));
  GIVES(MPI_ERR_LOCKTYPE, MPI_Win_lock(4711, 0, 0, win));
  GIVES(MPI_ERR_ASSERT, MPI_Win_lock(MPI_LOCK_SHARED, 0, 1 << 30, win));
  GIVES(MPI_ERR_RANK, MPI_Win_lock(MPI_LOCK_SHARED, ranks, 0, win));
  GIVES(MPI_ERR_ASSERT, MPI_Win_fence(1 << 30, win));
  GIVES(MPI_ERR_ASSERT, MPI_Win_lock_all(1 << 30, win));
  GIVES(MPI_ERR_GROUP, MPI_Win_post(MPI_GROUP_NULL, 0, win));
  GIVES(MPI_ERR_GROUP, MPI_Win_start(MPI_GROUP_NULL, 0, win));
  MPI_Type_free(&uncommitted);
  MPI_Type_free(&pair);
}

// Types that not every MPI has, or that are none of the usual ones.
static void odd_types(void) {
  const int next = (rank + 1) % ranks;
  short halves[2] = {77, 78}, former[2] = {0, 0};
  (void)halves, (void)former;
  WORKS(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win));
  WORKS(MPI_Accumulate(halves, 4, MPI_PACKED, next, 0, 4, MPI_PACKED, MPI_REPLACE, win));
#if defined(MPI_REAL2)
  if (MPI_REAL2 != MPI_DATATYPE_NULL) {
    WORKS(MPI_Accumulate(halves, 2, MPI_REAL2, next, 0, 2, MPI_REAL2, MPI_REPLACE, win));
    WORKS(MPI_Get_accumulate(NULL, 0, MPI_REAL2, former, 2, MPI_REAL2, next, 0, 2, MPI_REAL2,
                             MPI_NO_OP, win));
    WORKS(MPI_Win_flush(next, win));
    EXPECT(former[0] == 77 && former[1] == 78, "%d, %d", former[0], former[1]);
    WORKS(MPI_Fetch_and_op(halves, former, MPI_REAL2, next, 0, MPI_REPLACE, win));
    WORKS(MPI_Accumulate(halves, 1, MPI_COMPLEX4, next, 0, 1, MPI_COMPLEX4, MPI_REPLACE, win));
    GIVES(MPI_ERR_OP, MPI_Accumulate(halves, 1, MPI_REAL2, next, 0, 1, MPI_REAL2, MPI_SUM, win));
  }
#endif
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
  const MPI_Datatype values[] = {MPI_DOUBLE, MPI_INT64_T, MPI_FLOAT},
                     indices[] = {MPI_INT, MPI_INT64_T, MPI_INT64_T};
  for (int i = 0; i < 3; ++i) {
    MPI_Datatype pair, pairs;
    WORKS(MPI_Type_get_value_index(values[i], indices[i], &pair));
    if (pair == MPI_DATATYPE_NULL) continue;
    // The components of a derived type are looked at, and must be there afterwards.
    for (int round = 0; round < 3; ++round) {
      WORKS(MPI_Type_contiguous(2, pair, &pairs));
      WORKS(MPI_Type_commit(&pairs));
      WORKS(MPI_Put(buffer, 1, pairs, next, 0, 1, pairs, win));
      WORKS(MPI_Type_free(&pairs));
      WORKS(MPI_Put(buffer, 2, pair, next, 0, 2, pair, win));
    }
  }
#endif
  WORKS(MPI_Win_unlock(next, win));
}

static void epochs(void) {
  const int next = (rank + 1) % ranks;
  int done;
  GIVES(MPI_ERR_RMA_SYNC, MPI_Put(buffer, 1, MPI_INT, next, 0, 1, MPI_INT, win));
  GIVES(MPI_ERR_RMA_SYNC, MPI_Get(buffer, 1, MPI_INT, next, 0, 1, MPI_INT, win));
  GIVES(MPI_ERR_RMA_SYNC, MPI_Accumulate(buffer, 1, MPI_INT, next, 0, 1, MPI_INT, MPI_SUM, win));
  GIVES(MPI_ERR_RMA_SYNC, MPI_Win_unlock(next, win));
  GIVES(MPI_ERR_RMA_SYNC, MPI_Win_unlock_all(win));
  GIVES(MPI_ERR_RMA_SYNC, MPI_Win_flush(next, win));
  GIVES(MPI_ERR_RMA_SYNC, MPI_Win_flush_all(win));
  GIVES(MPI_ERR_RMA_SYNC, MPI_Win_flush_local(next, win));
  GIVES(MPI_ERR_RMA_SYNC, MPI_Win_complete(win));
  GIVES(MPI_ERR_RMA_SYNC, MPI_Win_wait(win));
  GIVES(MPI_ERR_RMA_SYNC, MPI_Win_test(win, &done));

  WORKS(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
  GIVES(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
  GIVES(MPI_ERR_RMA_SYNC, MPI_Win_lock_all(0, win));
  GIVES(MPI_ERR_RMA_SYNC, MPI_Win_fence(0, win));
  GIVES(MPI_ERR_RMA_SYNC, MPI_Win_unlock_all(win));
  if (ranks > 2)
    GIVES(MPI_ERR_RMA_SYNC, MPI_Put(buffer, 1, MPI_INT, (rank + 2) % ranks, 0, 1, MPI_INT, win));
  WORKS(MPI_Win_unlock(next, win));

  WORKS(MPI_Win_lock_all(0, win));
  GIVES(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
  GIVES(MPI_ERR_RMA_SYNC, MPI_Win_lock_all(0, win));
  GIVES(MPI_ERR_RMA_SYNC, MPI_Win_unlock(next, win));
  WORKS(MPI_Win_unlock_all(win));

  MPI_Request request;
  GIVES(MPI_ERR_RMA_SYNC, MPI_Rput(buffer, 1, MPI_INT, next, 0, 1, MPI_INT, win, &request));
  GIVES(MPI_ERR_RMA_SYNC, MPI_Rget(buffer, 1, MPI_INT, next, 0, 1, MPI_INT, win, &request));

  WORKS(MPI_Win_fence(0, win));
  WORKS(MPI_Put(buffer, 1, MPI_INT, next, 0, 1, MPI_INT, win));
  // Beyond the standard, as with the MPIs themselves.
  WORKS(MPI_Rput(buffer, 1, MPI_INT, next, 0, 1, MPI_INT, win, &request));
  WORKS(MPI_Wait(&request, MPI_STATUS_IGNORE));
  WORKS(MPI_Raccumulate(buffer, 1, MPI_INT, next, 0, 1, MPI_INT, MPI_SUM, win, &request));
  WORKS(MPI_Wait(&request, MPI_STATUS_IGNORE));
  GIVES(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
  GIVES(MPI_ERR_RMA_SYNC, MPI_Win_lock_all(0, win));
  GIVES(MPI_ERR_RMA_SYNC, MPI_Win_flush(next, win));
  WORKS(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  WORKS(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
  WORKS(MPI_Win_unlock(next, win));

  MPI_Group world, self;
  const int me = rank;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, &me, &self);
  WORKS(MPI_Win_post(self, 0, win));
  GIVES(MPI_ERR_RMA_SYNC, MPI_Win_post(self, 0, win));
  GIVES(MPI_ERR_RMA_SYNC, MPI_Win_fence(0, win));
  WORKS(MPI_Win_start(self, 0, win));
  GIVES(MPI_ERR_RMA_SYNC, MPI_Win_start(self, 0, win));
  WORKS(MPI_Rget(buffer, 1, MPI_INT, rank, 0, 1, MPI_INT, win, &request));
  WORKS(MPI_Wait(&request, MPI_STATUS_IGNORE));
  GIVES(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
  GIVES(MPI_ERR_RMA_SYNC, MPI_Put(buffer, 1, MPI_INT, next, 0, 1, MPI_INT, win));
  WORKS(MPI_Win_complete(win));
  GIVES(MPI_ERR_RMA_SYNC, MPI_Win_complete(win));
  WORKS(MPI_Win_wait(win));
  GIVES(MPI_ERR_RMA_SYNC, MPI_Win_wait(win));
  MPI_Group_free(&self);
  MPI_Group_free(&world);
}

// Freed inside an epoch by all, so that no rank is left behind where it is not refused.
static void freeing(void) {
  MPI_Win same = win;
  WORKS(MPI_Win_lock_all(0, win));
  GIVES(MPI_ERR_RMA_SYNC, MPI_Win_free(&same));
  WORKS(MPI_Win_unlock_all(win));
  WORKS(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
  GIVES(MPI_ERR_RMA_SYNC, MPI_Win_free(&same));
  WORKS(MPI_Win_unlock(rank, win));
}

static void creation(void) {
  MPI_Win other = MPI_WIN_NULL;
  int* base = NULL;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  GIVES(MPI_ERR_SIZE, MPI_Win_allocate(-1, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &other));
  GIVES(MPI_ERR_SIZE, MPI_Win_create(buffer, -1, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &other));
  GIVES_ONE_OF(MPI_ERR_DISP, MPI_ERR_ARG,
               MPI_Win_allocate(64, 0, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &other));
  GIVES_ONE_OF(MPI_ERR_DISP, MPI_ERR_ARG,
               MPI_Win_create(buffer, 64, -4, MPI_INFO_NULL, MPI_COMM_WORLD, &other));
  EXPECT(other == MPI_WIN_NULL);
}

static void flavors(void) {
  static int memory[4];
  MPI_Win dynamic, created;
  MPI_Aint bytes;
  int unit;
  void* base;
  WORKS(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic));
  MPI_Win_set_errhandler(dynamic, MPI_ERRORS_RETURN);
  WORKS(MPI_Win_create(memory, sizeof memory, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &created));
  MPI_Win_set_errhandler(created, MPI_ERRORS_RETURN);
  GIVES(MPI_ERR_RMA_FLAVOR, MPI_Win_shared_query(dynamic, 0, &bytes, &unit, &base));
  GIVES(MPI_ERR_RMA_FLAVOR, MPI_Win_attach(created, memory, 4));
  GIVES(MPI_ERR_RMA_FLAVOR, MPI_Win_detach(created, memory));
  GIVES(MPI_ERR_RMA_ATTACH, MPI_Win_detach(dynamic, memory));
  WORKS(MPI_Win_attach(dynamic, memory, sizeof memory));
  GIVES(MPI_ERR_RMA_ATTACH, MPI_Win_attach(dynamic, memory + 1, 4));
  GIVES(MPI_ERR_RMA_ATTACH, MPI_Win_detach(dynamic, memory + 1));
  WORKS(MPI_Win_detach(dynamic, memory));
  GIVES(MPI_ERR_RMA_ATTACH, MPI_Win_detach(dynamic, memory));
  WORKS(MPI_Win_attach(dynamic, memory, 0));
  WORKS(MPI_Win_detach(dynamic, memory));
  GIVES(MPI_ERR_RMA_ATTACH, MPI_Win_detach(dynamic, memory));
  WORKS(MPI_Win_free(&created));
  WORKS(MPI_Win_free(&dynamic));
}

// Dynamic windows: accesses to memory that is attached, is not, and is attached later.
static void attached_ranges(void) {
  static int memory[64];
  const int next = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
  MPI_Win dynamic;
  MPI_Aint here, there;
  WORKS(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic));
  MPI_Win_set_errhandler(dynamic, MPI_ERRORS_RETURN);
  MPI_Get_address(memory, &here);
  MPI_Sendrecv(&here, 1, MPI_AINT, left, 0, &there, 1, MPI_AINT, next, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  MPI_Win_lock_all(0, dynamic);
  GIVES(MPI_ERR_RMA_RANGE, MPI_Put(buffer, 1, MPI_INT, next, there, 1, MPI_INT, dynamic));
  WORKS(MPI_Put(buffer, 0, MPI_INT, next, there, 0, MPI_INT, dynamic));
  MPI_Barrier(MPI_COMM_WORLD);
  WORKS(MPI_Win_attach(dynamic, memory, 32));
  WORKS(MPI_Win_attach(dynamic, memory + 16, 32));
  MPI_Barrier(MPI_COMM_WORLD);
  const int value = 900 + rank;
  WORKS(MPI_Put(&value, 1, MPI_INT, next, there, 1, MPI_INT, dynamic));
  WORKS(MPI_Accumulate(&value, 1, MPI_INT, next, there + 92, 1, MPI_INT, MPI_SUM, dynamic));
  GIVES(MPI_ERR_RMA_RANGE, MPI_Put(buffer, 1, MPI_INT, next, there - 2, 1, MPI_INT, dynamic));
  GIVES(MPI_ERR_RMA_RANGE, MPI_Get(buffer, 9, MPI_INT, next, there, 9, MPI_INT, dynamic));
  GIVES(MPI_ERR_RMA_RANGE,
        MPI_Accumulate(buffer, 1, MPI_INT, next, there + 94, 1, MPI_INT, MPI_SUM, dynamic));
  GIVES(MPI_ERR_RMA_RANGE,
        MPI_Fetch_and_op(buffer, buffer + 1, MPI_INT, next, there + 96, MPI_SUM, dynamic));
  // Ranges and strides that wrap around.
  GIVES(MPI_ERR_RMA_RANGE, MPI_Put(buffer, 2, MPI_INT, next, (MPI_Aint)-4, 2, MPI_INT, dynamic));
  MPI_Datatype sparse;
  MPI_Type_create_resized(MPI_INT, 0, (MPI_Aint)1 << 34, &sparse);
  MPI_Type_commit(&sparse);
  GIVES(MPI_ERR_RMA_RANGE,
        MPI_Put(buffer, 1, MPI_INT, next, there, (1 << 30) + 1, sparse, dynamic));
  MPI_Type_free(&sparse);
  // One type over both ranges and the gap between them.
  MPI_Datatype both;
  const int at[] = {0, 1, 23};
  MPI_Type_create_indexed_block(3, 1, at, MPI_INT, &both);
  MPI_Type_commit(&both);
  int seen[3] = {0, 0, 0};
  WORKS(MPI_Win_flush(next, dynamic));
  WORKS(MPI_Get(seen, 3, MPI_INT, next, there, 1, both, dynamic));
  WORKS(MPI_Win_flush(next, dynamic));
  EXPECT(seen[0] == value && seen[2] == value, "%d, %d", seen[0], seen[2]);
  GIVES(MPI_ERR_RMA_RANGE, MPI_Get(seen, 3, MPI_INT, next, there + 4, 1, both, dynamic));
  MPI_Type_free(&both);
  WORKS(MPI_Win_unlock_all(dynamic));
  MPI_Barrier(MPI_COMM_WORLD);
  WORKS(MPI_Win_detach(dynamic, memory));
  WORKS(MPI_Win_detach(dynamic, memory + 16));
  WORKS(MPI_Win_free(&dynamic));
}

static void no_window(void) {
  MPI_Win none = MPI_WIN_NULL;
  GIVES(MPI_ERR_WIN, MPI_Put(buffer, 1, MPI_INT, 0, 0, 1, MPI_INT, none));
  GIVES(MPI_ERR_WIN, MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, none));
  GIVES(MPI_ERR_WIN, MPI_Win_fence(0, none));
  GIVES(MPI_ERR_WIN, MPI_Win_free(&none));
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  int* base;
  MPI_Win_allocate(64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  arguments();
  MPI_Barrier(MPI_COMM_WORLD);
  odd_types();
  MPI_Barrier(MPI_COMM_WORLD);
  epochs();
  MPI_Barrier(MPI_COMM_WORLD);
  freeing();
  creation();
  flavors();
  attached_ranges();
  no_window();
  MPI_Barrier(MPI_COMM_WORLD);
  // After all that the window still does its work.
  const int value = 1000 + rank, left = (rank + ranks - 1) % ranks;
  WORKS(MPI_Win_fence(0, win));
  WORKS(MPI_Put(&value, 1, MPI_INT, (rank + 1) % ranks, 7, 1, MPI_INT, win));
  WORKS(MPI_Win_fence(0, win));
  EXPECT(base[7] == 1000 + left, "%d", base[7]);
  WORKS(MPI_Win_free(&win));
  return end();
}
