// SPDX-License-Identifier: Apache-2.0
// A large message is under way while a rank polls or waits for a window: only the host MPI's
// progress inside the calls on the window lets its peer go on. Usage: progress WAY [SIDE]:
//   get, fetch_and_op, compare_and_swap, flush, lock, sync, test   polls in that way
//   fence                                                          waits in a fence
// Each rank says "went on" before it leaves the MPI.
// SIDE: send (rank 0, which polls, has the message to send) or receive. Uses MPI_COMM_WORLD, with
// PROGRESS_IN_SESSION=1 in the environment a session instead. Wants memory that is coherent.
#include "mpi/faults/check.h"

enum { bytes = 1 << 20, patience_s = 30 };

static MPI_Comm comm;
static MPI_Session session = MPI_SESSION_NULL;
static MPI_Win win;
static int* word;
static char* message;
static double start;

static void open_job(int* argc, char*** argv) {
  const char* wish = getenv("PROGRESS_IN_SESSION");
  if (wish == NULL) {
    begin(argc, argv);
    comm = MPI_COMM_WORLD;
    return;
  }
  MPI_Group group;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "progress", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  MPI_Group_free(&group);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
}

static int close_job(void) {
  if (session == MPI_SESSION_NULL) return end();
  MPI_Comm_free(&comm);
  MPI_Session_finalize(&session);
  return failures != 0;
}

static void end_of_patience(void) {
  if (now() - start < patience_s) return;
  fprintf(stderr, "rank %d: the peer does not go on\n", rank);
  exit(1);
}

// --- Ways to look whether the word of rank 0 is set ----------------------------------------------

static int by_get(void) {
  int seen = 0;
  MPI_Get(&seen, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
  MPI_Win_flush_local(0, win);
  return seen;
}

static int by_fetch_and_op(void) {
  int seen = 0;
  MPI_Fetch_and_op(NULL, &seen, MPI_INT, 0, 0, MPI_NO_OP, win);
  return seen;
}

static int by_compare_and_swap(void) {
  const int no = 7;
  int seen = 0;
  MPI_Compare_and_swap(&no, &no, &seen, MPI_INT, 0, 0, win);
  return seen;
}

static int by_flush(void) {
  MPI_Win_flush(1, win);
  return *(volatile int*)word;
}

static int by_sync(void) {
  MPI_Win_sync(win);
  return *(volatile int*)word;
}

static int by_lock(void) {
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  const int seen = *(volatile int*)word;
  MPI_Win_unlock(0, win);
  return seen;
}

static const struct {
  const char* name;
  int (*look)(void);
  int in_epoch;
} ways[] = {{"get", by_get, 1},
            {"fetch_and_op", by_fetch_and_op, 1},
            {"compare_and_swap", by_compare_and_swap, 1},
            {"flush", by_flush, 1},
            {"sync", by_sync, 1},
            {"lock", by_lock, 0}};

static void poll_by(const char* way) {
  for (unsigned i = 0; i < sizeof ways / sizeof *ways; ++i) {
    if (strcmp(ways[i].name, way) != 0) continue;
    if (ways[i].in_epoch) MPI_Win_lock_all(0, win);
    while (!ways[i].look()) end_of_patience();
    if (ways[i].in_epoch) MPI_Win_unlock_all(win);
    return;
  }
  EXPECT(0, "no way %s", way);
}

// --- Both sides ----------------------------------------------------------------------------------

static MPI_Group only(int which) {
  MPI_Group all, one;
  MPI_Comm_group(comm, &all);
  MPI_Group_incl(all, 1, &which, &one);
  MPI_Group_free(&all);
  return one;
}

static void wait_at_0(const char* way) {
  if (strcmp(way, "fence") == 0) {
    MPI_Win_fence(0, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  } else if (strcmp(way, "test") == 0) {
    MPI_Group peer = only(1);
    int done = 0;
    MPI_Win_post(peer, 0, win);
    while (!done) {
      MPI_Win_test(win, &done);
      end_of_patience();
    }
    MPI_Group_free(&peer);
  } else {
    poll_by(way);
  }
}

static void signal_from_1(const char* way) {
  const int yes = 1;
  const int fence = strcmp(way, "fence") == 0, test = strcmp(way, "test") == 0;
  MPI_Group peer = only(0);
  if (fence) MPI_Win_fence(0, win);
  if (test) MPI_Win_start(peer, 0, win);
  if (!fence && !test) MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  MPI_Accumulate(&yes, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_REPLACE, win);
  if (fence) MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  if (test) MPI_Win_complete(win);
  if (!fence && !test) MPI_Win_unlock(0, win);
  MPI_Group_free(&peer);
}

int main(int argc, char** argv) {
  open_job(&argc, &argv);
  const char* way = argc > 1 ? argv[1] : "get";
  const int sends = argc <= 2 || strcmp(argv[2], "send") == 0;
  MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &word, &win);
  *word = 0;
  message = calloc(1, bytes);
  MPI_Barrier(comm);
  start = now();
  if (rank == 0) {
    MPI_Request request;
    if (sends) MPI_Isend(message, bytes, MPI_BYTE, 1, 0, comm, &request);
    if (!sends) MPI_Irecv(message, bytes, MPI_BYTE, 1, 0, comm, &request);
    wait_at_0(way);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    if (sends) MPI_Recv(message, bytes, MPI_BYTE, 0, 0, comm, MPI_STATUS_IGNORE);
    if (!sends) MPI_Send(message, bytes, MPI_BYTE, 0, 0, comm);
    signal_from_1(way);
  }
  EXPECT(*word == (rank == 0));
  MPI_Win_free(&win);
  free(message);
  if (failures == 0) puts("went on");
  fflush(stdout);
  return close_job();
}
