// SPDX-License-Identifier: Apache-2.0
// Purpose: an ordinary MPI program that posts to and starts with many groups, made and freed again
// and again, so that handles come back with other members. Each put must reach whom its group
// names. cli/tests/window_checks_test.py runs it.
//
//   mpiexec -n 4 groups_check
//
// Thread safety: single-threaded.
#include "mpi/faults/check.h"

static MPI_Win win;
static MPI_Group world;
static int* base;  // one int for each rank

#define WORKS(call)                                                  \
  do {                                                               \
    const int error_ = (call);                                       \
    EXPECT(error_ == MPI_SUCCESS, "%s: %s", #call, text_of(error_)); \
  } while (0)

static MPI_Group group_of(const int* members, int n) {
  MPI_Group group;
  MPI_Group_incl(world, n, members, &group);
  return group;
}

// One exposure and one access: everybody puts its rank and the turn to the members of `targets`,
// and is put to by those of `origins`.
static void exchange(MPI_Group origins, MPI_Group targets, int distance, int turn) {
  const int target = (rank + distance) % ranks, origin = (rank + ranks - distance) % ranks;
  const int value = 1000 * turn + rank;
  WORKS(MPI_Win_post(origins, 0, win));
  WORKS(MPI_Win_start(targets, 0, win));
  WORKS(MPI_Put(&value, 1, MPI_INT, target, rank, 1, MPI_INT, win));
  const int other = (target + 1) % ranks;
  EXPECT(class_of(MPI_Put(&value, 1, MPI_INT, other, rank, 1, MPI_INT, win)) == MPI_ERR_RMA_SYNC,
         "turn %d: rank %d is no target of the group", turn, other);
  WORKS(MPI_Win_complete(win));
  WORKS(MPI_Win_wait(win));
  EXPECT(base[origin] == 1000 * turn + origin, "turn %d: %d", turn, base[origin]);
}

// A group that is freed gives its handle to the next one that is made.
static void handles_that_come_back(void) {
  for (int turn = 1; turn < 40; ++turn) {
    const int distance = turn % ranks;
    const int origin = (rank + ranks - distance) % ranks, target = (rank + distance) % ranks;
    MPI_Group origins = group_of(&origin, 1), targets = group_of(&target, 1);
    exchange(origins, targets, distance, turn);
    WORKS(MPI_Group_free(&targets));
    WORKS(MPI_Group_free(&origins));
  }
}

// More than a window remembers, in an order in which the oldest comes back.
static void many_groups_in_turn(void) {
  MPI_Group origins[4], targets[4];
  for (int distance = 0; distance < ranks; ++distance) {
    const int origin = (rank + ranks - distance) % ranks, target = (rank + distance) % ranks;
    origins[distance] = group_of(&origin, 1);
    targets[distance] = group_of(&target, 1);
  }
  for (int turn = 50; turn < 80; ++turn) {
    const int distance = turn * 7 % ranks;
    exchange(origins[distance], targets[distance], distance, turn);
  }
  for (int distance = 0; distance < ranks; ++distance) {
    MPI_Group_free(&origins[distance]);
    MPI_Group_free(&targets[distance]);
  }
}

// The window's ranks count, not the world's: there they are in the opposite order.
static void ranks_of_the_window(void) {
  MPI_Comm reversed;
  MPI_Win other;
  int* memory = NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, ranks - rank, &reversed);
  WORKS(MPI_Win_allocate(4, 4, MPI_INFO_NULL, reversed, &memory, &other));
  MPI_Win_set_errhandler(other, MPI_ERRORS_RETURN);
  const int next = (rank + 1) % ranks, former = (rank + ranks - 1) % ranks;
  MPI_Group origins = group_of(&former, 1), targets = group_of(&next, 1);
  WORKS(MPI_Win_post(origins, 0, other));
  WORKS(MPI_Win_start(targets, 0, other));
  WORKS(MPI_Put(&rank, 1, MPI_INT, ranks - 1 - next, 0, 1, MPI_INT, other));
  WORKS(MPI_Win_complete(other));
  WORKS(MPI_Win_wait(other));
  EXPECT(*memory == former, "%d, not %d", *memory, former);
  MPI_Group_free(&origins);
  MPI_Group_free(&targets);
  WORKS(MPI_Win_free(&other));
  MPI_Comm_free(&reversed);
}

// A failed call leaves nothing behind that a later one takes for the group's members.
static void strangers(void) {
  MPI_Comm pair;
  MPI_Win other;
  int* memory = NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &pair);
  WORKS(MPI_Win_allocate(4, 4, MPI_INFO_NULL, pair, &memory, &other));
  MPI_Win_set_errhandler(other, MPI_ERRORS_RETURN);
  const int outside = (rank + 2) % ranks, partner = rank ^ 1, both[] = {rank, outside};
  MPI_Group none = group_of(both, 2), one = group_of(&partner, 1);
  for (int turn = 0; turn < 6; ++turn) {
    EXPECT(class_of(MPI_Win_post(none, 0, other)) == MPI_ERR_GROUP, "turn %d", turn);
    EXPECT(class_of(MPI_Win_start(none, 0, other)) == MPI_ERR_GROUP, "turn %d", turn);
    WORKS(MPI_Win_post(one, 0, other));
    WORKS(MPI_Win_start(one, 0, other));
    const int value = 10 * turn + rank;
    WORKS(MPI_Put(&value, 1, MPI_INT, partner % 2, 0, 1, MPI_INT, other));
    WORKS(MPI_Win_complete(other));
    WORKS(MPI_Win_wait(other));
    EXPECT(*memory == 10 * turn + partner, "turn %d: %d", turn, *memory);
  }
  MPI_Group_free(&none);
  MPI_Group_free(&one);
  WORKS(MPI_Win_free(&other));
  MPI_Comm_free(&pair);
}

static void nobody(void) {
  WORKS(MPI_Win_post(MPI_GROUP_EMPTY, 0, win));
  WORKS(MPI_Win_start(MPI_GROUP_EMPTY, 0, win));
  EXPECT(class_of(MPI_Put(&rank, 1, MPI_INT, rank, 0, 1, MPI_INT, win)) == MPI_ERR_RMA_SYNC,
         "a group without members");
  WORKS(MPI_Win_complete(win));
  WORKS(MPI_Win_wait(win));
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  if (ranks != 4) {
    fprintf(stderr, "groups_check wants 4 processes\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  WORKS(MPI_Win_allocate(4 * ranks, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  nobody();
  handles_that_come_back();
  many_groups_in_turn();
  ranks_of_the_window();
  strangers();
  MPI_Group_free(&world);
  WORKS(MPI_Win_free(&win));
  return end();
}
