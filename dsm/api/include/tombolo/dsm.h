/* SPDX-License-Identifier: Apache-2.0
 *
 * Virtual shared memory for C programs: memory that all processes of a program share, also where
 * their caches are not coherent. The calls are those of Samhita (003 tables 5.2 to 5.4), but for
 * threads: `tombolo dsm run -n N PROGRAM` starts N processes, which all run main() and are the
 * threads of the program. Global variables and malloc() are private to each.
 *
 *   int main(void) {
 *     tombolo_dsm_init();
 *     double *sums = tombolo_dsm_malloc(tombolo_dsm_threads() * sizeof(double));
 *     sums[tombolo_dsm_thread()] = part_of_the_work();
 *     tombolo_dsm_barrier_wait();
 *     ...
 *     tombolo_dsm_finalize();
 *   }
 *
 * docs/model/threads.md says when a thread sees the stores of another.
 *
 * Errors: a mistake of the caller, a process that has died, a memory that cannot be shared: each
 * ends the program with a message on stderr. Only tombolo_dsm_malloc() and tombolo_dsm_realloc()
 * return NULL, with errno ENOMEM.
 *
 * "Together" means: all threads make the same call, with the same arguments, in the same order.
 *
 * Thread safety: the thread that calls tombolo_dsm_init(), alone, in each process.
 */
#ifndef TOMBOLO_DSM_H
#define TOMBOLO_DSM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Start and end ------------------------------------------------------------------------- */

/* Together, once, before all other calls. A program that is started by itself has one thread. */
void tombolo_dsm_init(void);
/* Together. The memory is gone afterwards. */
void tombolo_dsm_finalize(void);

/* This thread's number, from 0, and how many there are. */
unsigned tombolo_dsm_thread(void);
unsigned tombolo_dsm_threads(void);

/* ---- Memory -------------------------------------------------------------------------------- */

/* Together. The address is the same for all threads, a multiple of 64; of blocks of a page or more,
 * of a page. New memory is zero; after tombolo_dsm_free() it holds anything. */
void* tombolo_dsm_malloc(size_t bytes);
void tombolo_dsm_free(void* block);
/* Together, between barriers: the contents are moved by thread 0. */
void* tombolo_dsm_realloc(void* block, size_t bytes);

/* This thread is about to store so many bytes there, and holds a mutex: the stores travel with the
 * mutex, byte by byte. Stores that are not recorded travel by pages; the meaning is the same. */
void tombolo_dsm_record(const void* address, size_t bytes);

/* ---- Synchronization ------------------------------------------------------------------------ */

/* Handles; plain values. */
typedef struct {
  uint32_t number;
} tombolo_dsm_mutex_t;
typedef struct {
  uint32_t number;
} tombolo_dsm_cond_t;
typedef struct {
  uint32_t number;
  uint32_t threads;
} tombolo_dsm_barrier_t;

/* Together. */
tombolo_dsm_mutex_t tombolo_dsm_mutex_create(void);
void tombolo_dsm_mutex_lock(tombolo_dsm_mutex_t mutex);
/* 1 if the mutex was free, and is this thread's now; else 0. */
int tombolo_dsm_mutex_trylock(tombolo_dsm_mutex_t mutex);
void tombolo_dsm_mutex_unlock(tombolo_dsm_mutex_t mutex);

/* Together. */
tombolo_dsm_cond_t tombolo_dsm_cond_create(void);
/* By the holder of the mutex. Threads are woken in the order in which they came, and by signals
 * only. */
void tombolo_dsm_cond_wait(tombolo_dsm_cond_t cond, tombolo_dsm_mutex_t mutex);
void tombolo_dsm_cond_signal(tombolo_dsm_cond_t cond);
void tombolo_dsm_cond_broadcast(tombolo_dsm_cond_t cond);

/* Together: of all threads, none of which holds a mutex. */
void tombolo_dsm_barrier_wait(void);

/* Together. A barrier of so many of the threads, from 1 to all of them. */
tombolo_dsm_barrier_t tombolo_dsm_barrier_create(unsigned threads);
/* By so many threads, of whichever number, none of which holds a mutex: returns when as many have
 * called it. They see all that any of them has stored before; other threads take no part. Of all
 * threads tombolo_dsm_barrier_wait() sends less: a page that one thread alone has written stays. */
void tombolo_dsm_barrier_wait_at(tombolo_dsm_barrier_t barrier);

/* Together: each thread gives a value, and all get the combination, in the order of threads. No
 * other loads and stores are ordered by it: it is no barrier. */
double tombolo_dsm_sum(double value);
double tombolo_dsm_min(double value);
double tombolo_dsm_max(double value);
uint64_t tombolo_dsm_sum_u64(uint64_t value);

#ifdef __cplusplus
}
#endif

#endif
