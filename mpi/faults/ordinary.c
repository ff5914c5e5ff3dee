// SPDX-License-Identifier: Apache-2.0
// Windows over memory as programs have it: on the stack, static, from malloc at odd addresses, from
// mmap, from MPI_Alloc_mem. Peers change it while the variables beside it change, children of a
// fork come and go, and the allocator gets it back.
#include "mpi/faults/check.h"

#include <sys/mman.h>
#include <sys/wait.h>

enum { kBeside = 8 };  // longs on each side of a window's memory, which are the program's own

static long in_data[3 * kBeside] = {1, 2, 3};
static long in_bss[3 * kBeside];

typedef struct {
  const char* name;
  long* all;  // kBeside longs, the window's, kBeside longs
  long n;     // of the window
} Memory;

static long* window_of(const Memory* m) { return m->all + kBeside; }

static void fill(const Memory* m) {
  for (long i = 0; i < m->n + 2 * kBeside; ++i) m->all[i] = 1000 * rank + i;
}

// Every rank has added 1 to every element `rounds` times.
static void look(const Memory* m, long rounds, const char* when) {
  long wrong = 0;
  for (long i = 0; i < m->n + 2 * kBeside; ++i) {
    const int inside = i >= kBeside && i < m->n + kBeside;
    wrong += m->all[i] != 1000 * rank + i + (inside ? rounds * ranks : 0);
  }
  EXPECT(wrong == 0, "%s, %s: %ld wrong", m->name, when, wrong);
}

static void add_to_all(const Memory* m, MPI_Win win) {
  long* const ones = malloc(sizeof *ones * (size_t)m->n);
  for (long i = 0; i < m->n; ++i) ones[i] = 1;
  MPI_Win_fence(0, win);
  for (int r = 0; r < ranks; ++r)
    MPI_Accumulate(ones, (int)m->n, MPI_LONG, r, 0, (int)m->n, MPI_LONG, MPI_SUM, win);
  MPI_Win_fence(0, win);
  free(ones);
}

static void use_the_heap(void) {
  enum { kPieces = 300 };
  char* piece[kPieces];
  for (int i = 0; i < kPieces; ++i) memset(piece[i] = malloc((size_t)(8 + 37 * i)), i, 8 + 37 * i);
  for (int i = 0; i < kPieces; ++i) {
    for (int k = 0; k < 8 + 37 * i; ++k) EXPECT(piece[i][k] == (char)i, "piece %d", i);
    free(piece[i]);
  }
}

// The child has the memory as it was, and its stores are its own; so are those of its parent.
static void fork_beside(const Memory* m, long rounds, MPI_Win win) {
  int gate[2];
  EXPECT(pipe(gate) == 0);
  fflush(NULL);
  const pid_t pid = fork();
  if (pid == 0) {
    char c;
    const long before = failures;
    EXPECT(read(gate[0], &c, 1) == 1);
    look(m, rounds, "in a child after its parent's stores");
    for (long i = 0; i < m->n + 2 * kBeside; ++i) m->all[i] = -1;
    use_the_heap();
    _exit(failures == before ? 0 : 1);
  }
  add_to_all(m, win);
  EXPECT(write(gate[1], "x", 1) == 1);
  int status = -1;
  EXPECT(waitpid(pid, &status, 0) == pid);
  EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: child %d", m->name, status);
  close(gate[0]);
  close(gate[1]);
  look(m, rounds + 1, "after a child's stores");
}

static void use(const Memory* m) {
  fill(m);
  long rounds = 0;
  for (int window = 0; window < 3; ++window) {
    MPI_Win win;
    MPI_Win_create(window_of(m), m->n * (MPI_Aint)sizeof(long), sizeof(long), MPI_INFO_NULL,
                   MPI_COMM_WORLD, &win);
    add_to_all(m, win);
    look(m, ++rounds, "after a fence");
    MPI_Barrier(MPI_COMM_WORLD);
    fork_beside(m, rounds++, win);
    MPI_Win_free(&win);
    look(m, rounds, "after the window");
  }
}

static void on_the_stack(void) {
  long memory[3 * kBeside];
  use(&(Memory){"stack", memory, kBeside});
}

static void from_malloc(long n) {
  Memory m = {"malloc", malloc(sizeof(long) * (size_t)(n + 2 * kBeside)), n};
  use(&m);
  // The memory is the allocator's as before: it may grow, move, and go back to the system.
  fill(&m);
  const size_t more = sizeof(long) * (size_t)(3 * n + 2 * kBeside);
  m.all = realloc(m.all, more);
  look(&m, 0, "after realloc");
  memset(m.all, 7, more);
  free(m.all);
}

static void from_mmap(void) {
  const size_t bytes = 1 << 20;
  long* const memory =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  use(&(Memory){"mmap", memory, (long)(bytes / sizeof(long)) - 2 * kBeside});
  EXPECT(madvise(memory, bytes, MADV_DONTNEED) == 0);
  EXPECT(memory[0] == 0 && memory[1000] == 0, "discarded memory is not zero: %ld", memory[1000]);
  munmap(memory, bytes);
}

static void from_mpi(long n) {
  Memory m = {"MPI_Alloc_mem", NULL, n};
  MPI_Alloc_mem((MPI_Aint)sizeof(long) * (n + 2 * kBeside), MPI_INFO_NULL, &m.all);
  use(&m);
  MPI_Free_mem(m.all);
}

// Two windows over variables of one page, which end in any order.
static void in_one_page(void) {
  static long both[2][kBeside];
  memset(both, 0, sizeof both);
  for (int first = 0; first < 2; ++first) {
    MPI_Win win[2];
    const int one = 1;
    const long v = 5;
    for (int i = 0; i < 2; ++i)
      MPI_Win_create(both[i], sizeof both[i], sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win[i]);
    for (int i = 0; i < 2; ++i) {
      MPI_Win_lock_all(0, win[i]);
      MPI_Accumulate(&v, one, MPI_LONG, (rank + 1) % ranks, i, 1, MPI_LONG, MPI_SUM, win[i]);
      MPI_Win_unlock_all(win[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win[first]);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win[!first]);
    MPI_Win_unlock(rank, win[!first]);
    EXPECT(both[!first][!first] == 5 * (first + 1), "%ld", both[!first][!first]);
    MPI_Win_free(&win[!first]);
    for (int i = 0; i < 2; ++i) EXPECT(both[i][i] == 5 * (first + 1), "%ld", both[i][i]);
  }
}

// Sizes and places as they come, while the heap is in use.
static void in_a_busy_heap(unsigned seed) {
  enum { kPieces = 40, kMost = 3000 };
  char* piece[kPieces] = {0};
  size_t size[kPieces] = {0};
  srand(seed);
  for (int step = 0; step < 400; ++step) {
    const int p = rand() % kPieces;
    for (size_t i = 0; i < size[p]; ++i)
      if (piece[p][i] != (char)p) {
        EXPECT(0, "piece %d, byte %zu of %zu is %d, seed %u", p, i, size[p], piece[p][i], seed);
        return;
      }
    free(piece[p]);
    size[p] = (size_t)(rand() % kMost + 1);
    piece[p] = malloc(size[p]);
    memset(piece[p], p, size[p]);
    if (step % 8 != 0) continue;
    MPI_Win win;
    MPI_Win_create(piece[p], (MPI_Aint)size[p], 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    const char v = (char)p;
    MPI_Put(&v, 1, MPI_CHAR, (rank + 1) % ranks, 0, 1, MPI_CHAR, win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
  }
  for (int p = 0; p < kPieces; ++p) free(piece[p]);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const unsigned seed = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
  on_the_stack();
  use(&(Memory){"data", in_data, kBeside});
  use(&(Memory){"bss", in_bss, kBeside});
  from_malloc(1);
  from_malloc(3000);
  from_malloc(100000);
  from_mmap();
  from_mpi(10);
  from_mpi(100000);
  in_one_page();
  in_a_busy_heap(seed);
  return end();
}
