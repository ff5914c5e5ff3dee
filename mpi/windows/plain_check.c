// SPDX-License-Identifier: Apache-2.0
// Purpose: an ordinary MPI program whose calls are as most programs make them: as many elements of
// one predefined type on both sides. The parts of its window have a size and a unit each; after a
// call all bytes of the target's part and of the buffers are looked at, and the errors past each
// bound. cli/tests/window_checks_test.py runs it.
//
//   mpiexec -n 3 plain_check
//
// Thread safety: single-threaded.
#include "mpi/faults/check.h"

#include <stdint.h>

enum { kMostBytes = 160, kGuard = 16, kMostElements = 3 };

static MPI_Win win;
static unsigned char* base;
static int target;                          // of the calls
static int unit, bytes;                     // of its part
static MPI_Datatype whole;                  // of its part, and no predefined type
static unsigned char expected[kMostBytes];  // its part
static unsigned char buffer[kMostBytes + 2 * kGuard], *const result = buffer + kGuard;

static int unit_of(int r) { return (const int[]){8, 1, 4}[r % 3]; }
static int bytes_of(int r) { return 96 + 32 * (r % 3); }

#define GIVES(class, call)                                                                    \
  do {                                                                                        \
    const int error_ = (call);                                                                \
    EXPECT(class_of(error_) == (class), "target %d: %s: class %d, not %s: %s", target, #call, \
           class_of(error_), #class, text_of(error_));                                        \
  } while (0)
#define WORKS(call) GIVES(MPI_SUCCESS, call)

static unsigned char pattern(int i) { return (unsigned char)(7 * i + 3); }

// The target's part anew, by calls of another kind than those that are looked at.
static void begin_call(void) {
  for (int i = 0; i < bytes; ++i) expected[i] = pattern(i);
  memset(buffer, 0xa5, sizeof buffer);
  MPI_Put(expected, bytes, MPI_BYTE, target, 0, 1, whole, win);
  MPI_Win_flush(target, win);
}

// `written`: bytes of `result`. The rest of the buffer is untouched.
static void end_call(const char* what, int written) {
  unsigned char theirs[kMostBytes];
  MPI_Win_flush(target, win);
  MPI_Get(theirs, bytes, MPI_BYTE, target, 0, 1, whole, win);
  MPI_Win_flush(target, win);
  for (int i = 0; i < bytes; ++i)
    EXPECT(theirs[i] == expected[i], "%s: target %d: byte %d is %d, not %d", what, target, i,
           theirs[i], expected[i]);
  for (int i = 0; i < (int)sizeof buffer; ++i)
    EXPECT((i >= kGuard && i < kGuard + written) || buffer[i] == 0xa5,
           "%s: target %d: byte %d of the result", what, target, i - kGuard);
}

static void expect_result(const char* what, const void* wanted, int n) {
  EXPECT(memcmp(result, wanted, (size_t)n) == 0, "%s: target %d", what, target);
}

// --- Elements of each size ----------------------------------------------------------------------

static void put_and_get(MPI_Datatype type, int size, MPI_Aint at, int count) {
  unsigned char values[8 * kMostElements];
  for (int i = 0; i < count * size; ++i) values[i] = (unsigned char)(200 - i);
  begin_call();
  memcpy(expected + at * unit, values, (size_t)(count * size));
  WORKS(MPI_Put(values, count, type, target, at, count, type, win));
  end_call("put", 0);
  begin_call();
  WORKS(MPI_Get(result, count, type, target, at, count, type, win));
  end_call("get", count * size);
  expect_result("get", expected + at * unit, count * size);
}

#define FOR_INTEGERS(DO) \
  DO(int8_t, MPI_INT8_T) DO(int16_t, MPI_INT16_T) DO(int32_t, MPI_INT32_T) DO(int64_t, MPI_INT64_T)

// Sums, exchanges and comparisons of integers of one type.
#define ARITHMETIC(TYPE, MPI_TYPE)                                                                 \
  static void arithmetic_of_##TYPE(MPI_Aint at, int count) {                                       \
    TYPE values[kMostElements], former[kMostElements], sums[kMostElements];                        \
    unsigned char* const place = expected + at * unit;                                             \
    begin_call();                                                                                  \
    memcpy(former, place, (size_t)count * sizeof(TYPE));                                           \
    for (int i = 0; i < count; ++i) {                                                              \
      values[i] = (TYPE)(41 + i);                                                                  \
      sums[i] = (TYPE)((uint64_t)former[i] + (uint64_t)values[i]);                                 \
    }                                                                                              \
    memcpy(place, sums, (size_t)count * sizeof(TYPE));                                             \
    WORKS(MPI_Accumulate(values, count, MPI_TYPE, target, at, count, MPI_TYPE, MPI_SUM, win));     \
    end_call("sum", 0);                                                                            \
    begin_call();                                                                                  \
    memcpy(place, values, (size_t)count * sizeof(TYPE));                                           \
    WORKS(MPI_Accumulate(values, count, MPI_TYPE, target, at, count, MPI_TYPE, MPI_REPLACE, win)); \
    end_call("replace", 0);                                                                        \
    begin_call();                                                                                  \
    memcpy(place, sums, sizeof(TYPE));                                                             \
    WORKS(MPI_Fetch_and_op(values, result, MPI_TYPE, target, at, MPI_SUM, win));                   \
    end_call("fetched sum", sizeof(TYPE));                                                         \
    expect_result("fetched sum", former, sizeof(TYPE));                                            \
    begin_call();                                                                                  \
    memcpy(place, values, sizeof(TYPE));                                                           \
    WORKS(MPI_Fetch_and_op(values, result, MPI_TYPE, target, at, MPI_REPLACE, win));               \
    end_call("exchange", sizeof(TYPE));                                                            \
    expect_result("exchange", former, sizeof(TYPE));                                               \
    begin_call();                                                                                  \
    WORKS(MPI_Compare_and_swap(values, sums, result, MPI_TYPE, target, at, win));                  \
    end_call("unequal", sizeof(TYPE));                                                             \
    expect_result("unequal", former, sizeof(TYPE));                                                \
    begin_call();                                                                                  \
    memcpy(place, values, sizeof(TYPE));                                                           \
    WORKS(MPI_Compare_and_swap(values, former, result, MPI_TYPE, target, at, win));                \
    end_call("equal", sizeof(TYPE));                                                               \
    expect_result("equal", former, sizeof(TYPE));                                                  \
  }
FOR_INTEGERS(ARITHMETIC)

// The first places, one in the middle, and the last one that there is.
static void all_places(void) {
#define AT_PLACES(TYPE, MPI_TYPE)                                                \
  for (int count = 1; count <= kMostElements; count += kMostElements - 1) {      \
    const int size = (int)sizeof(TYPE);                                          \
    const int last = (bytes - count * size) / unit;                              \
    for (int i = 0; i < 4; ++i) {                                                \
      const MPI_Aint at = (const int[]){0, 8 / unit, bytes / 2 / unit, last}[i]; \
      put_and_get(MPI_TYPE, size, at, count);                                    \
      arithmetic_of_##TYPE(at, count);                                           \
    }                                                                            \
  }
  FOR_INTEGERS(AT_PLACES)
}

// --- Bounds -------------------------------------------------------------------------------------

static const int32_t one = 1;

// All calls for one element. None reaches the target.
static void all_give(int class, int at_rank, MPI_Aint at) {
  int32_t* const former = (int32_t*)(void*)result;
  begin_call();
  GIVES(class, MPI_Put(&one, 1, MPI_INT32_T, at_rank, at, 1, MPI_INT32_T, win));
  GIVES(class, MPI_Get(former, 1, MPI_INT32_T, at_rank, at, 1, MPI_INT32_T, win));
  GIVES(class, MPI_Accumulate(&one, 1, MPI_INT32_T, at_rank, at, 1, MPI_INT32_T, MPI_SUM, win));
  GIVES(class, MPI_Fetch_and_op(&one, former, MPI_INT32_T, at_rank, at, MPI_SUM, win));
  GIVES(class, MPI_Compare_and_swap(&one, &one, former, MPI_INT32_T, at_rank, at, win));
  end_call("refused", 0);
}

static void bounds(void) {
  all_give(MPI_ERR_RMA_RANGE, target, (bytes - 4) / unit + 1);
  all_give(MPI_ERR_RMA_RANGE, target, bytes / unit);
  all_give(MPI_ERR_RMA_RANGE, target, bytes / unit + 1);
  all_give(MPI_ERR_RMA_RANGE, target, (MPI_Aint)1 << 40);
  all_give(MPI_ERR_RMA_RANGE, target, (MPI_Aint)(INT64_MAX / 8 + 1));  // 2^63 bytes of 8 each
  all_give(MPI_ERR_RMA_RANGE, target, (MPI_Aint)1 << 61);              // 2^64, of no bytes left
  all_give(MPI_ERR_DISP, target, -1);
  all_give(MPI_ERR_RANK, ranks, 0);
  all_give(MPI_ERR_RANK, -77, 0);
  all_give(MPI_SUCCESS, MPI_PROC_NULL, 0);

  begin_call();
  const int many = bytes / 4 + 1;
  unsigned char large[2 * kMostBytes] = {0};
  GIVES(MPI_ERR_RMA_RANGE, MPI_Put(large, many, MPI_INT32_T, target, 0, many, MPI_INT32_T, win));
  GIVES(MPI_ERR_RMA_RANGE, MPI_Get(large, many, MPI_INT32_T, target, 0, many, MPI_INT32_T, win));
  GIVES(MPI_ERR_RMA_RANGE,
        MPI_Accumulate(large, many, MPI_INT32_T, target, 0, many, MPI_INT32_T, MPI_SUM, win));
  GIVES(MPI_ERR_COUNT, MPI_Put(large, -1, MPI_INT32_T, target, 0, -1, MPI_INT32_T, win));
  GIVES(MPI_ERR_COUNT, MPI_Get(large, -1, MPI_INT32_T, target, 0, -1, MPI_INT32_T, win));
  GIVES(MPI_ERR_COUNT,
        MPI_Accumulate(large, -1, MPI_INT32_T, target, 0, -1, MPI_INT32_T, MPI_SUM, win));
#if MPI_VERSION >= 4
  const MPI_Count wraps = (MPI_Count)1 << 61;  // of 8 bytes each
  GIVES(MPI_ERR_RMA_RANGE,
        MPI_Put_c(large, wraps, MPI_INT64_T, target, 0, wraps, MPI_INT64_T, win));
  GIVES(MPI_ERR_RMA_RANGE,
        MPI_Get_c(large, wraps, MPI_INT64_T, target, 0, wraps, MPI_INT64_T, win));
  GIVES(MPI_ERR_RMA_RANGE,
        MPI_Accumulate_c(large, wraps, MPI_INT64_T, target, 0, wraps, MPI_INT64_T, MPI_SUM, win));
#endif
  // Of nothing, anywhere in the window and at its end.
  for (int at = 0; at <= bytes / unit; ++at) {
    WORKS(MPI_Put(large, 0, MPI_INT32_T, target, at, 0, MPI_INT32_T, win));
    WORKS(MPI_Get(large, 0, MPI_INT32_T, target, at, 0, MPI_INT32_T, win));
    WORKS(MPI_Accumulate(large, 0, MPI_INT32_T, target, at, 0, MPI_INT32_T, MPI_SUM, win));
  }
  end_call("refused or nothing", 0);
}

// --- Calls that look as if they were such -------------------------------------------------------

static void other_types(void) {
  const int32_t values[6] = {11, 12, 13, 14, 15, 16};
  const MPI_Aint at = 8 / unit;
  int32_t* const got = (int32_t*)(void*)result;
  MPI_Datatype spaced;  // an int and a gap
  MPI_Type_create_resized(MPI_INT32_T, 0, 8, &spaced);
  MPI_Type_commit(&spaced);
  begin_call();
  for (int i = 0; i < 3; ++i) memcpy(expected + 8 + 4 * i, &values[2 * i], 4);
  WORKS(MPI_Put(values, 3, spaced, target, at, 3, MPI_INT32_T, win));
  end_call("put from a layout with gaps", 0);
  begin_call();
  for (int i = 0; i < 3; ++i) memcpy(expected + 8 + 8 * i, &values[i], 4);
  WORKS(MPI_Put(values, 3, MPI_INT32_T, target, at, 3, spaced, win));
  end_call("put to a layout with gaps", 0);
  begin_call();
  for (int i = 0; i < 3; ++i) memcpy(expected + 8 + 8 * i, &values[2 * i], 4);
  WORKS(MPI_Put(values, 3, spaced, target, at, 3, spaced, win));
  end_call("put with gaps on both sides", 0);
  begin_call();
  WORKS(MPI_Get(got, 3, spaced, target, at, 3, MPI_INT32_T, win));
  for (int i = 0; i < 3; ++i)
    EXPECT(memcmp(got + 2 * i, expected + 8 + 4 * i, 4) == 0, "target %d: %d", target, i);
  memset(got + 1, 0xa5, 4), memset(got + 3, 0xa5, 4);
  end_call("get to a layout with gaps", 20);
  MPI_Type_free(&spaced);
  // Without gaps, and yet more than one element.
  MPI_Datatype triple;
  MPI_Type_contiguous(3, MPI_INT32_T, &triple);
  MPI_Type_commit(&triple);
  begin_call();
  memcpy(expected + 8, values, sizeof values);
  WORKS(MPI_Put(values, 2, triple, target, at, 2, triple, win));
  end_call("put of triples", 0);
  begin_call();
  for (int i = 0; i < 6; ++i) {
    uint32_t sum;
    memcpy(&sum, expected + 8 + 4 * i, 4);
    sum += (uint32_t)values[i];
    memcpy(expected + 8 + 4 * i, &sum, 4);
  }
  WORKS(MPI_Accumulate(values, 2, triple, target, at, 2, triple, MPI_SUM, win));
  end_call("sum of triples", 0);
  begin_call();
  GIVES(MPI_ERR_TYPE, MPI_Fetch_and_op(values, result, triple, target, at, MPI_SUM, win));
  GIVES(MPI_ERR_TYPE, MPI_Compare_and_swap(values, values, result, triple, target, at, win));
  end_call("refused", 0);
  MPI_Type_free(&triple);
}

// The shorter side counts.
static void other_counts(void) {
  const int32_t values[6] = {11, 12, 13, 14, 15, 16};
  const MPI_Aint at = 8 / unit;
  for (int n = 1; n <= 5; n += 4) {
    begin_call();
    memcpy(expected + 8, values, (size_t)(n < 3 ? n : 3) * 4);
    WORKS(MPI_Put(values, n, MPI_INT32_T, target, at, 3, MPI_INT32_T, win));
    end_call("put of another count", 0);
    begin_call();
    WORKS(MPI_Get(result, n, MPI_INT32_T, target, at, 3, MPI_INT32_T, win));
    end_call("get of another count", (n < 3 ? n : 3) * 4);
  }
}

static void other_operations(void) {
  int32_t values[4] = {1, 2, 3, 4};
  begin_call();
  GIVES(MPI_ERR_OP, MPI_Accumulate(values, 1, MPI_BYTE, target, 0, 1, MPI_BYTE, MPI_SUM, win));
  GIVES(MPI_ERR_OP, MPI_Fetch_and_op(values, result, MPI_BYTE, target, 0, MPI_SUM, win));
  GIVES(MPI_ERR_OP, MPI_Accumulate(values, 1, MPI_2INT, target, 0, 1, MPI_2INT, MPI_SUM, win));
  GIVES(MPI_ERR_OP, MPI_Fetch_and_op(values, result, MPI_2INT, target, 0, MPI_SUM, win));
  GIVES(MPI_ERR_TYPE, MPI_Compare_and_swap(values, values, result, MPI_DOUBLE, target, 0, win));
  GIVES(MPI_ERR_TYPE, MPI_Compare_and_swap(values, values, result, MPI_2INT, target, 0, win));
  end_call("refused", 0);
}

// No lock, and no fence. The first call with a type takes the long way.
static void outside_an_epoch(void) {
  const int other = (rank + 1) % ranks;
  int32_t former = 0;
  GIVES(MPI_ERR_RMA_SYNC, MPI_Put(&one, 1, MPI_INT32_T, other, 0, 1, MPI_INT32_T, win));
  GIVES(MPI_ERR_RMA_SYNC, MPI_Get(&former, 1, MPI_INT32_T, other, 0, 1, MPI_INT32_T, win));
  GIVES(MPI_ERR_RMA_SYNC,
        MPI_Accumulate(&one, 1, MPI_INT32_T, other, 0, 1, MPI_INT32_T, MPI_SUM, win));
  GIVES(MPI_ERR_RMA_SYNC, MPI_Fetch_and_op(&one, &former, MPI_INT32_T, other, 0, MPI_SUM, win));
  GIVES(MPI_ERR_RMA_SYNC, MPI_Compare_and_swap(&one, &one, &former, MPI_INT32_T, other, 0, win));
}

static void all_calls(void) {
  all_places();
  bounds();
  other_types();
  other_counts();
  other_operations();
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  MPI_Win_allocate(bytes_of(rank), unit_of(rank), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  for (int i = 0; i < 2; ++i) outside_an_epoch();
  for (int actor = 0; actor < ranks; ++actor) {
    MPI_Barrier(MPI_COMM_WORLD);
    for (target = 0; actor == rank && target < ranks; ++target) {
      unit = unit_of(target);
      bytes = bytes_of(target);
      MPI_Type_contiguous(bytes, MPI_BYTE, &whole);
      MPI_Type_commit(&whole);
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
      all_calls();
      MPI_Win_unlock(target, win);
      MPI_Type_free(&whole);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_free(&win);
  return end();
}
