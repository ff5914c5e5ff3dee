/* SPDX-License-Identifier: Apache-2.0
 * Each thread adds its part of the numbers below 1000; the first one adds the parts. */
#include <stdio.h>
#include <tombolo/dsm.h>

int main(void) {
  tombolo_dsm_init();
  const unsigned me = tombolo_dsm_thread(), threads = tombolo_dsm_threads();
  long* const sums = tombolo_dsm_malloc(threads * sizeof *sums);
  for (long i = me; i < 1000; i += threads) {
    sums[me] += i;
  }
  tombolo_dsm_barrier_wait();
  if (me == 0) {
    long total = 0;
    for (unsigned i = 0; i < threads; ++i) {
      total += sums[i];
    }
    printf("sum %ld of %u threads\n", total, threads);
  }
  tombolo_dsm_finalize();
  return 0;
}
