// SPDX-License-Identifier: Apache-2.0
// Purpose: an ordinary MPI program that uses windows over every kind of the program's own memory,
// and that memory itself before, meanwhile and afterwards.
//
//   mpiexec -n 2 created_memory_check [shared | private]
//
// `shared`, `private`: how plain memory has to be mapped while a window is over it; without it this
// is not checked. Prints `RESULT ok checks=N` or one line per failure.
// Thread safety: single-threaded.
#define _GNU_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kMega = 1 << 20, kMapped = 40 << 20 };

static int rank, size, checks, failures;
static const char* wanted = "";  // of mappings
static char static_array[kMega];
static int64_t static_word;
static MPI_Info info = MPI_INFO_NULL;

static void expect(int good, const char* what) {
  ++checks;
  if (good) return;
  ++failures;
  printf("FAILED at rank %d: %s\n", rank, what);
  fflush(stdout);
}

static int right(void) { return (rank + 1) % size; }
static int left(void) { return (rank + size - 1) % size; }
static char pattern(int of, size_t i) { return (char)(of * 7 + i % 251); }

// The kernel's four letters for the mapping with this address.
static void access_of(const void* address, char access[5]) {
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[8192];
  unsigned long low, high;
  strcpy(access, "????");
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
    if (sscanf(line, "%lx-%lx %4s", &low, &high, access) == 3 && low <= (uintptr_t)address &&
        (uintptr_t)address < high)
      break;
  if (maps != NULL) fclose(maps);
}
static char* page_above(const void* address) {
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  return (char*)(((uintptr_t)address + page - 1) / page * page);
}
static void expect_mapping(const void* address, int in_window, const char* what) {
  char access[5];
  if (wanted[0] == '\0') return;
  access_of(address, access);
  expect((access[3] == 's') == (in_window && wanted[0] == 's'), what);
}

static MPI_Win window_over(void* base, size_t bytes) {
  MPI_Win win;
  MPI_Win_create(base, (MPI_Aint)bytes, 1, info, MPI_COMM_WORLD, &win);
  return win;
}
static int is_unified(MPI_Win win) {
  int* model = NULL;
  int found = 0;
  MPI_Win_get_attr(win, MPI_WIN_MODEL, &model, &found);
  return found && *model == MPI_WIN_UNIFIED;
}

// Puts and gets all of a region, whole and in pieces that lie across the borders of pages.
static void put_and_get(char* base, size_t bytes, const char* what) {
  char* const buffer = malloc(bytes + 1);
  for (size_t i = 0; i < bytes; ++i) base[i] = pattern(rank, i);
  MPI_Win win = window_over(base, bytes);
  int same = 1;
  for (size_t i = 0; i < bytes; ++i) same &= base[i] == pattern(rank, i);
  expect(same, what);
  MPI_Win_fence(0, win);
  MPI_Get(buffer, (int)bytes, MPI_CHAR, right(), 0, (int)bytes, MPI_CHAR, win);
  MPI_Win_fence(0, win);
  same = 1;
  for (size_t i = 0; i < bytes; ++i) same &= buffer[i] == pattern(right(), i);
  expect(same, what);
  for (size_t i = 0; i < bytes; ++i) buffer[i] = pattern(rank + 100, i);
  for (size_t at = 0; at < bytes; at += 3001) {
    const int n = (int)(bytes - at < 3001 ? bytes - at : 3001);
    MPI_Put(buffer + at, n, MPI_CHAR, right(), (MPI_Aint)at, n, MPI_CHAR, win);
  }
  MPI_Win_fence(0, win);
  same = 1;
  for (size_t i = 0; i < bytes; ++i) same &= base[i] == pattern(left() + 100, i);
  expect(same, what);
  MPI_Win_free(&win);
  same = 1;
  for (size_t i = 0; i < bytes; ++i) same &= base[i] == pattern(left() + 100, i);
  expect(same, what);
  free(buffer);
}

// All processes count at once in all words of the first and last pages of rank 0's region.
static void count(char* base, size_t bytes, const char* what) {
  const size_t words = bytes / 8;
  const size_t near = words < 1200 ? words : 600;
  const int64_t one = 1;
  int64_t former, sum = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  memset(base, 0, bytes);
  MPI_Win win = window_over(base, bytes);
  MPI_Win_lock_all(0, win);
  for (int turn = 0; turn < 3; ++turn)
    for (size_t i = 0; i < words; ++i) {
      if (i >= near && i < words - near) continue;
      MPI_Fetch_and_op(&one, &former, MPI_INT64_T, 0, (MPI_Aint)(8 * i), MPI_SUM, win);
      MPI_Win_flush(0, win);
      sum += former;
    }
  MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  int64_t all = 0;
  MPI_Allreduce(&sum, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  const int64_t n = 3 * size;
  const int64_t counted = (int64_t)(words < 2 * near ? words : 2 * near);
  expect(all == counted * n * (n - 1) / 2, what);
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
  int same = 1;
  for (size_t i = 0; i < words; ++i) {
    int64_t word;
    memcpy(&word, base + 8 * i, 8);
    same &= word == (rank == 0 && (i < near || i >= words - near) ? n : 0);
  }
  MPI_Win_unlock(rank, win);
  expect(same, what);
  MPI_Win_free(&win);
}

static void count_everywhere(char* memory) {
  count(memory, kMega, "counts in malloc");
  count(static_array + 40, 3 * 4096, "counts in a static array");
  count(page_above(memory), 4 * 4096, "counts in whole pages");
  count(page_above(memory) + (rank == 0 ? 0 : 8), 4 * 4096, "counts in whole pages at rank 0 only");
}

// An array of elements that lie across the border of pages, added to by all at once.
static void accumulate_across(char* base, size_t bytes, const char* what) {
  const int n = (int)(bytes / 8);
  double* const ones = malloc(bytes);
  for (int i = 0; i < n; ++i) ones[i] = 1;
  memset(base, 0, bytes);
  MPI_Win win = window_over(base, bytes);
  MPI_Win_fence(0, win);
  for (int to = 0; to < size; ++to)
    MPI_Accumulate(ones, n, MPI_DOUBLE, to, 0, n, MPI_DOUBLE, MPI_SUM, win);
  MPI_Win_fence(0, win);
  MPI_Win_free(&win);
  int same = 1;
  for (int i = 0; i < n; ++i) {
    double value;
    memcpy(&value, base + 8 * (size_t)i, 8);
    same &= value == size;
  }
  expect(same, what);
  free(ones);
}

// The heap and variables may stay in memory that peers have mapped, but never a child's.
static void private_to_children(char* base, size_t bytes, const char* what) {
  memset(base, 1, bytes);
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    memset(base, 2, bytes);
    _exit(base[bytes / 2] == 2 ? 0 : 1);
  }
  int state = 0;
  waitpid(child, &state, 0);
  expect(WIFEXITED(state) && WEXITSTATUS(state) == 0, what);
  int same = 1;
  for (size_t i = 0; i < bytes; ++i) same &= base[i] == 1;
  expect(same, what);
}

static void mapping_while_there(char* base, size_t bytes, int stays) {
  memset(base, 1, bytes);
  MPI_Win win = window_over(base, bytes);
  expect_mapping(base, 1, "mapping in a window");
  MPI_Win_free(&win);
  expect_mapping(base, stays, "mapping after the window");
}

// On memory of MPI's own, before a window has left any of the heap where peers have mapped it.
static void allocated_by_mpi(void) {
  char* memory = NULL;
  MPI_Alloc_mem(kMega, MPI_INFO_NULL, &memory);
  if (wanted[0] == 's') expect_mapping(memory, 1, "mapping of MPI_Alloc_mem's memory");
  mapping_while_there(memory, kMega, wanted[0] == 's');
  put_and_get(memory + 5, kMega - 5, "memory of MPI_Alloc_mem");
  private_to_children(memory, kMega, "memory of MPI_Alloc_mem");
  MPI_Free_mem(memory);
}

// The first window goes while the second is used, and the other way round.
static void overlap(int first_goes) {
  char* const base = malloc(kMega);
  memset(base, 0, kMega);
  MPI_Win a = window_over(base, kMega / 2 + 100);
  if (!is_unified(a)) {
    MPI_Win_free(&a);
    free(base);
    return;
  }
  MPI_Win b = window_over(base + kMega / 4, kMega / 2);
  for (int turn = 0; turn < 20; ++turn) {
    const int64_t value = turn * 1000 + rank;
    int64_t seen = 0;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right(), 0, a);
    MPI_Put(&value, 8, MPI_BYTE, right(), kMega / 4 + 4096 * turn + 8, 8, MPI_BYTE, a);
    MPI_Win_unlock(right(), a);
    MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, b);
    MPI_Get(&seen, 8, MPI_BYTE, right(), 4096 * turn + 8, 8, MPI_BYTE, b);
    MPI_Win_unlock(right(), b);
    expect(seen == value, "a put through one window, a get through the other");
  }
  MPI_Win_free(first_goes ? &a : &b);
  MPI_Win rest = first_goes ? b : a;
  const MPI_Aint start = first_goes ? 0 : kMega / 4;
  // At once: the target may still be inside MPI_Win_free.
  for (int turn = 0; turn < 40; ++turn) {
    const int64_t value = turn * 2000 + rank;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right(), 0, rest);
    MPI_Put(&value, 8, MPI_BYTE, right(), start + 4096 * turn + 16, 8, MPI_BYTE, rest);
    MPI_Win_unlock(right(), rest);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_free(&rest);
  for (int turn = 0; turn < 40; ++turn) {
    int64_t value;
    memcpy(&value, base + kMega / 4 + 4096 * turn + 16, 8);
    expect(value == turn * 2000 + left(), "a put after the free of an overlapping window");
  }
  private_to_children(base, kMega, "after overlapping windows");
  free(base);
}

static void attached_and_created(void) {
  char* const base = malloc(kMega);
  memset(base, 0, kMega);
  MPI_Win dynamic;
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic);
  MPI_Win_attach(dynamic, base, kMega);
  MPI_Win created = window_over(base, kMega);
  if (is_unified(created)) {
    MPI_Aint mine, theirs;
    const int64_t value = 42 + rank;
    MPI_Get_address(base + 5000, &mine);
    MPI_Sendrecv(&mine, 1, MPI_AINT, left(), 0, &theirs, 1, MPI_AINT, right(), 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Win_free(&created);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right(), 0, dynamic);
    MPI_Put(&value, 8, MPI_BYTE, right(), theirs, 8, MPI_BYTE, dynamic);
    MPI_Win_unlock(right(), dynamic);
    MPI_Barrier(MPI_COMM_WORLD);
    int64_t got;
    memcpy(&got, base + 5000, 8);
    expect(got == 42 + left(), "attached memory that was a window's");
  } else {
    MPI_Win_free(&created);
  }
  MPI_Win_detach(dynamic, base);
  MPI_Win_free(&dynamic);
  private_to_children(base, kMega, "after a dynamic window");
  free(base);
}

static size_t resident_bytes(void) {
  unsigned long all = 0, resident = 0;
  FILE* statm = fopen("/proc/self/statm", "r");
  if (statm == NULL || fscanf(statm, "%lu %lu", &all, &resident) != 2) resident = 0;
  if (statm != NULL) fclose(statm);
  return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static void sparse(size_t bytes) {
  MPI_Win probe = window_over(&static_word, 8);
  const int unified = is_unified(probe);
  MPI_Win_free(&probe);
  if (!unified) return;  // every page has private and public copies there
  char* const base =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return;
  const size_t before = resident_bytes();
  base[bytes / 2] = 5;
  MPI_Win win = window_over(base, bytes);
  const int64_t value = 77 + rank;
  int64_t seen = 0;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right(), 0, win);
  MPI_Put(&value, 8, MPI_BYTE, right(), (MPI_Aint)(bytes - 8), 8, MPI_BYTE, win);
  MPI_Win_flush(right(), win);
  MPI_Get(&seen, 8, MPI_BYTE, right(), (MPI_Aint)(bytes - 8), 8, MPI_BYTE, win);
  MPI_Win_unlock(right(), win);
  expect(seen == value, "sparse region");
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_free(&win);
  memcpy(&seen, base + bytes - 8, 8);
  expect(seen == 77 + left(), "sparse region afterwards");
  expect(base[bytes / 2] == 5, "sparse region's contents");
  expect(resident_bytes() < before + 32 * (size_t)kMega, "a sparse region is not occupied");
  munmap(base, bytes);
}

// A region over all addresses is no array of the program: none of its pages becomes another's.
// Before all other windows, whose pages may stay where they are.
static void all_addresses(void) {
  char* const mapped = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int64_t* const words[] = {&static_word, malloc(8), (int64_t*)(mapped + 4000)};
  const MPI_Aint all = (MPI_Aint)(~(size_t)0 >> 1);
  MPI_Win win;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int error = MPI_Win_create(MPI_BOTTOM, all, 1, info, MPI_COMM_WORLD, &win);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  for (int i = 0; i < 3 && error == MPI_SUCCESS; ++i) {
    MPI_Aint mine, theirs;
    const int64_t value = 77 + rank + 10 * i;
    int64_t seen = 0;
    *words[i] = 1;
    MPI_Get_address(words[i], &mine);
    MPI_Sendrecv(&mine, 1, MPI_AINT, left(), 0, &theirs, 1, MPI_AINT, right(), 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right(), 0, win);
    MPI_Put(&value, 8, MPI_BYTE, right(), theirs, 8, MPI_BYTE, win);
    MPI_Win_flush(right(), win);
    MPI_Get(&seen, 8, MPI_BYTE, right(), theirs, 8, MPI_BYTE, win);
    MPI_Win_unlock(right(), win);
    MPI_Barrier(MPI_COMM_WORLD);
    expect(seen == value, "a get by address");
    expect(*words[i] == 77 + left() + 10 * i, "a put by address");
    expect_mapping(words[i], 0, "mapping in a window over all addresses");
    private_to_children((char*)words[i], 8, "in a window over all addresses");
  }
  if (error == MPI_SUCCESS) MPI_Win_free(&win);
  // Where each byte has a private and a public copy there is no memory for both.
  expect(error == MPI_SUCCESS || wanted[0] == 'p', "a window over all addresses");
  free(words[1]);
  munmap(mapped, 8192);
}

static void holes_and_kinds(void) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char* const base =
      mmap(NULL, 16 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  // Shared memory of the program's own in the middle is left as it is.
  mmap(base + 5 * page, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED,
       -1, 0);
  put_and_get(base + 24, 16 * page - 48, "several mappings");
  count(base + 24, 16 * page - 48, "counts over several mappings");
  munmap(base, 16 * page);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc > 1) wanted = argv[1];

  allocated_by_mpi();
  all_addresses();
  char* memory = malloc(kMega);
  mapping_while_there(memory, kMega, 1);  // large blocks are of the heap, too
  mapping_while_there(static_array, kMega, 1);
  mapping_while_there((char*)&static_word, 8, 1);
  char on_stack[3 * 4096];
  mapping_while_there(on_stack, sizeof on_stack, 0);
  put_and_get(memory, kMega, "malloc");
  put_and_get(static_array, kMega, "static array");
  put_and_get(memory + 1, 8191, "odd start");
  put_and_get(memory + 4093 * (size_t)rank, 20011, "another start in each process");
  put_and_get((char*)&static_word, 8, "one word");
  put_and_get(page_above(memory), 8192, "whole pages");
  put_and_get(memory, 0, "no bytes");
  count_everywhere(memory);
  MPI_Info_create(&info);
  MPI_Info_set(info, "mpi_accumulate_granularity", "1");
  count_everywhere(memory);
  MPI_Info_free(&info);
  accumulate_across(memory, kMega, "accumulate on malloc");
  accumulate_across(memory + 4, 3 * 8192, "accumulate on odd addresses");
  private_to_children(memory, kMega, "malloc");
  private_to_children(static_array, kMega, "static array");
  free(memory);
  memory = calloc(1, kMega);
  int zero = 1;
  for (size_t i = 0; i < kMega; ++i) zero &= memory[i] == 0;
  expect(zero, "calloc after free");
  put_and_get(memory, kMega, "calloc");
  char* const moved = realloc(memory, 4 * (size_t)kMega);
  expect(moved[100] == pattern(left() + 100, 100), "realloc after the window");
  free(moved);
  char* mapped = malloc(kMapped);  // so large that malloc maps it
  mapping_while_there(mapped, kMega, 0);
  mapped[kMega / 2] = 9;
  mapped = realloc(mapped, 2 * (size_t)kMapped);
  expect(mapped[kMega / 2] == 9, "realloc of a mapping after the window");
  free(mapped);
  overlap(0);
  overlap(1);
  attached_and_created();
  holes_and_kinds();
  sparse((size_t)8 << 30);
  sparse((size_t)256 << 20);

  int all = 0;
  MPI_Reduce(&failures, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) printf("RESULT ok checks=%d\n", checks);
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
