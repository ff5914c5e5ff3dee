// SPDX-License-Identifier: Apache-2.0
// Purpose: n-queens: all solutions, a task for each queen that is placed, no cut-off.
// Thread safety: -
#include <bit>
#include <cstdint>

#include "svp/bench/contest.h"

#ifdef TOMBOLO_HAS_TBB
#include <tbb/task_group.h>
#endif

namespace tombolo::svp::bench {
namespace {

constexpr int most = 16;

// The columns and diagonals that queens attack in the next row.
struct Board {
  std::uint32_t all;
  std::uint32_t columns = 0;
  std::uint32_t left = 0;
  std::uint32_t right = 0;

  std::uint32_t free() const { return all & ~(columns | left | right); }
  bool full() const { return columns == all; }
  Board with(std::uint32_t queen) const {
    return {all, columns | queen, ((left | queen) << 1) & all, (right | queen) >> 1};
  }
  // The queens that may be placed. How many.
  int queens(std::uint32_t (&out)[most]) const {
    int n = 0;
    for (std::uint32_t left_over = free(); left_over != 0; left_over &= left_over - 1)
      out[n++] = left_over & (0 - left_over);
    return n;
  }
};

long plain(const Board& board, double& placed) {
  if (board.full()) return 1;
  std::uint32_t queens[most];
  const int n = board.queens(queens);
  placed += n;
  long solutions = 0;
  for (int i = 0; i < n; ++i) solutions += plain(board.with(queens[i]), placed);
  return solutions;
}

long sum_of(const long* parts, int n) {
  long sum = 0;
  for (int i = 0; i < n; ++i) sum += parts[i];
  return sum;
}

long by_families(const Board& board) {
  if (board.full()) return 1;
  std::uint32_t queens[most];
  long solutions[most];
  const int n = board.queens(queens);
  auto family =
      create({.limit = n}, [&](Index i) { solutions[i] = by_families(board.with(queens[i])); });
  family.sync();
  return sum_of(solutions, n);
}

#ifdef TOMBOLO_HAS_TBB
long by_tbb(const Board& board) {
  if (board.full()) return 1;
  std::uint32_t queens[most];
  long solutions[most];
  const int n = board.queens(queens);
  tbb::task_group group;
  for (int i = 0; i < n; ++i) group.run([&, i] { solutions[i] = by_tbb(board.with(queens[i])); });
  group.wait();
  return sum_of(solutions, n);
}
#endif

#ifdef _OPENMP
long by_openmp(const Board& board) {
  if (board.full()) return 1;
  std::uint32_t queens[most];
  long solutions[most];
  const int n = board.queens(queens);
  for (int i = 0; i < n; ++i) {
#pragma omp task shared(solutions, queens, board) firstprivate(i)
    solutions[i] = by_openmp(board.with(queens[i]));
  }
#pragma omp taskwait
  return sum_of(solutions, n);
}
#endif

}  // namespace

void queens(const Settings& settings) {
  const Board board{(1U << (settings.quick ? 8 : 11)) - 1};
  double placed = 0;
  const long solutions = plain(board, placed);
  Contest contest(settings, "queens", placed);
  contest.add_inside("families", [&] {
    in_families(settings, [&] { expect(by_families(board) == solutions, "queens"); });
  });
#ifdef TOMBOLO_HAS_TBB
  contest.add("oneTBB",
              [&] { in_tbb(settings, [&] { expect(by_tbb(board) == solutions, "queens"); }); });
#endif
#ifdef _OPENMP
  contest.add("OpenMP", [&] {
    in_openmp(settings, [&] { expect(by_openmp(board) == solutions, "queens"); });
  });
#endif
  contest.measure();
}

}  // namespace tombolo::svp::bench
