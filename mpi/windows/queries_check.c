// SPDX-License-Identifier: Apache-2.0
// Purpose: an ordinary MPI program that asks windows of each flavor for all that a program may know
// of them: attributes, the regions of the processes, the hints in use.
// cli/tests/window_checks_test.py runs it.
//
//   mpiexec -n 3 queries_check MACHINE
//
// MACHINE: the one that windows are on; without it the hints are not looked at.
// Thread safety: single-threaded.
#include "mpi/faults/check.h"

static const char* machine = "";
static int is_coherent;

#define GIVES(class, call)                                                                   \
  do {                                                                                       \
    const int error_ = (call);                                                               \
    EXPECT(class_of(error_) == (class), "%s: class %d, not %s: %s", #call, class_of(error_), \
           #class, text_of(error_));                                                         \
  } while (0)
#define WORKS(call) GIVES(MPI_SUCCESS, call)

// --- Attributes ----------------------------------------------------------------------------------

static void expect_attributes(const char* what, MPI_Win win, const void* base, MPI_Aint bytes,
                              int unit, int flavor) {
  void* seen_base = &seen_base;
  MPI_Aint* seen_bytes = NULL;
  int *seen_unit = NULL, *seen_flavor = NULL, *model = NULL;
  int found[5] = {0};
  WORKS(MPI_Win_get_attr(win, MPI_WIN_BASE, &seen_base, &found[0]));
  WORKS(MPI_Win_get_attr(win, MPI_WIN_SIZE, &seen_bytes, &found[1]));
  WORKS(MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &seen_unit, &found[2]));
  WORKS(MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &seen_flavor, &found[3]));
  WORKS(MPI_Win_get_attr(win, MPI_WIN_MODEL, &model, &found[4]));
  for (int i = 0; i < 5; ++i) EXPECT(found[i], "%s: attribute %d", what, i);
  EXPECT(seen_base == base, "%s: %p, not %p", what, seen_base, base);
  EXPECT(*seen_bytes == bytes, "%s: %ld, not %ld", what, (long)*seen_bytes, (long)bytes);
  EXPECT(*seen_unit == unit, "%s: %d, not %d", what, *seen_unit, unit);
  EXPECT(*seen_flavor == flavor, "%s: %d", what, *seen_flavor);
  EXPECT(*model == (is_coherent ? MPI_WIN_UNIFIED : MPI_WIN_SEPARATE), "%s: %d", what, *model);
}

// Keys of the program's own are the host's matter, on the same handle.
static void expect_own_key(MPI_Win win) {
  int key = MPI_KEYVAL_INVALID, found = 1;
  static int value;
  int* seen = NULL;
  WORKS(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &key, NULL));
  WORKS(MPI_Win_get_attr(win, key, &seen, &found));
  EXPECT(!found);
  WORKS(MPI_Win_set_attr(win, key, &value));
  WORKS(MPI_Win_get_attr(win, key, &seen, &found));
  EXPECT(found && seen == &value);
  WORKS(MPI_Win_delete_attr(win, key));
  WORKS(MPI_Win_free_keyval(&key));
}

// --- Regions -------------------------------------------------------------------------------------

struct region {
  MPI_Aint bytes;
  int unit;
  char* base;
};

static struct region region_of(MPI_Win win, int of) {
  struct region region = {-1, -1, (char*)&region};
  WORKS(MPI_Win_shared_query(win, of, &region.bytes, &region.unit, &region.base));
  return region;
}

static void expect_region(const char* what, struct region region, MPI_Aint bytes, int unit,
                          const void* base) {
  EXPECT(region.bytes == bytes, "%s: %ld, not %ld", what, (long)region.bytes, (long)bytes);
  EXPECT(region.unit == unit, "%s: %d, not %d", what, region.unit, unit);
  EXPECT(region.base == base, "%s: %p, not %p", what, (void*)region.base, base);
}

// Rank 0 has no bytes, the others some, each in units of its own.
static MPI_Aint bytes_of(int of) { return 24 * of; }
static int unit_of(int of) { return 1 << of; }

static void shared_one_behind_the_other(void) {
  MPI_Win win;
  char* base = NULL;
  WORKS(MPI_Win_allocate_shared(bytes_of(rank), unit_of(rank), MPI_INFO_NULL, MPI_COMM_WORLD, &base,
                                &win));
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  expect_attributes("shared", win, base, bytes_of(rank), unit_of(rank), MPI_WIN_FLAVOR_SHARED);
  char* const start = region_of(win, 0).base;
  EXPECT(start != NULL, "where the others' memory begins");
  char* at = start;
  for (int of = 0; of < ranks; ++of) {
    expect_region("shared", region_of(win, of), bytes_of(of), unit_of(of), at);
    if (of == rank) EXPECT(at == base, "%p, not %p", (void*)base, (void*)at);
    at += bytes_of(of);
  }
  expect_region("lowest with bytes", region_of(win, MPI_PROC_NULL), bytes_of(1), unit_of(1), start);
  struct region region;
  GIVES(MPI_ERR_RANK, MPI_Win_shared_query(win, ranks, &region.bytes, &region.unit, &region.base));
  GIVES(MPI_ERR_RANK, MPI_Win_shared_query(win, -7, &region.bytes, &region.unit, &region.base));
  // The memory reached there is the others'.
  WORKS(MPI_Win_fence(0, win));
  for (int turn = 0; turn < ranks; ++turn) {  // neighbours may share a line
    for (MPI_Aint i = 0; turn == rank && i < bytes_of(rank); ++i) base[i] = (char)(10 * rank + i);
    WORKS(MPI_Win_fence(0, win));
  }
  for (int of = 0; of < ranks; ++of)
    for (MPI_Aint i = 0; i < bytes_of(of); ++i)
      EXPECT(region_of(win, of).base[i] == (char)(10 * of + i), "byte %ld of %d", (long)i, of);
  WORKS(MPI_Win_fence(0, win));
  expect_own_key(win);
  WORKS(MPI_Win_free(&win));
}

static void shared_apart(void) {
  MPI_Win win;
  char* base = NULL;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "alloc_shared_noncontig", "true");
  WORKS(MPI_Win_allocate_shared(bytes_of(rank), 1, info, MPI_COMM_WORLD, &base, &win));
  MPI_Info_free(&info);
  expect_region("apart, without bytes", region_of(win, 0), 0, 1, NULL);
  expect_attributes("apart", win, base, bytes_of(rank), 1, MPI_WIN_FLAVOR_SHARED);
  EXPECT((base == NULL) == (rank == 0), "%p", (void*)base);
  // Each on pages of its own, wherever this process sees them.
  const MPI_Aint page = sysconf(_SC_PAGESIZE);
  for (int of = 1; of < ranks; ++of) {
    const struct region region = region_of(win, of);
    EXPECT(region.bytes == bytes_of(of), "%ld", (long)region.bytes);
    if (of == 1) continue;
    const MPI_Aint distance = region.base - region_of(win, of - 1).base;
    EXPECT(distance > 0 && distance % page == 0, "%ld", (long)distance);
  }
  expect_region("own", region_of(win, rank), bytes_of(rank), 1, base);
  WORKS(MPI_Win_free(&win));
}

static void nobody_has_bytes(void) {
  MPI_Win win;
  char* base = (char*)&win;
  WORKS(MPI_Win_allocate_shared(0, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  const struct region region = region_of(win, MPI_PROC_NULL);
  EXPECT(region.bytes == 0 && region.unit == 4, "%ld", (long)region.bytes);
  WORKS(MPI_Win_free(&win));
}

static void allocated(void) {
  MPI_Win win;
  char* base = NULL;
  WORKS(MPI_Win_allocate(bytes_of(rank), 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  expect_attributes("allocated", win, base, bytes_of(rank), 8, MPI_WIN_FLAVOR_ALLOCATE);
  EXPECT((base == NULL) == (rank == 0), "%p", (void*)base);
  expect_region("allocated, own", region_of(win, rank), bytes_of(rank), 8, base);
  const struct region lowest = region_of(win, MPI_PROC_NULL);
  for (int of = 0; of < ranks; ++of)
    if (of != rank && !is_coherent) expect_region("kept apart", region_of(win, of), 0, 1, NULL);
  if (is_coherent) {
    expect_region("allocated, without bytes", region_of(win, 0), 0, 8, NULL);
    EXPECT(lowest.bytes == bytes_of(1) && lowest.base != NULL, "%ld", (long)lowest.bytes);
  } else {
    expect_region("rank 1's", lowest, rank == 1 ? bytes_of(1) : 0, rank == 1 ? 8 : 1,
                  rank == 1 ? base : NULL);
  }
  WORKS(MPI_Win_free(&win));
}

// Whether memory of the program is where all processes map it.
static int maps_memory(void) {
  const char* const remap = getenv("TOMBOLO_REMAP");
  return strcmp(machine, "coherent") == 0 && (remap == NULL || strcmp(remap, "off") != 0);
}

// Whole pages are mapped by all, where programs' memory is. Memory that is told to be in reach is.
static void created_of_pages(void) {
  const MPI_Aint page = sysconf(_SC_PAGESIZE);
  MPI_Win win;
  char* memory = aligned_alloc((size_t)page, (size_t)(2 * page));
  memset(memory, 0, (size_t)(2 * page));
  WORKS(MPI_Win_create(memory, 2 * page, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  expect_region("pages, own", region_of(win, rank), 2 * page, 1, memory);
  WORKS(MPI_Win_fence(0, win));
  memory[2 * page - 1] = (char)(10 + rank);
  WORKS(MPI_Win_fence(0, win));
  for (int of = 0; of < ranks; ++of) {
    const struct region region = region_of(win, of);
    if (region.bytes == 0) EXPECT(region.base == NULL && of != rank && !maps_memory());
    if (region.bytes != 0)
      EXPECT(region.bytes == 2 * page && region.base[2 * page - 1] == 10 + of, "of %d", of);
  }
  WORKS(MPI_Win_fence(0, win));
  WORKS(MPI_Win_free(&win));
  free(memory);
}

// Rank 1 asks for the most, and all get it; of contiguous memory, the first one.
enum memory { allocated_memory, shared_memory, contiguous_memory };
static void aligned(enum memory memory) {
  const MPI_Aint wanted = 1 << 21;
  MPI_Info info;
  MPI_Win win;
  char* base = NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "mpi_minimum_memory_alignment", rank == 1 ? "2097152" : "64");
  MPI_Info_set(info, "alloc_shared_noncontig", memory == contiguous_memory ? "false" : "true");
  if (memory == allocated_memory)
    WORKS(MPI_Win_allocate(100, 1, info, MPI_COMM_WORLD, &base, &win));
  else
    WORKS(MPI_Win_allocate_shared(100, 1, info, MPI_COMM_WORLD, &base, &win));
  MPI_Info_free(&info);
  if (memory == contiguous_memory) {
    const struct region first = region_of(win, 0);
    EXPECT((MPI_Aint)first.base % wanted == 0, "%p", (void*)first.base);
    EXPECT(base == first.base + 100 * rank, "%p", (void*)base);
  } else {
    EXPECT((MPI_Aint)base % wanted == 0, "%p", (void*)base);
  }
  WORKS(MPI_Win_fence(0, win));
  base[99] = (char)rank;
  WORKS(MPI_Win_fence(0, win));
  char seen = 0;
  WORKS(MPI_Get(&seen, 1, MPI_CHAR, (rank + 1) % ranks, 99, 1, MPI_CHAR, win));
  WORKS(MPI_Win_fence(0, win));
  EXPECT(seen == (rank + 1) % ranks, "%d", seen);
  WORKS(MPI_Win_free(&win));
}

static int is_in_image(const void* address) {
  FILE* const maps = fopen("/proc/self/maps", "r");
  char line[512];
  int found = 0;
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
    unsigned long low = 0, high = 0;
    sscanf(line, "%lx-%lx", &low, &high);
    if (low <= (unsigned long)address && (unsigned long)address < high)
      found = strstr(line, "tombolo-image") != NULL;
  }
  if (maps != NULL) fclose(maps);
  return found;
}

// Peers map memory that starts on a page; more than that is the host's matter.
static void aligned_without_a_window(void) {
  static const struct {
    const char* text;
    MPI_Aint bytes;
    int mapped;
  } asked[] = {{"64", 64, 1}, {"4096", 4096, 1}, {"2097152", 2097152, 0}};
  for (int i = 0; i < 3; ++i) {
    MPI_Info info;
    char* memory[2] = {NULL, NULL};  // one alone may lie so by chance
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_minimum_memory_alignment", asked[i].text);
    for (int k = 0; k < 2; ++k) {
      WORKS(MPI_Alloc_mem(100, info, &memory[k]));
      EXPECT((MPI_Aint)memory[k] % asked[i].bytes == 0, "%s: %p", asked[i].text, (void*)memory[k]);
      EXPECT(is_in_image(memory[k]) == (asked[i].mapped && maps_memory()), "%s", asked[i].text);
    }
    MPI_Info_free(&info);
    for (int k = 0; k < 2; ++k) WORKS(MPI_Free_mem(memory[k]));
  }
}

// A hint that makes no sense is none.
static void aligned_to_nonsense(void) {
  static const char* const texts[] = {"3", "0", "-64", "much", "2147483648"};
  for (int i = 0; i < 5; ++i) {
    MPI_Info info;
    MPI_Win win;
    char* base = NULL;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_minimum_memory_alignment", texts[i]);
    WORKS(MPI_Win_allocate(100, 1, info, MPI_COMM_WORLD, &base, &win));
    MPI_Info_free(&info);
    WORKS(MPI_Win_free(&win));
  }
}

// Only in passive target epochs; Open MPI takes it anywhere, and so do we under it.
static void sync_in_epochs(void) {
  MPI_Win win;
  int* base;
  WORKS(MPI_Win_allocate(sizeof *base, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
#if !defined(OPEN_MPI)
  GIVES(MPI_ERR_RMA_SYNC, MPI_Win_sync(win));
#endif
  WORKS(MPI_Win_lock_all(0, win));
  WORKS(MPI_Win_sync(win));
  WORKS(MPI_Win_unlock_all(win));
  WORKS(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
  WORKS(MPI_Win_sync(win));
  WORKS(MPI_Win_unlock(rank, win));
  WORKS(MPI_Win_free(&win));
}

static void created_and_dynamic(void) {
  static char memory[64];
  MPI_Win win;
  WORKS(MPI_Win_create(memory, 8 + 8 * rank, 2, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  expect_attributes("created", win, memory, 8 + 8 * rank, 2, MPI_WIN_FLAVOR_CREATE);
  struct region region;
  expect_region("created, own", region_of(win, rank), 8 + 8 * rank, 2, memory);
  if (!is_coherent) expect_region("another's", region_of(win, (rank + 1) % ranks), 0, 1, NULL);
  // Rank 0's: where it is out of reach the next one's is not told in its place.
  const struct region lowest = region_of(win, MPI_PROC_NULL);
  EXPECT(lowest.bytes == 8 || (rank != 0 && lowest.bytes == 0), "%ld", (long)lowest.bytes);
  WORKS(MPI_Win_free(&win));

  WORKS(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  expect_attributes("dynamic", win, MPI_BOTTOM, 0, 1, MPI_WIN_FLAVOR_DYNAMIC);
  GIVES(MPI_ERR_RMA_FLAVOR,
        MPI_Win_shared_query(win, rank, &region.bytes, &region.unit, &region.base));
  WORKS(MPI_Win_free(&win));
}

// --- Hints ---------------------------------------------------------------------------------------

static void expect_hint(MPI_Win win, const char* key, const char* wanted) {
  MPI_Info info = MPI_INFO_NULL;
  char value[MPI_MAX_INFO_VAL + 1] = "";
  int found = 0;
  WORKS(MPI_Win_get_info(win, &info));
  WORKS(MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &found));
  EXPECT(found && strcmp(value, wanted) == 0, "%s is '%s', not '%s'", key, value, wanted);
  WORKS(MPI_Info_free(&info));
}

// All get the hints of rank 0; the others ask for other ones here.
static void hints(void) {
  static const char* const keys[] = {"tombolo_passive_sync", "tombolo_backoff",
                                     "tombolo_reader_bias", "mpi_accumulate_granularity"};
  static const char* const asked[][4] = {{"fifo", "off", "on", "128"},
                                         {"writer-preference", "on", "off", "1"},
                                         {"best-effort", "on", "on", "64"}};
  if (machine[0] == '\0') return;
  for (int turn = 0; turn < 3; ++turn) {
    MPI_Info info;
    MPI_Win win;
    char* base = NULL;
    MPI_Info_create(&info);
    for (int i = 0; i < 4; ++i)
      MPI_Info_set(info, keys[i], asked[rank == 0 ? turn : (turn + rank) % 3][i]);
    WORKS(MPI_Win_allocate(64, 1, info, MPI_COMM_WORLD, &base, &win));
    MPI_Info_free(&info);
    for (int i = 0; i < 4; ++i) expect_hint(win, keys[i], asked[turn][i]);
    expect_hint(win, "tombolo_machine", machine);
    WORKS(MPI_Win_free(&win));
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  if (argc > 1) machine = argv[1];
  is_coherent = machine[0] == '\0' || strcmp(machine, "coherent") == 0;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  shared_one_behind_the_other();
  shared_apart();
  nobody_has_bytes();
  allocated();
  created_and_dynamic();
  created_of_pages();
  aligned(allocated_memory);
  aligned(shared_memory);
  aligned(contiguous_memory);
  aligned_without_a_window();
  aligned_to_nonsense();
  sync_in_epochs();
  hints();
  return end();
}
