/* SPDX-License-Identifier: Apache-2.0
 * Purpose: what a program in the language of families finds declared: tombolo-svpc includes this file in
 * front of each source, and writes calls of the second half. docs/svp-language.md is the page for
 * its author.
 * Thread safety: a family belongs to the thread that declares it; kill may be called by any thread
 * before the sync. Places: any thread.
 */
#ifndef TOMBOLO_SVP_PROGRAM_H
#define TOMBOLO_SVP_PROGRAM_H

#ifdef __cplusplus
extern "C" {
#define SVP_NORETURN [[noreturn]]
#else
#define SVP_NORETURN __attribute__((__noreturn__))
#endif

/* ---- For the program ------------------------------------------------------------------------- */

/* The value of sync(fid). */
typedef enum svp_exit { SVP_DONE, SVP_BROKEN, SVP_KILLED, SVP_FAILED } svp_exit;

/* A limit that is never reached: the family ends by break or kill. */
#define SVP_UNBOUNDED 0x7fffffffffffffffL

/* A name of a place; zeroes name the default place. */
typedef struct svp_place {
  void* svp_record;
  unsigned long svp_generation;
} svp_place;
#ifdef __cplusplus
#define PLACE_DEFAULT (svp_place{nullptr, 0})
#else
#define PLACE_DEFAULT ((svp_place){0, 0})
#endif

/* A place of `workers` workers of this process; 0: one for each processor. */
svp_place svp_local_place(unsigned workers);
/* One family at a time, in the order of their creates, on the workers of their creators. */
svp_place svp_exclusive_place(void);
/* The same on the workers of a local place, which is to exist for longer. */
svp_place svp_exclusive_place_at(svp_place local);
/* After the last family that was created there was synced. */
void svp_end_place(svp_place ended);

typedef struct svp_family svp_family;
/* After sync(fid) == SVP_BROKEN: the value of the break. */
long svp_break_value(const svp_family* family);
/* After sync(fid) == SVP_FAILED: why. */
const char* svp_failure(const svp_family* family);
/* Ends the running thread if its family was stopped; for loops without create, sync and shared. */
void svp_checkpoint(void);

/* ---- For the translated program -------------------------------------------------------------- */

enum { SVP_FAMILY_BYTES = 384 };

/* A variable of type `family`. */
struct svp_family {
  void* object;                /* of a created family; null: there is none */
  const struct svp_site* site; /* of its create */
  unsigned long count; /* of the variables from this one that svp_begin was told of; else 1 */
  long value;
  char* failure;
  svp_exit reason;
  unsigned char storage[SVP_FAMILY_BYTES] __attribute__((__aligned__(16)));
};

/* Where in the program something stands, and the name that it has there. */
struct svp_site {
  const char* file;
  int line;
  const char* name;
};
/* A shared parameter in a thread. */
struct svp_end {
  const struct svp_end_operations* operations;
  void* channel;
  int missing; /* the thread before ended without a write */
  int written;
};
/* The creator's side of a shared channel: a variable of its, or its own shared parameter. */
struct svp_binding {
  void* variable;
  struct svp_end* end;
};

/* NOLINTBEGIN(modernize-use-nullptr): C has no nullptr. */
/* At the declaration of families, and where their scope is left. */
static inline __attribute__((__unused__)) svp_family* svp_begin(svp_family* first,
                                                                unsigned long count) {
  for (unsigned long n = 0; n < count; ++n) {
    first[n].object = 0;
    first[n].failure = 0;
    first[n].count = n == 0 ? count : 1;
  }
  return first;
}
void svp_leave_all(svp_family* first);
static inline __attribute__((__unused__)) void svp_leave(void* families) {
  svp_family* const first = (svp_family*)families;
  if (first->count != 1 || first->object != 0 || first->failure != 0) svp_leave_all(first);
}
/* NOLINTEND(modernize-use-nullptr) */

svp_exit svp_sync(svp_family* family, const struct svp_site* site);
void svp_kill(svp_family* family, const struct svp_site* site);
SVP_NORETURN void svp_break(long value, const struct svp_site* site);

/* A pointer to the value from the thread before. svp_read_again: also after the write. */
const void* svp_read(struct svp_end* end, const struct svp_site* site);
const void* svp_read_again(struct svp_end* end, const struct svp_site* site);
/* Writes the value for the next thread; returns the pointer. */
void* svp_write(struct svp_end* end, void* value, const struct svp_site* site);

#ifdef __cplusplus
}
#else
typedef svp_family family;
typedef svp_place place;
#endif

#endif
