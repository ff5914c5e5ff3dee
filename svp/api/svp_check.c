/* SPDX-License-Identifier: Apache-2.0
 * Checks of tombolo/svp.h, in C99. cli/tests/svp_c_test.py compiles and runs it.
 *
 *   svp_check            all that is right: ends with "N passed, M failed"
 *   svp_check NAME       a mistake, which ends the program
 */
#include <stdio.h>
#include <string.h>
#include <tombolo/svp.h>

static int passed, failed;

#define CHECK(condition)                                                   \
  do {                                                                     \
    if (condition) {                                                       \
      ++passed;                                                            \
    } else {                                                               \
      ++failed;                                                            \
      printf("%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
    }                                                                      \
  } while (0)

static tombolo_svp_exit_t run_at(tombolo_svp_place_t place, const tombolo_svp_range_t* range,
                                 tombolo_svp_body_t body, void* argument) {
  tombolo_svp_family_t family;
  tombolo_svp_exit_t end = {TOMBOLO_SVP_FAILED, -1};
  if (tombolo_svp_create(&family, place, range, body, argument) == TOMBOLO_SVP_OK)
    tombolo_svp_sync(&family, &end);
  return end;
}

static tombolo_svp_exit_t run(const tombolo_svp_range_t* range, tombolo_svp_body_t body,
                              void* argument) {
  return run_at(tombolo_svp_default_place(), range, body, argument);
}

/* ---- Ranges ---------------------------------------------------------------------------------- */

static void mark(tombolo_svp_index_t i, void* argument) { ((unsigned char*)argument)[i] += 1; }

static void check_ranges(void) {
  unsigned char marks[10] = {0};
  const tombolo_svp_range_t up = {.start = 1, .limit = 10, .step = 3};
  const tombolo_svp_range_t down = {.start = 9, .limit = 0, .step = -4, .block = 1};
  const tombolo_svp_range_t empty = {.start = 3, .limit = 3, .step = 1};
  const unsigned char expected[10] = {0, 2, 0, 0, 1, 1, 0, 1, 0, 1};
  CHECK(run(&up, mark, marks).reason == TOMBOLO_SVP_DONE);
  CHECK(run(&down, mark, marks).reason == TOMBOLO_SVP_DONE);
  CHECK(run(&empty, mark, marks).reason == TOMBOLO_SVP_DONE);
  CHECK(memcmp(marks, expected, sizeof marks) == 0);
  CHECK(run(NULL, mark, marks).reason == TOMBOLO_SVP_DONE && marks[0] == 1);
}

/* ---- Nested families ------------------------------------------------------------------------- */

typedef struct {
  long n;
  long result;
} fib_t;

static void fib(tombolo_svp_index_t i, void* argument) {
  fib_t* const mine = argument;
  fib_t one = {mine->n - 1, 0}, two = {mine->n - 2, 0};
  tombolo_svp_family_t family;
  (void)i;
  if (mine->n < 2) {
    mine->result = mine->n;
    return;
  }
  if (tombolo_svp_create(&family, tombolo_svp_default_place(), NULL, fib, &one) != TOMBOLO_SVP_OK)
    return;
  fib(0, &two);
  if (tombolo_svp_sync(&family, NULL) == TOMBOLO_SVP_OK) mine->result = one.result + two.result;
}

static void check_nesting(void) {
  fib_t all = {20, 0};
  CHECK(run(NULL, fib, &all).reason == TOMBOLO_SVP_DONE);
  CHECK(all.result == 6765);
}

/* ---- Ends ------------------------------------------------------------------------------------ */

static void break_at_7(tombolo_svp_index_t i, void* argument) {
  (void)argument;
  if (i == 7) CHECK(tombolo_svp_break(70) == TOMBOLO_SVP_STOPPED);
}

static void fail_at_7(tombolo_svp_index_t i, void* argument) {
  (void)argument;
  if (i == 7) CHECK(tombolo_svp_fail(-7) == TOMBOLO_SVP_STOPPED);
}

static void until_stopped(tombolo_svp_index_t i, void* argument) {
  (void)i;
  (void)argument;
  while (tombolo_svp_checkpoint() == TOMBOLO_SVP_OK) {
  }
}

/* Waits for a family that only a kill from above ends. */
static void parent_of_endless(tombolo_svp_index_t i, void* argument) {
  tombolo_svp_family_t family;
  int* const ended = argument;
  (void)i;
  if (tombolo_svp_create(&family, tombolo_svp_default_place(), NULL, until_stopped, NULL) !=
      TOMBOLO_SVP_OK)
    return;
  *ended = tombolo_svp_sync(&family, NULL);
}

static void check_ends(void) {
  const tombolo_svp_range_t all = {.start = 0, .limit = TOMBOLO_SVP_UNBOUNDED, .step = 1};
  const tombolo_svp_range_t twenty = {.start = 0, .limit = 20, .step = 1};
  tombolo_svp_family_t family;
  int ended = TOMBOLO_SVP_STOPPED;
  tombolo_svp_exit_t end = run(&all, break_at_7, NULL);
  CHECK(end.reason == TOMBOLO_SVP_BROKEN && end.value == 70);
  end = run(&twenty, fail_at_7, NULL);
  CHECK(end.reason == TOMBOLO_SVP_FAILED && end.value == -7);
  CHECK(tombolo_svp_create(&family, tombolo_svp_default_place(), NULL, parent_of_endless, &ended) ==
        TOMBOLO_SVP_OK);
  tombolo_svp_kill(&family);
  CHECK(tombolo_svp_sync(&family, &end) == TOMBOLO_SVP_OK);
  CHECK(end.reason == TOMBOLO_SVP_KILLED);
  CHECK(ended == TOMBOLO_SVP_STOPPED);
}

/* ---- Places ---------------------------------------------------------------------------------- */

typedef struct {
  tombolo_svp_place_t turn;
  long count;
} counter_t;

static void raise(tombolo_svp_index_t i, void* argument) {
  (void)i;
  ++((counter_t*)argument)->count;
}
static void raise_in_turn(tombolo_svp_index_t i, void* argument) {
  counter_t* const counter = argument;
  (void)i;
  if (run_at(counter->turn, NULL, raise, counter).reason != TOMBOLO_SVP_DONE) ++failed;
}

static void check_places(void) {
  const tombolo_svp_range_t thousand = {.start = 0, .limit = 1000, .step = 1};
  tombolo_svp_place_t two;
  counter_t counter = {.count = 0};
  CHECK(tombolo_svp_local_place(&two, 2) == TOMBOLO_SVP_OK);
  CHECK(tombolo_svp_exclusive_place(&counter.turn) == TOMBOLO_SVP_OK);
  CHECK(run_at(two, &thousand, raise_in_turn, &counter).reason == TOMBOLO_SVP_DONE);
  CHECK(counter.count == 1000);
  tombolo_svp_end_place(counter.turn);
  tombolo_svp_end_place(two);
}

/* ---- Channels -------------------------------------------------------------------------------- */

typedef struct {
  tombolo_svp_global_t scale;
  tombolo_svp_shared_t sum, product;
  int stops_at;
} channels_t;

static void chain(tombolo_svp_index_t i, void* argument) {
  channels_t* const all = argument;
  double scale = 0, sum = 0;
  struct {
    long value, more[3];
  } product;
  if (i == all->stops_at) {
    tombolo_svp_break(0);
    return;
  }
  if (tombolo_svp_global_read(&all->scale, &scale) != TOMBOLO_SVP_OK) return;
  if (tombolo_svp_shared_read(&all->sum, &sum) != TOMBOLO_SVP_OK) return;
  if (tombolo_svp_shared_read(&all->product, &product) != TOMBOLO_SVP_OK) return;
  sum += scale * (double)i;
  product.value *= i;
  tombolo_svp_shared_write(&all->sum, &sum);
  tombolo_svp_shared_write(&all->product, &product);
}

static int chain_of(channels_t* all, double* sum, long* product) {
  const tombolo_svp_range_t range = {.start = 1, .limit = 6, .step = 1};
  tombolo_svp_global_t* const globals[] = {&all->scale};
  tombolo_svp_shared_t* const shareds[] = {&all->sum, &all->product};
  const tombolo_svp_channels_t channels = {globals, 1, shareds, 2};
  struct {
    long value, more[3];
  } first = {1, {2, 3, 4}}, last = {0, {0, 0, 0}};
  const double half = 0.5, zero = 0;
  tombolo_svp_family_t family;
  int status;
  tombolo_svp_global_init(&all->scale, sizeof half);
  tombolo_svp_shared_init(&all->sum, sizeof zero);
  tombolo_svp_shared_init(&all->product, sizeof first);
  if (tombolo_svp_create_with(&family, tombolo_svp_default_place(), &range, chain, all, &channels))
    return -1;
  tombolo_svp_shared_first(&all->sum, &zero);
  tombolo_svp_shared_first(&all->product, &first);
  tombolo_svp_global_write(&all->scale, &half);
  tombolo_svp_sync(&family, NULL);
  status = tombolo_svp_shared_last(&all->sum, sum);
  if (status != TOMBOLO_SVP_OK) return status;
  status = tombolo_svp_shared_last(&all->product, &last);
  *product = last.more[2] == 4 ? last.value : -1;
  return status;
}

static void read_global(tombolo_svp_index_t i, void* argument) {
  long value = 0;
  (void)i;
  CHECK(tombolo_svp_global_read(argument, &value) == TOMBOLO_SVP_OK && value == 11);
}

static void check_channels(void) {
  channels_t all = {.stops_at = -1};
  double sum = 0;
  long product = 0, eleven = 11;
  const tombolo_svp_range_t three = {.start = 0, .limit = 3, .step = 1, .block = 1};
  tombolo_svp_global_t global;
  tombolo_svp_global_t* const globals[] = {&global};
  const tombolo_svp_channels_t channels = {.globals = globals, .global_count = 1};
  tombolo_svp_family_t family;
  CHECK(chain_of(&all, &sum, &product) == TOMBOLO_SVP_OK);
  CHECK(sum == 7.5);
  CHECK(product == 120);
  all.stops_at = 3;
  CHECK(chain_of(&all, &sum, &product) == TOMBOLO_SVP_NO_VALUE);
  tombolo_svp_global_init(&global, sizeof eleven);
  CHECK(tombolo_svp_create_with(&family, tombolo_svp_default_place(), &three, read_global, &global,
                                &channels) == TOMBOLO_SVP_OK);
  tombolo_svp_global_write(&global, &eleven);
  CHECK(tombolo_svp_sync(&family, NULL) == TOMBOLO_SVP_OK);
}

/* ---- Mistakes -------------------------------------------------------------------------------- */

static void nothing(tombolo_svp_index_t i, void* argument) {
  (void)i;
  (void)argument;
}

static void leave_a_family(tombolo_svp_index_t i, void* argument) {
  static tombolo_svp_family_t family;
  (void)i;
  (void)argument;
  tombolo_svp_create(&family, tombolo_svp_default_place(), NULL, nothing, NULL);
}

static void sync_anothers(tombolo_svp_index_t i, void* argument) {
  (void)i;
  tombolo_svp_sync(argument, NULL);
}

static void make_mistake(const char* name) {
  const tombolo_svp_range_t no_step = {.start = 0, .limit = 3};
  tombolo_svp_family_t family;
  tombolo_svp_place_t place;
  tombolo_svp_global_t global;
  tombolo_svp_shared_t shared;
  tombolo_svp_global_t* const globals[] = {&global};
  const tombolo_svp_channels_t channels = {.globals = globals, .global_count = 1};
  const long value = 11;
  if (strcmp(name, "step") == 0) run(&no_step, nothing, NULL);
  if (strcmp(name, "twice") == 0) {
    tombolo_svp_create(&family, tombolo_svp_default_place(), NULL, nothing, NULL);
    tombolo_svp_sync(&family, NULL);
    tombolo_svp_sync(&family, NULL);
  }
  if (strcmp(name, "another") == 0) {
    tombolo_svp_create(&family, tombolo_svp_default_place(), NULL, nothing, NULL);
    run(NULL, sync_anothers, &family);
  }
  if (strcmp(name, "left") == 0) run(NULL, leave_a_family, NULL);
  if (strcmp(name, "outside") == 0) tombolo_svp_break(1);
  if (strcmp(name, "ended") == 0 && tombolo_svp_local_place(&place, 1) == TOMBOLO_SVP_OK) {
    tombolo_svp_end_place(place);
    run_at(place, NULL, nothing, NULL);
  }
  if (strcmp(name, "rewritten") == 0) {
    tombolo_svp_global_init(&global, sizeof value);
    tombolo_svp_global_write(&global, &value);
    tombolo_svp_global_write(&global, &value);
  }
  if (strcmp(name, "unwritten") == 0) {
    tombolo_svp_global_init(&global, sizeof value);
    tombolo_svp_create_with(&family, tombolo_svp_default_place(), NULL, read_global, &global,
                            &channels);
    tombolo_svp_sync(&family, NULL);
  }
  if (strcmp(name, "large") == 0) tombolo_svp_shared_init(&shared, 65);
  if (strcmp(name, "parent") == 0) {
    tombolo_svp_shared_init(&shared, sizeof value);
    tombolo_svp_shared_write(&shared, &value);
  }
}

int main(int argc, char** argv) {
  if (argc > 1) {
    make_mistake(argv[1]);
    printf("%s: not told\n", argv[1]);
    return 1;
  }
  check_ranges();
  check_nesting();
  check_ends();
  check_places();
  check_channels();
  printf("%d passed, %d failed\n", passed, failed);
  return failed != 0;
}
