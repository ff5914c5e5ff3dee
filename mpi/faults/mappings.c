// SPDX-License-Identifier: Apache-2.0
// The kernel gives a process vm.max_map_count mappings. How many do windows over the program's
// memory take, and what becomes of a window that finds none left? Usage:
//   mappings count [N]   of N windows at once, twice
//   mappings exhaust     rank 1 has a few left, or none
#include "mpi/faults/check.h"

#include <malloc.h>
#include <sys/mman.h>

enum {
  kCells = 700,  // of a window's memory: more than a page
  kFew = 8       // mappings that a communicator keeps for its next window, and those of the heap
};

static int mappings(void) {
  int n = 0;
  FILE* maps = fopen("/proc/self/maps", "r");
  for (int c = 0; maps != NULL && (c = getc(maps)) != EOF;) n += c == '\n';
  if (maps != NULL) fclose(maps);
  return n;
}

// --- Windows over memory of three kinds, in turn -------------------------------------------------

enum { kStatic = 200 };
static long in_bss[kStatic][kCells];

// A mapping of its own between pages that are not accessible.
static long* mapped_apart(void) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = sizeof in_bss[0] + page;
  char* const all = mmap(NULL, bytes + 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT(all != MAP_FAILED && mprotect(all + page, bytes, PROT_READ | PROT_WRITE) == 0);
  return (long*)(all + page);
}

// No two windows have memory in common.
static long* memory_of(int i) {
  if (i % 3 == 0 && i / 3 < kStatic) return in_bss[i / 3];
  return i % 3 < 2 ? malloc(sizeof in_bss[0] + 37 * (size_t)(i % 17)) : mapped_apart();
}

static void fill(long* cells, int i) {
  for (int k = 0; k < kCells; ++k) cells[k] = 1000 * i + k;
}

static void look(const long* cells, int i, long put, const char* when) {
  int wrong = cells[3] != (put != 0 ? put : 1000 * i + 3);
  for (int k = 0; k < kCells; ++k) wrong += k != 3 && cells[k] != 1000 * i + k;
  EXPECT(wrong == 0, "%s: window %d: %d wrong cells", when, i, wrong);
}

static int create(long* cells, MPI_Comm comm, MPI_Win* win) {
  *win = MPI_WIN_NULL;
  return MPI_Win_create(cells, kCells * sizeof *cells, sizeof *cells, MPI_INFO_NULL, comm, win);
}

static long value_of(int from, int i) { return -1000000L * (from + 1) - i; }

static void put(MPI_Win win, int i) {
  const int right = (rank + 1) % ranks;
  const long value = value_of(rank, i);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win);
  MPI_Put(&value, 1, MPI_LONG, right, 3, 1, MPI_LONG, win);
  MPI_Win_unlock(right, win);
}

// The windows are used and freed, and the memory holds the program's cells and the put one.
static void use_and_free(long** cells, MPI_Win* wins, int n, const char* when) {
  const int left = (rank + ranks - 1) % ranks;
  for (int i = 0; i < n; ++i) put(wins[i], i);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < n; ++i) MPI_Win_free(&wins[i]);
  for (int i = 0; i < n; ++i) look(cells[i], i, value_of(left, i), when);
}

// --- How many ------------------------------------------------------------------------------------

static void count(int n) {
  long** cells = calloc((size_t)n, sizeof *cells);
  MPI_Win* wins = calloc((size_t)n, sizeof *wins);
  for (int i = 0; i < n; ++i) cells[i] = memory_of(i);
  int before = 0, most = 0, freed = 0;
  double seconds = 0;
  for (int turn = 0; turn < 2; ++turn) {
    for (int i = 0; i < n; ++i) fill(cells[i], i);
    MPI_Barrier(MPI_COMM_WORLD);
    const int at_first = mappings();
    const double start = now();
    for (int i = 0; i < n; ++i)
      EXPECT(create(cells[i], MPI_COMM_WORLD, &wins[i]) == MPI_SUCCESS, "window %d", i);
    seconds = now() - start;
    const int there = mappings();
    use_and_free(cells, wins, n, "counted");
    const int at_last = mappings();
    if (turn > 0) {
      EXPECT(there <= most + kFew, "%d mappings, then %d", most, there);
      EXPECT(at_last <= freed + kFew, "%d mappings left, then %d", freed, at_last);
      continue;
    }
    before = at_first;
    most = there;
    freed = at_last;
  }
  // One for a window's own words, and one or two where its pages part those around them; of each
  // peer a few, however many windows there are.
  EXPECT(most - before <= 3 * n + 4 * ranks, "%d mappings, then %d", before, most);
  EXPECT(freed - before <= 2 * 256 + 4 * ranks, "%d mappings, %d afterwards", before, freed);
  if (rank == 0)
    printf("%d windows, %d ranks: %d mappings, then %d, then %d; created in %.2f s\n", n, ranks,
           before, most, freed, seconds);
}

// --- None left -----------------------------------------------------------------------------------

static char* pages;
static size_t page_bytes, last_page, all_bytes;

// For the host MPI, which ends the job where malloc has nothing for it; and it has used windows.
static void keep_room_in_the_heap(void) {
  enum { kRoom = 16 << 20 };
  mallopt(M_MMAP_THRESHOLD, 2 * kRoom);
  mallopt(M_TRIM_THRESHOLD, 2 * kRoom);
  char* const room = malloc(kRoom);
  room[0] = room[kRoom - 1] = 1;
  free(room);
}

// Each second page may be read, and so is a mapping, as is that between it and the next.
static void take_all_mappings(void) {
  long limit = 0;
  FILE* setting = fopen("/proc/sys/vm/max_map_count", "r");
  EXPECT(setting != NULL && fscanf(setting, "%ld", &limit) == 1);
  if (setting != NULL) fclose(setting);
  page_bytes = (size_t)sysconf(_SC_PAGESIZE);
  all_bytes = ((size_t)limit + 3) * page_bytes;
  pages = mmap(NULL, all_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  EXPECT(pages != MAP_FAILED, "mmap");
  if (pages == MAP_FAILED) return;
  for (last_page = 1; mprotect(pages + last_page * page_bytes, page_bytes, PROT_READ) == 0;)
    last_page += 2;
}

static void give_back(int n) {
  for (; n > 0; n -= 2) {
    last_page -= 2;
    EXPECT(mprotect(pages + last_page * page_bytes, page_bytes, PROT_NONE) == 0, "give_back");
  }
}

// Rank 1 has `left` mappings, and the one that the kernel gives beyond its limit. The windows for
// which it has none are refused at all ranks.
static void create_until_refused(int left) {
  enum { kMost = 40 };
  static long* cells[kMost];
  static MPI_Win wins[kMost + 1];
  char when[40];
  snprintf(when, sizeof when, "%d mappings left", left);
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  for (int i = 0; i < kMost; ++i) {
    if (cells[i] == NULL) cells[i] = memory_of(i);
    fill(cells[i], i);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) {
    take_all_mappings();
    give_back(left);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  int n = 0, error = MPI_SUCCESS;
  while (n < kMost && (error = create(cells[n], comm, &wins[n])) == MPI_SUCCESS) ++n;
  EXPECT(n <= left + 1, "%s: %d windows", when, n);
  EXPECT(class_of(error) == MPI_ERR_NO_MEM, "%s: window %d: %s", when, n, text_of(error));
  if (rank == 1)
    EXPECT(strstr(text_of(error), "vm.max_map_count") != NULL, "%s: %s", when, text_of(error));
  EXPECT(wins[n] == MPI_WIN_NULL);
  for (int i = n; i < kMost; ++i) look(cells[i], i, 0, when);
  use_and_free(cells, wins, n, when);
  if (rank == 1) munmap(pages, all_bytes);
  MPI_Barrier(MPI_COMM_WORLD);
  fill(cells[0], 0);
  EXPECT(create(cells[0], comm, &wins[0]) == MPI_SUCCESS, "after %s", when);
  if (wins[0] != MPI_WIN_NULL) use_and_free(cells, wins, 1, "with mappings again");
  MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  if (argc <= 1 || strcmp(argv[1], "exhaust") != 0) {
    count(argc > 2 ? atoi(argv[2]) : 100);
    return end();
  }
  keep_room_in_the_heap();
  count(40);
  static const int left[] = {0, 2, 4, 6, 10, 16};
  for (unsigned i = 0; i < sizeof left / sizeof *left; ++i) create_until_refused(left[i]);
  return end();
}
