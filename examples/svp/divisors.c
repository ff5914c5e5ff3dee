/* SPDX-License-Identifier: Apache-2.0
 * In C: the number below LIMIT with the most divisors, by a family of a thread for each number; an
 * exclusive place keeps the best one. Then the sum of all counts, by a chain of threads over a
 * shared channel.
 *
 *   divisors [LIMIT]
 *
 * Checked: the sum is that of LIMIT / d over all d.
 */
#include <stdio.h>
#include <stdlib.h>
#include <tombolo/svp.h>

typedef struct {
  tombolo_svp_place_t turn;
  long* counts;
  long best;
  tombolo_svp_shared_t sum;
} search_t;

typedef struct {
  search_t* search;
  long number;
} candidate_t;

static void keep_the_best(tombolo_svp_index_t i, void* argument) {
  const candidate_t* const mine = argument;
  search_t* const search = mine->search;
  const long count = search->counts[mine->number], most = search->counts[search->best];
  (void)i;
  if (count > most || (count == most && mine->number < search->best)) search->best = mine->number;
}

static void count_divisors(tombolo_svp_index_t number, void* argument) {
  candidate_t mine = {argument, number};
  tombolo_svp_family_t family;
  long count = 0;
  for (long d = 1; d <= number; ++d) count += number % d == 0;
  mine.search->counts[number] = count;
  if (count < 8) return;
  if (tombolo_svp_create(&family, mine.search->turn, NULL, keep_the_best, &mine) == TOMBOLO_SVP_OK)
    tombolo_svp_sync(&family, NULL);
}

static void add(tombolo_svp_index_t number, void* argument) {
  search_t* const search = argument;
  long sum = 0;
  if (tombolo_svp_shared_read(&search->sum, &sum) != TOMBOLO_SVP_OK) return;
  sum += search->counts[number];
  tombolo_svp_shared_write(&search->sum, &sum);
}

int main(int argc, char** argv) {
  const long limit = argc > 1 ? atol(argv[1]) : 2000;
  search_t search = {0};
  tombolo_svp_family_t family;
  tombolo_svp_exit_t end;
  long sum = 0, expected = 0;
  if (limit < 2 || limit > 100000) {
    fprintf(stderr, "divisors: LIMIT is from 2 to 100000\n");
    return 2;
  }
  search.counts = calloc((size_t)limit, sizeof *search.counts);
  search.best = 1;
  if (search.counts == NULL || tombolo_svp_exclusive_place(&search.turn) != TOMBOLO_SVP_OK)
    return 3;

  const tombolo_svp_range_t numbers = {.start = 1, .limit = limit, .step = 1};
  if (tombolo_svp_create(&family, tombolo_svp_default_place(), &numbers, count_divisors, &search))
    return 3;
  tombolo_svp_sync(&family, &end);
  if (end.reason != TOMBOLO_SVP_DONE) return 1;

  tombolo_svp_shared_t* const shareds[] = {&search.sum};
  const tombolo_svp_channels_t channels = {.shareds = shareds, .shared_count = 1};
  tombolo_svp_shared_init(&search.sum, sizeof sum);
  tombolo_svp_shared_first(&search.sum, &sum);
  if (tombolo_svp_create_with(&family, tombolo_svp_default_place(), &numbers, add, &search,
                              &channels))
    return 3;
  tombolo_svp_sync(&family, &end);
  if (tombolo_svp_shared_last(&search.sum, &sum) != TOMBOLO_SVP_OK) return 1;

  for (long d = 1; d < limit; ++d) expected += (limit - 1) / d;
  printf("%ld has %ld divisors; all below %ld have %ld\n", search.best, search.counts[search.best],
         limit, sum);
  tombolo_svp_end_place(search.turn);
  free(search.counts);
  return sum == expected ? 0 : 1;
}
