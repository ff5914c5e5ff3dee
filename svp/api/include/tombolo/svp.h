/* SPDX-License-Identifier: Apache-2.0
 *
 * Families of threads (SVP) for C programs: create, sync, kill, break, places and channels.
 *
 *   static void add(tombolo_svp_index_t i, void* argument) { ((double*)argument)[i] += 1; }
 *
 *   const tombolo_svp_range_t all = {.limit = n, .step = 1};
 *   tombolo_svp_family_t family;
 *   tombolo_svp_create(&family, tombolo_svp_default_place(), &all, add, numbers);
 *   tombolo_svp_exit_t end;
 *   tombolo_svp_sync(&family, &end);
 *
 * docs/model/families.md says when a thread sees the stores of another, and all else about families.
 *
 * Threads are not interrupted: where the family of a thread, or one above it, was killed, broken or
 * has failed, calls return TOMBOLO_SVP_STOPPED. The thread then syncs the families that it has
 * created, and returns.
 *
 * Errors: the world's are a returned status. A mistake of the caller ends the program with a message
 * on stderr: a family that is synced twice, or by another thread, or that its creator leaves without
 * a sync; a step of 0; a place that has ended; a second write to a channel; a read of a channel that
 * no thread writes; a call of a thread outside of all families.
 *
 * Thread safety: a family is its creator's, but for tombolo_svp_kill(); channels and places are all
 * threads'.
 */
#ifndef TOMBOLO_SVP_H
#define TOMBOLO_SVP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  TOMBOLO_SVP_OK = 0,
  TOMBOLO_SVP_STOPPED = 1,   /* the calling thread's family was stopped: return */
  TOMBOLO_SVP_NO_VALUE = 2,  /* the family ended before its last thread wrote to the channel */
  TOMBOLO_SVP_NO_MEMORY = 3, /* nothing was made */
  TOMBOLO_SVP_NO_THREADS = 4 /* the system starts no further threads for a place */
};

/* ---- Families ------------------------------------------------------------------------------ */

typedef int64_t tombolo_svp_index_t;
#define TOMBOLO_SVP_UNBOUNDED INT64_MAX

/* Threads start, start + step, ... short of limit. block: those that may run at once; 0: any. */
typedef struct {
  tombolo_svp_index_t start;
  tombolo_svp_index_t limit;
  tombolo_svp_index_t step;
  uint64_t block;
} tombolo_svp_range_t;

typedef void (*tombolo_svp_body_t)(tombolo_svp_index_t index, void* argument);

/* Not to be copied or moved between its create and its sync. */
typedef struct {
  uint64_t words[48];
} tombolo_svp_family_t;

typedef enum {
  TOMBOLO_SVP_DONE = 0,
  TOMBOLO_SVP_BROKEN = 1, /* value: that of tombolo_svp_break() */
  TOMBOLO_SVP_KILLED = 2,
  TOMBOLO_SVP_FAILED = 3 /* value: that of tombolo_svp_fail() */
} tombolo_svp_reason_t;

typedef struct {
  tombolo_svp_reason_t reason;
  int64_t value;
} tombolo_svp_exit_t;

/* A name of a place. */
typedef struct {
  void* record;
  uint64_t generation;
} tombolo_svp_place_t;

typedef struct tombolo_svp_channels tombolo_svp_channels_t;

/* range: NULL: a single thread, of index 0. channels: NULL: none. OK: the family is to be synced;
 * STOPPED, NO_MEMORY, NO_THREADS: there is none. */
int tombolo_svp_create(tombolo_svp_family_t* family, tombolo_svp_place_t place,
                       const tombolo_svp_range_t* range, tombolo_svp_body_t body, void* argument);
int tombolo_svp_create_with(tombolo_svp_family_t* family, tombolo_svp_place_t place,
                            const tombolo_svp_range_t* range, tombolo_svp_body_t body,
                            void* argument, const tombolo_svp_channels_t* channels);
/* Until all threads have ended. exit may be NULL; it is set in any case. OK, STOPPED. */
int tombolo_svp_sync(tombolo_svp_family_t* family, tombolo_svp_exit_t* exit);
/* By any thread, before the sync. */
void tombolo_svp_kill(tombolo_svp_family_t* family);

/* By a thread of a family: ends it with this value; the thread returns afterwards. STOPPED. */
int tombolo_svp_break(int64_t value);
int tombolo_svp_fail(int64_t value);
/* For loops without other calls. OK, STOPPED. */
int tombolo_svp_checkpoint(void);

/* ---- Places -------------------------------------------------------------------------------- */

tombolo_svp_place_t tombolo_svp_default_place(void);
/* Workers of its own; 0: one for each processor. OK, NO_MEMORY, NO_THREADS. */
int tombolo_svp_local_place(tombolo_svp_place_t* place, unsigned workers);
/* One family at a time, in the order of their creates. OK, NO_MEMORY. */
int tombolo_svp_exclusive_place(tombolo_svp_place_t* place);
/* Of either kind, after the last family there was synced. */
void tombolo_svp_end_place(tombolo_svp_place_t place);

/* ---- Families in other processes ----------------------------------------------------------- */

/* A program of several processes, which `tombolo svp run -n N PROGRAM` starts; alone it has one.
 * Process 0 calls `program` as a thread of a family, the others serve its families until it has
 * returned. Returns its result, or the value of a tombolo_svp_break() or tombolo_svp_fail() in it;
 * elsewhere 0; where the processes do not come together, or memory or threads are missing for them,
 * 1, with a message. In main(), once. */
int tombolo_svp_run(int (*program)(void* argument), void* argument);

/* Inside of that, in any process. */
unsigned tombolo_svp_processes(void);
/* The caller's, from 0. */
unsigned tombolo_svp_process(void);
/* The default place of a process, and one where one family runs at a time. They do not end. */
tombolo_svp_place_t tombolo_svp_place_of(unsigned process);
tombolo_svp_place_t tombolo_svp_exclusive_of(unsigned process);
/* Memory that goes to other processes of a host by its address; bytes of 0. To be freed by the
 * process that has it. NULL: there is no more. */
void* tombolo_svp_allocate(size_t bytes);
void tombolo_svp_free(void* memory);

typedef enum { TOMBOLO_SVP_IN = 1, TOMBOLO_SVP_OUT = 2, TOMBOLO_SVP_INOUT = 3 } tombolo_svp_flow_t;

/* Of a thread function: elements of plain bytes, without pointers, one after the other. Input goes
 * to its process with the create; output, all of it, comes back with the sync. */
typedef struct {
  tombolo_svp_flow_t flow;
  size_t element_bytes;
} tombolo_svp_parameter_t;
/* Elements of a parameter; a scalar is one. */
typedef struct {
  void* at;
  size_t count;
} tombolo_svp_data_t;

/* data: for each parameter. */
typedef void (*tombolo_svp_function_t)(tombolo_svp_index_t index, const tombolo_svp_data_t* data);

/* Names a thread function: in each process the same, before tombolo_svp_run(). */
void tombolo_svp_enter(const char* name, tombolo_svp_function_t function,
                       const tombolo_svp_parameter_t* parameters, size_t parameter_count);
/* A family of that function at any place. data, and the elements, are the family's until its sync;
 * of one that was killed or has failed there is no output. The value of one that has failed is
 * that of its tombolo_svp_fail(), 0 where its process has ended. As tombolo_svp_create(). */
int tombolo_svp_create_named(tombolo_svp_family_t* family, tombolo_svp_place_t place,
                             const tombolo_svp_range_t* range, const char* name,
                             const tombolo_svp_data_t* data);

/* ---- Channels ------------------------------------------------------------------------------ */

/* A value has a fixed size of at most so many bytes; a larger one travels by its address. */
#define TOMBOLO_SVP_VALUE_BYTES 64
/* Shared channels of a family. */
#define TOMBOLO_SVP_SHARED_CHANNELS 8

/* From the parent to all threads. */
typedef struct {
  uint64_t words[16];
} tombolo_svp_global_t;
/* From each thread to the next; the first reads the parent's value, and the parent the last one. */
typedef struct {
  uint64_t words[32];
} tombolo_svp_shared_t;

struct tombolo_svp_channels {
  tombolo_svp_global_t* const* globals;
  size_t global_count;
  tombolo_svp_shared_t* const* shareds;
  size_t shared_count;
};

/* For one family, before its create. */
void tombolo_svp_global_init(tombolo_svp_global_t* global, size_t value_bytes);
/* By the parent, once, before its sync. */
void tombolo_svp_global_write(tombolo_svp_global_t* global, const void* value);
/* By threads. OK, STOPPED, NO_MEMORY: there is no stack for a thread that waits. */
int tombolo_svp_global_read(tombolo_svp_global_t* global, void* value);

void tombolo_svp_shared_init(tombolo_svp_shared_t* shared, size_t value_bytes);
/* By the parent: to the first thread, once, before its sync; from the last one. OK, NO_VALUE, STOPPED,
 * NO_MEMORY. */
void tombolo_svp_shared_first(tombolo_svp_shared_t* shared, const void* value);
int tombolo_svp_shared_last(tombolo_svp_shared_t* shared, void* value);
/* By a thread of the family: from the thread before it; to the next one, once. OK, STOPPED,
 * NO_MEMORY. */
int tombolo_svp_shared_read(tombolo_svp_shared_t* shared, void* value);
void tombolo_svp_shared_write(tombolo_svp_shared_t* shared, const void* value);

#ifdef __cplusplus
}
#endif

#endif
