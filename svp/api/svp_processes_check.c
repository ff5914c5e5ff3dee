/* SPDX-License-Identifier: Apache-2.0
 *
 * Purpose: families of a C99 program in other processes: data, exits, nesting, order, kill and
 * mistakes.
 *
 *   svp_processes_check [MISTAKE]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <tombolo/svp.h>

static int failures = 0;
static int passes = 0;

#define CHECK(condition)                                           \
  do {                                                             \
    if (condition) {                                               \
      ++passes;                                                    \
    } else {                                                       \
      ++failures;                                                  \
      printf("line %d: %s does not hold\n", __LINE__, #condition); \
    }                                                              \
  } while (0)

/* to[i] = by * from[i], and the process for all. */
static void scale(tombolo_svp_index_t i, const tombolo_svp_data_t* data) {
  const double by = *(const double*)data[0].at;
  const double* from = data[1].at;
  double* to = data[2].at;
  to[i] = by * from[i] + (double)(data[1].count - data[2].count);
  if (i == 0) *(unsigned*)data[3].at = tombolo_svp_process();
}
static const tombolo_svp_parameter_t of_scale[] = {{TOMBOLO_SVP_IN, sizeof(double)},
                                                   {TOMBOLO_SVP_IN, sizeof(double)},
                                                   {TOMBOLO_SVP_INOUT, sizeof(double)},
                                                   {TOMBOLO_SVP_OUT, sizeof(unsigned)}};

/* Adds 1 to the number of its process, and goes on with the next one. */
static void go_on(tombolo_svp_index_t i, const tombolo_svp_data_t* data) {
  int hops = *(int*)data[0].at;
  unsigned* visits = data[1].at;
  const unsigned next = (tombolo_svp_process() + 1) % tombolo_svp_processes();
  tombolo_svp_family_t family;
  const tombolo_svp_data_t further[] = {{&hops, 1}, {visits, data[1].count}};
  (void)i;
  ++visits[tombolo_svp_process()];
  if (--hops == 0) return;
  if (tombolo_svp_create_named(&family, tombolo_svp_place_of(next), NULL, "go on", further) != 0)
    return;
  (void)tombolo_svp_sync(&family, NULL);
}
static const tombolo_svp_parameter_t of_go_on[] = {{TOMBOLO_SVP_IN, sizeof(int)},
                                                   {TOMBOLO_SVP_INOUT, sizeof(unsigned)}};

static void ends(tombolo_svp_index_t i, const tombolo_svp_data_t* data) {
  const int how = *(int*)data[0].at;
  if (i == 2 && how == 1) (void)tombolo_svp_break(17);
  if (i == 2 && how == 2) (void)tombolo_svp_fail(23);
  while (how == 3)
    if (tombolo_svp_checkpoint() != TOMBOLO_SVP_OK) return;
  if (how == 4) abort();
}
static const tombolo_svp_parameter_t of_ends[] = {{TOMBOLO_SVP_IN, sizeof(int)}};

/* A thread that ends its own family while one that it has created runs elsewhere. */
static int stopped_sync = -1;
static tombolo_svp_exit_t stopped_end;
static void breaks_before_its_sync(tombolo_svp_index_t i, void* place) {
  int how = 3;
  const tombolo_svp_data_t data[] = {{&how, 1}};
  tombolo_svp_family_t family;
  (void)i;
  if (tombolo_svp_create_named(&family, *(tombolo_svp_place_t*)place, NULL, "ends", data) != 0)
    return;
  (void)tombolo_svp_break(5);
  stopped_sync = tombolo_svp_sync(&family, &stopped_end);
}
static void check_stop(unsigned process) {
  tombolo_svp_place_t place = tombolo_svp_place_of(process);
  tombolo_svp_family_t family;
  tombolo_svp_exit_t end;
  CHECK(tombolo_svp_create(&family, tombolo_svp_default_place(), NULL, breaks_before_its_sync,
                           &place) == 0);
  CHECK(tombolo_svp_sync(&family, &end) == 0);
  CHECK(end.reason == TOMBOLO_SVP_BROKEN && end.value == 5);
  CHECK(stopped_sync == TOMBOLO_SVP_STOPPED && stopped_end.reason == TOMBOLO_SVP_KILLED);
}

/* At an exclusive place. */
static int last = -1;
static void in_order(tombolo_svp_index_t i, const tombolo_svp_data_t* data) {
  (void)i;
  *(int*)data[1].at = last;
  last = *(int*)data[0].at;
}
static const tombolo_svp_parameter_t of_in_order[] = {{TOMBOLO_SVP_IN, sizeof(int)},
                                                      {TOMBOLO_SVP_OUT, sizeof(int)}};

static void check_data(unsigned process, double* from, double* to, size_t n) {
  double by = 2.5;
  unsigned where = 99;
  size_t i;
  const tombolo_svp_range_t all = {0, (tombolo_svp_index_t)n, 1, 0};
  tombolo_svp_family_t family;
  tombolo_svp_exit_t end;
  const tombolo_svp_data_t data[] = {{&by, 1}, {from, n}, {to, n}, {&where, 1}};
  for (i = 0; i < n; ++i) from[i] = (double)i;
  for (i = 0; i < n; ++i) to[i] = -1;
  CHECK(tombolo_svp_create_named(&family, tombolo_svp_place_of(process), &all, "scale", data) == 0);
  CHECK(tombolo_svp_sync(&family, &end) == 0 && end.reason == TOMBOLO_SVP_DONE);
  for (i = 0; i < n && to[i] == 2.5 * (double)i; ++i) continue;
  CHECK(i == n && where == process);
}

static tombolo_svp_exit_t end_of(unsigned process, int how, int killed) {
  const tombolo_svp_range_t some = {0, 5, 1, 0};
  tombolo_svp_family_t family;
  tombolo_svp_exit_t end = {TOMBOLO_SVP_DONE, -1};
  const tombolo_svp_data_t data[] = {{&how, 1}};
  CHECK(tombolo_svp_create_named(&family, tombolo_svp_place_of(process), &some, "ends", data) == 0);
  if (killed) tombolo_svp_kill(&family);
  CHECK(tombolo_svp_sync(&family, &end) == 0);
  return end;
}

static void check_order(unsigned process) {
  enum { families = 20 };
  tombolo_svp_family_t all[families];
  int numbers[families];
  int before[families];
  tombolo_svp_data_t data[families][2];
  int i;
  int right = 0;
  for (i = 0; i < families; ++i) {
    numbers[i] = i;
    data[i][0].at = &numbers[i];
    data[i][1].at = &before[i];
    data[i][0].count = data[i][1].count = 1;
    (void)tombolo_svp_create_named(&all[i], tombolo_svp_exclusive_of(process), NULL, "in order",
                                   data[i]);
  }
  for (i = 0; i < families; ++i) (void)tombolo_svp_sync(&all[i], NULL);
  for (i = 0; i < families; ++i) right += before[i] == i - 1;
  CHECK(right == families);
}

static int check_all(void* argument) {
  static double from[5000];
  static double to[5000];
  const unsigned processes = tombolo_svp_processes();
  unsigned process;
  (void)argument;
  CHECK(tombolo_svp_process() == 0);
  for (process = 0; process < processes; ++process) {
    double* const shared = tombolo_svp_allocate(6000 * sizeof(double));
    int hops = 3 * (int)processes;
    unsigned visits[8] = {0};
    const tombolo_svp_data_t data[] = {{&hops, 1}, {visits, processes}};
    tombolo_svp_family_t family;
    tombolo_svp_exit_t end;
    CHECK(shared != NULL && shared[0] == 0 && shared[5999] == 0);
    check_data(process, from, to, 1);
    check_data(process, from, to, 5000);
    check_data(process, shared, shared + 3000, 3000);
    tombolo_svp_free(shared);
    CHECK(tombolo_svp_create_named(&family, tombolo_svp_place_of(process), NULL, "go on", data) ==
          0);
    CHECK(tombolo_svp_sync(&family, NULL) == 0 && visits[0] == 3 && visits[processes - 1] == 3);
    end = end_of(process, 1, 0);
    CHECK(end.reason == TOMBOLO_SVP_BROKEN && end.value == 17);
    end = end_of(process, 2, 0);
    CHECK(end.reason == TOMBOLO_SVP_FAILED && end.value == 23);
    CHECK(end_of(process, 3, 1).reason == TOMBOLO_SVP_KILLED);
    check_stop(process);
    check_order(process);
  }
  if (processes > 1) CHECK(end_of(processes - 1, 4, 0).reason == TOMBOLO_SVP_FAILED);
  printf("%d passed, %d failed\n", passes, failures);
  return failures;
}

static int breaks(void* argument) {
  (void)argument;
  (void)tombolo_svp_break(9);
  return 0;
}
static int fails(void* argument) {
  (void)argument;
  (void)tombolo_svp_fail(8);
  return 0;
}

/* No further memory is mapped: neither threads nor workers come into being. */
static int run_without_memory(void) {
  struct rlimit limit;
  CHECK(getrlimit(RLIMIT_AS, &limit) == 0);
  limit.rlim_cur = 1;
  CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
  return tombolo_svp_run(breaks, NULL);
}

static int mistake(void* argument) {
  tombolo_svp_family_t family;
  const tombolo_svp_range_t no_step = {0, 3, 0, 0};
  int how = 0;
  const tombolo_svp_data_t data[] = {{&how, 1}};
  if (strcmp(argument, "unknown") == 0)
    (void)tombolo_svp_create_named(&family, tombolo_svp_place_of(0), NULL, "nothing", data);
  if (strcmp(argument, "process") == 0) (void)tombolo_svp_place_of(9);
  if (strcmp(argument, "step") == 0)
    (void)tombolo_svp_create_named(&family, tombolo_svp_place_of(1), &no_step, "ends", data);
  if (strcmp(argument, "left") == 0)
    (void)tombolo_svp_create_named(&family, tombolo_svp_place_of(1), NULL, "ends", data);
  return 0;
}

int main(int argc, char** argv) {
  const char* const name = argc > 1 ? argv[1] : "";
  static const tombolo_svp_parameter_t empty = {TOMBOLO_SVP_IN, 0};
  tombolo_svp_enter("scale", scale, of_scale, 4);
  tombolo_svp_enter("go on", go_on, of_go_on, 2);
  tombolo_svp_enter("ends", ends, of_ends, 1);
  tombolo_svp_enter("in order", in_order, of_in_order, 2);
  if (strcmp(name, "entered twice") == 0) tombolo_svp_enter("ends", ends, of_ends, 1);
  if (strcmp(name, "no elements") == 0) tombolo_svp_enter("empty", ends, &empty, 1);
  if (strcmp(name, "outside") == 0) (void)tombolo_svp_processes();
  if (strcmp(name, "break") == 0) return tombolo_svp_run(breaks, NULL);
  if (strcmp(name, "fail") == 0) return tombolo_svp_run(fails, NULL);
  if (strcmp(name, "no memory") == 0) return run_without_memory();
  if (argc > 1) return tombolo_svp_run(mistake, argv[1]);
  return tombolo_svp_run(check_all, NULL);
}
