/* SPDX-License-Identifier: Apache-2.0
 *
 * Virtual shared memory for C programs: memory that all processes of a program share, also where
 * their caches are not coherent. The calls are those of Samhita (003 tables 5.2 to 5.4; docs/dsm.md
 * has them side by side). `tombolo dsm run -n N PROGRAM` starts N processes, each for one thread.
 * Global variables and malloc() are private to each. A program starts in one of two ways:
 *
 *   tombolo_dsm_init()        all processes run main(), and are the threads of the program
 *   tombolo_dsm_init_first()  the first one runs main(), and creates threads, which the others run
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
 *   static void *work(void *sums) { ... }
 *   int main(void) {
 *     tombolo_dsm_init_first();
 *     double *sums = tombolo_dsm_malloc(1000 * sizeof(double));
 *     tombolo_dsm_thread_t thread;
 *     tombolo_dsm_thread_create(&thread, work, sums);
 *     tombolo_dsm_thread_join(thread, NULL);
 *     tombolo_dsm_finalize();
 *   }
 *
 * docs/model/threads.md says when a thread sees the stores of another.
 *
 * Errors: a mistake of the caller, a process that has died, a memory that cannot be shared: each
 * ends the program with a message on stderr. Only tombolo_dsm_malloc() and tombolo_dsm_realloc()
 * return NULL, with errno ENOMEM, and calls that return an int and are said to, an error's number.
 *
 * "Together" means: all threads make the same call, with the same arguments, in the same order;
 * after tombolo_dsm_init_first(): any one thread makes it, alone, and hands the result on through
 * memory.
 *
 * Thread safety: the thread that calls tombolo_dsm_init(), or a created one, alone in each process.
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
/* In its place, by all processes: returns in the first one alone. The others wait here for threads
 * that tombolo_dsm_thread_create() makes, run one at a time, and end, by exit(0), with
 * tombolo_dsm_finalize(). Calls of all threads, below, are refused. */
void tombolo_dsm_init_first(void);
/* Together; after tombolo_dsm_init_first() by the first thread, and when all others have ended. The
 * memory is gone afterwards. */
void tombolo_dsm_finalize(void);

/* The number of this thread's process, from 0, and how many there are. */
unsigned tombolo_dsm_thread(void);
unsigned tombolo_dsm_threads(void);

/* ---- Threads, after tombolo_dsm_init_first() ----------------------------------------------- */

/* Handles; plain values. */
typedef struct {
  uint64_t number;
} tombolo_dsm_thread_t;
typedef struct {
  uint32_t number;
} tombolo_dsm_key_t;

/* By any thread. `start` is a function of the program, or of a library that it was started with:
 * all processes have it. The thread sees what its creator has stored before. `argument` is a number,
 * or points into the memory of tombolo_dsm_malloc(). EAGAIN if all processes are busy. */
int tombolo_dsm_thread_create(tombolo_dsm_thread_t* thread, void* (*start)(void*), void* argument);
/* Waits for its end, sees what it has stored, and gets what `start` has returned, unless `value` is
 * NULL. ESRCH, EINVAL, EDEADLK as pthread_join. A thread that ends holds no mutex. */
int tombolo_dsm_thread_join(tombolo_dsm_thread_t thread, void** value);
tombolo_dsm_thread_t tombolo_dsm_thread_self(void);

/* Values of each thread by itself, also after tombolo_dsm_init(). Together. `destructor`, unless it
 * is NULL, gets the value of a thread that ends, if that is not NULL. EAGAIN beyond 1024 keys. */
int tombolo_dsm_key_create(tombolo_dsm_key_t* key, void (*destructor)(void*));
/* EINVAL for what is no key. */
int tombolo_dsm_setspecific(tombolo_dsm_key_t key, const void* value);
/* NULL at first. */
void* tombolo_dsm_getspecific(tombolo_dsm_key_t key);

/* ---- Memory -------------------------------------------------------------------------------- */

/* Together. The address is the same for all threads, a multiple of 64; of blocks of a page or more,
 * of a page. New memory is zero; after tombolo_dsm_free() it holds anything. */
void* tombolo_dsm_malloc(size_t bytes);
void tombolo_dsm_free(void* block);
/* Together, between barriers: the contents are moved by thread 0. */
void* tombolo_dsm_realloc(void* block, size_t bytes);

/* Together, once: from now on the three calls above are, as malloc(), realloc() and free(), for any
 * one thread alone, in so many bytes of the memory. Blocks are multiples of 16, from 4 KiB on whole
 * pages, and another thread may free them; of different threads they share no page. Blocks that
 * were taken before are freed as before. ENOMEM. After tombolo_dsm_init_first() it has been called,
 * for all of the memory. */
int tombolo_dsm_heap_create(size_t bytes);

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

/* Reductions of so many of the threads, of numbers of any of these types. */
typedef enum {
  TOMBOLO_DSM_SUM,
  TOMBOLO_DSM_PRODUCT,
  TOMBOLO_DSM_MIN,
  TOMBOLO_DSM_MAX,
  TOMBOLO_DSM_BIT_AND, /* of whole numbers, as the next two */
  TOMBOLO_DSM_BIT_OR,
  TOMBOLO_DSM_BIT_XOR,
  TOMBOLO_DSM_AND, /* 1 or 0 */
  TOMBOLO_DSM_OR
} tombolo_dsm_op;
typedef enum {
  TOMBOLO_DSM_INT32,
  TOMBOLO_DSM_UINT32,
  TOMBOLO_DSM_INT64,
  TOMBOLO_DSM_UINT64,
  TOMBOLO_DSM_FLOAT,
  TOMBOLO_DSM_DOUBLE
} tombolo_dsm_type;
typedef struct {
  uint32_t number;
  uint32_t threads;
  uint32_t operation;
} tombolo_dsm_redvar_t;

/* Together. Of so many threads, from 1 to all. */
tombolo_dsm_redvar_t tombolo_dsm_redvar_create(tombolo_dsm_op op, unsigned threads);
/* By so many threads, of whichever number: each gives *value, and all get the combination in *result,
 * in the order of tombolo_dsm_thread(). It orders no other loads and stores. */
void tombolo_dsm_reduce(tombolo_dsm_redvar_t variable, tombolo_dsm_type type, const void* value,
                        void* result);

#ifdef __cplusplus
}
#endif

#endif
