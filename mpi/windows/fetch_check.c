// SPDX-License-Identifier: Apache-2.0
// Purpose: an ordinary MPI program that fetches and updates with each shape of buffers: arrays of
// one type, layouts with gaps on any side, pairs, buffers longer or shorter than the request.
// After each, all bytes around are looked at. cli/tests/window_checks_test.py runs it.
//
//   mpiexec -n 2 fetch_check
//
// Thread safety: single-threaded.
#include "mpi/faults/check.h"

enum { kInts = 32, kUntouched = -77 };

static MPI_Win win;
static int* base;  // kInts of them, of this process
static int next;

#define GIVES(class, call)                                                                   \
  do {                                                                                       \
    const int error_ = (call);                                                               \
    EXPECT(class_of(error_) == (class), "%s: class %d, not %s: %s", #call, class_of(error_), \
           #class, text_of(error_));                                                         \
  } while (0)
#define WORKS(call) GIVES(MPI_SUCCESS, call)

static void fill(int* numbers, int first) {
  for (int i = 0; i < kInts; ++i) numbers[i] = first + i;
}
static void untouched(int* numbers) {
  for (int i = 0; i < kInts; ++i) numbers[i] = kUntouched;
}

// Each process's own memory anew, and then an epoch at the next one.
static void begin_epoch(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
  fill(base, 100);
  MPI_Win_unlock(rank, win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win);
}
static void end_epoch(int* theirs) {
  MPI_Win_flush(next, win);
  MPI_Get(theirs, kInts, MPI_INT, next, 0, kInts, MPI_INT, win);
  MPI_Win_unlock(next, win);
}

// `n` elements from `at` on are `first`, `first + step`, ...; all others are as fill() or
// untouched() left them.
static void expect_run(const char* what, const int* numbers, int filled, int at, int n, int first,
                       int step) {
  for (int i = 0; i < kInts; ++i) {
    const int rest = filled ? 100 + i : kUntouched;
    const int wanted = i >= at && i < at + n ? first + (i - at) * step : rest;
    EXPECT(numbers[i] == wanted, "%s: [%d] is %d, not %d", what, i, numbers[i], wanted);
  }
}

static void arrays(void) {
  int from[kInts], former[kInts], theirs[kInts];
  for (int n = 1; n <= 5; ++n) {
    begin_epoch();
    fill(from, 1000);
    untouched(former);
    WORKS(MPI_Get_accumulate(from, n, MPI_INT, former, n, MPI_INT, next, 3, n, MPI_INT, MPI_SUM,
                             win));
    end_epoch(theirs);
    expect_run("sum: former", former, 0, 0, n, 103, 1);
    expect_run("sum: target", theirs, 1, 3, n, 1103, 2);

    begin_epoch();
    untouched(former);
    WORKS(MPI_Get_accumulate(from, n, MPI_INT, former, n, MPI_INT, next, 0, n, MPI_INT, MPI_REPLACE,
                             win));
    end_epoch(theirs);
    expect_run("replace: former", former, 0, 0, n, 100, 1);
    expect_run("replace: target", theirs, 1, 0, n, 1000, 1);

    begin_epoch();
    untouched(former);
    WORKS(MPI_Get_accumulate(NULL, 0, MPI_DATATYPE_NULL, former, n, MPI_INT, next, kInts - n, n,
                             MPI_INT, MPI_NO_OP, win));
    end_epoch(theirs);
    expect_run("read: former", former, 0, 0, n, 100 + kInts - n, 1);
    expect_run("read: target", theirs, 1, 0, 0, 0, 0);
  }
}

// Longer buffers than the target's part: the rest is neither read nor written.
static void longer_buffers(void) {
  int from[kInts], former[kInts], theirs[kInts];
  begin_epoch();
  fill(from, 1000);
  untouched(former);
  WORKS(
      MPI_Get_accumulate(from, 7, MPI_INT, former, 9, MPI_INT, next, 4, 3, MPI_INT, MPI_SUM, win));
  end_epoch(theirs);
  expect_run("longer: former", former, 0, 0, 3, 104, 1);
  expect_run("longer: target", theirs, 1, 4, 3, 1104, 2);

  begin_epoch();
  WORKS(MPI_Accumulate(from, 7, MPI_INT, next, 4, 3, MPI_INT, MPI_REPLACE, win));
  WORKS(MPI_Accumulate(from, 2, MPI_INT, next, 20, 6, MPI_INT, MPI_REPLACE, win));
  end_epoch(theirs);
  EXPECT(theirs[20] == 1000 && theirs[21] == 1001 && theirs[22] == 122, "%d", theirs[22]);
  theirs[20] = 120, theirs[21] = 121;
  expect_run("longer accumulate", theirs, 1, 4, 3, 1000, 1);
}

// Two of three, so that every third is a gap.
static MPI_Datatype gapped(void) {
  MPI_Datatype pair, type;
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_create_resized(pair, 0, 3 * (MPI_Aint)sizeof(int), &type);
  MPI_Type_commit(&type);
  MPI_Type_free(&pair);
  return type;
}
// The same elements, the gaps taken out of `numbers`.
static void expect_gapped(const char* what, const int* numbers, int filled, int n, int first,
                          int step) {
  int packed[kInts];
  for (int i = 0; i < kInts; ++i) packed[i] = filled ? 100 + i : kUntouched;
  for (int i = 0; i < kInts; ++i) {
    const int in_gap = i % 3 == 2 || i / 3 >= n / 2;
    const int wanted = in_gap ? packed[i] : first + step * (i / 3 * 2 + i % 3);
    EXPECT(numbers[i] == wanted, "%s: [%d] is %d, not %d", what, i, numbers[i], wanted);
  }
}

static void gaps(void) {
  int from[kInts], former[kInts], theirs[kInts];
  MPI_Datatype type = gapped();
  // At the origin: 1000, 1001, 1003, 1004, 1006, 1007 are its elements.
  begin_epoch();
  fill(from, 1000);
  untouched(former);
  WORKS(
      MPI_Get_accumulate(from, 3, type, former, 6, MPI_INT, next, 5, 6, MPI_INT, MPI_REPLACE, win));
  end_epoch(theirs);
  expect_run("gaps at the origin: former", former, 0, 0, 6, 105, 1);
  for (int i = 0; i < 6; ++i) {
    const int wanted = 1000 + i / 2 * 3 + i % 2;
    EXPECT(theirs[5 + i] == wanted, "[%d] is %d, not %d", 5 + i, theirs[5 + i], wanted);
    theirs[5 + i] = 105 + i;
  }
  expect_run("gaps at the origin: target", theirs, 1, 0, 0, 0, 0);

  // At the result, which has room for two elements more: they and the gaps keep their contents.
  begin_epoch();
  untouched(former);
  WORKS(MPI_Get_accumulate(from, 6, MPI_INT, former, 4, type, next, 5, 6, MPI_INT, MPI_SUM, win));
  end_epoch(theirs);
  expect_gapped("gaps at the result: former", former, 0, 6, 105, 1);
  expect_run("gaps at the result: target", theirs, 1, 5, 6, 1105, 2);

  // At the target.
  begin_epoch();
  untouched(former);
  WORKS(
      MPI_Get_accumulate(from, 6, MPI_INT, former, 6, MPI_INT, next, 0, 3, type, MPI_REPLACE, win));
  end_epoch(theirs);
  EXPECT(former[0] == 100 && former[1] == 101 && former[2] == 103 && former[5] == 107, "%d, %d",
         former[2], former[5]);
  EXPECT(former[6] == kUntouched, "%d", former[6]);
  expect_gapped("gaps at the target", theirs, 1, 6, 1000, 1);

  // On all sides.
  begin_epoch();
  untouched(former);
  WORKS(MPI_Get_accumulate(from, 3, type, former, 3, type, next, 0, 3, type, MPI_SUM, win));
  end_epoch(theirs);
  for (int i = 0; i < kInts; ++i) {
    const int in_gap = i % 3 == 2 || i >= 9;
    EXPECT(former[i] == (in_gap ? kUntouched : 100 + i), "[%d] is %d", i, former[i]);
    EXPECT(theirs[i] == (in_gap ? 100 + i : 1100 + 2 * i), "[%d] is %d", i, theirs[i]);
  }
  MPI_Type_free(&type);
}

// A value and its place: 12 bytes of data, 16 of memory.
static void pairs(void) {
  struct {
    double value;
    int place;
    int padding;
  } mine[2] = {{-5, 7, 1}, {50, 8, 2}}, former[2] = {{0, 0, 3}, {0, 0, 4}}, theirs[2] = {{0}};
  begin_epoch();
  MPI_Accumulate((const double[]){1, 2, 3, 4}, 4, MPI_DOUBLE, next, 0, 4, MPI_DOUBLE, MPI_REPLACE,
                 win);
  const int places[] = {21, 22};
  for (int i = 0; i < 2; ++i)
    MPI_Accumulate(&places[i], 1, MPI_INT, next, 4 * i + 2, 1, MPI_INT, MPI_REPLACE, win);
  WORKS(MPI_Get_accumulate(mine, 2, MPI_DOUBLE_INT, former, 2, MPI_DOUBLE_INT, next, 0, 2,
                           MPI_DOUBLE_INT, MPI_MINLOC, win));
  MPI_Win_flush(next, win);
  MPI_Get(theirs, 2, MPI_DOUBLE_INT, next, 0, 2, MPI_DOUBLE_INT, win);
  MPI_Win_unlock(next, win);
  EXPECT(former[0].value == 1 && former[0].place == 21, "%g", former[0].value);
  EXPECT(former[1].value == 3 && former[1].place == 22, "%g", former[1].value);
  EXPECT(theirs[0].value == -5 && theirs[0].place == 7, "%g", theirs[0].value);
  EXPECT(theirs[1].value == 3 && theirs[1].place == 22, "%g", theirs[1].value);
}

static void refusals(void) {
  int from[kInts], former[kInts], theirs[kInts];
  MPI_Datatype type = gapped();
  fill(from, 1000);
  untouched(former);
  begin_epoch();
  GIVES(MPI_ERR_COUNT, MPI_Get_accumulate(from, 2, MPI_INT, former, 3, MPI_INT, next, 0, 3, MPI_INT,
                                          MPI_SUM, win));
  GIVES(MPI_ERR_COUNT, MPI_Get_accumulate(from, 3, MPI_INT, former, 2, MPI_INT, next, 0, 3, MPI_INT,
                                          MPI_SUM, win));
  GIVES(MPI_ERR_COUNT,
        MPI_Get_accumulate(from, 1, type, former, 3, MPI_INT, next, 0, 3, MPI_INT, MPI_SUM, win));
  GIVES(MPI_ERR_COUNT,
        MPI_Get_accumulate(from, 3, MPI_INT, former, 1, type, next, 0, 3, MPI_INT, MPI_SUM, win));
  GIVES(MPI_ERR_COUNT, MPI_Get_accumulate(NULL, 0, MPI_INT, former, 2, MPI_INT, next, 0, 3, MPI_INT,
                                          MPI_NO_OP, win));
  GIVES(MPI_ERR_COUNT, MPI_Get_accumulate(from, -1, MPI_INT, former, 1, MPI_INT, next, 0, 1,
                                          MPI_INT, MPI_SUM, win));
  GIVES(MPI_ERR_COUNT, MPI_Get_accumulate(from, 1, MPI_INT, former, -1, MPI_INT, next, 0, 1,
                                          MPI_INT, MPI_SUM, win));
  GIVES(MPI_ERR_TYPE, MPI_Get_accumulate(from, 1, MPI_FLOAT, former, 1, MPI_INT, next, 0, 1,
                                         MPI_INT, MPI_SUM, win));
  GIVES(MPI_ERR_TYPE, MPI_Get_accumulate(from, 1, MPI_INT, former, 1, MPI_FLOAT, next, 0, 1,
                                         MPI_INT, MPI_SUM, win));
  GIVES(MPI_ERR_TYPE, MPI_Accumulate(from, 1, MPI_FLOAT, next, 0, 1, MPI_INT, MPI_SUM, win));
  GIVES(MPI_ERR_OP, MPI_Accumulate(from, 1, MPI_INT, next, 0, 1, MPI_INT, MPI_NO_OP, win));
  GIVES(MPI_ERR_RANK, MPI_Get_accumulate(from, 1, MPI_INT, former, 1, MPI_INT, ranks, 0, 1, MPI_INT,
                                         MPI_SUM, win));
  GIVES(MPI_ERR_RMA_RANGE, MPI_Get_accumulate(from, 2, MPI_INT, former, 2, MPI_INT, next, kInts - 1,
                                              2, MPI_INT, MPI_SUM, win));
  GIVES(MPI_ERR_RMA_RANGE, MPI_Put(from, 1, type, next, kInts - 1, 1, type, win));
  GIVES(MPI_ERR_TYPE, MPI_Fetch_and_op(from, former, type, next, 0, MPI_SUM, win));
  // Nothing to do is no mistake, whatever the other sides hold.
  WORKS(
      MPI_Get_accumulate(from, 0, MPI_INT, former, 0, MPI_INT, next, 0, 0, MPI_INT, MPI_SUM, win));
  WORKS(MPI_Get_accumulate(from, 3, MPI_INT, former, 3, MPI_INT, next, kInts, 0, MPI_INT, MPI_SUM,
                           win));
  WORKS(MPI_Get_accumulate(from, 1, MPI_INT, former, 1, MPI_INT, MPI_PROC_NULL, -1, 1, MPI_INT,
                           MPI_SUM, win));
  WORKS(MPI_Fetch_and_op(from, former, MPI_INT, MPI_PROC_NULL, 0, MPI_SUM, win));
  WORKS(MPI_Compare_and_swap(from, from, former, MPI_INT, MPI_PROC_NULL, 0, win));
  WORKS(MPI_Accumulate(from, 0, MPI_INT, next, 0, 2, MPI_INT, MPI_SUM, win));
  end_epoch(theirs);
  expect_run("refused: former", former, 0, 0, 0, 0, 0);
  expect_run("refused: target", theirs, 1, 0, 0, 0, 0);
  MPI_Type_free(&type);
}

static void single_elements(void) {
  const int one = 1, five = 5, other = 102, equal = 107;
  int former = 0, theirs[kInts];
  begin_epoch();
  WORKS(MPI_Fetch_and_op(&five, &former, MPI_INT, next, 2, MPI_SUM, win));
  EXPECT(former == 102, "%d", former);
  WORKS(MPI_Fetch_and_op(NULL, &former, MPI_INT, next, 2, MPI_NO_OP, win));
  EXPECT(former == 107, "%d", former);
  WORKS(MPI_Compare_and_swap(&one, &other, &former, MPI_INT, next, 2, win));
  EXPECT(former == 107, "not equal: %d", former);
  WORKS(MPI_Compare_and_swap(&one, &equal, &former, MPI_INT, next, 2, win));
  EXPECT(former == 107, "equal: %d", former);
  end_epoch(theirs);
  expect_run("single elements", theirs, 1, 2, 1, 1, 0);
}

static void requests(void) {
  const int one = 1;
  int former = 0, count = -1, theirs[kInts];
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Status status;
  begin_epoch();
  WORKS(MPI_Rget_accumulate(&one, 1, MPI_INT, &former, 1, MPI_INT, next, 6, 1, MPI_INT, MPI_SUM,
                            win, &request));
  WORKS(MPI_Wait(&request, &status));
  EXPECT(former == 106, "%d", former);
  MPI_Get_elements(&status, MPI_BYTE, &count);
  EXPECT(count == 0, "%d", count);
  int cancelled = 1;
  MPI_Test_cancelled(&status, &cancelled);
  EXPECT(!cancelled);
  GIVES(MPI_ERR_RANK, MPI_Rget_accumulate(&one, 1, MPI_INT, &former, 1, MPI_INT, ranks, 6, 1,
                                          MPI_INT, MPI_SUM, win, &request));
  EXPECT(request == MPI_REQUEST_NULL, "a call that fails makes no request");
  end_epoch(theirs);
  expect_run("requests", theirs, 1, 6, 1, 107, 0);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  next = (rank + 1) % ranks;
  MPI_Win_allocate(kInts * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  arrays();
  longer_buffers();
  gaps();
  pairs();
  refusals();
  single_elements();
  requests();
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_free(&win);
  return end();
}
