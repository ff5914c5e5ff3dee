/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MACROS_H
#define MACROS_H
#define SPAWN(fid, from, to) create(fid;; from; to)
#define EACH(n) \
  index i;      \
  if (i >= n) break;
#define CREATE create
#define THREAD(name) thread name
#define WAIT(f)                                \
  do {                                         \
    if (sync(f) != SVP_DONE) puts("not done"); \
  } while (0)
THREAD(mark)(char* text, char with);
#endif
