// SPDX-License-Identifier: Apache-2.0
#include "experiments/ft/ft_solver.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tombolo::experiments {
namespace {

using machine::Home;
using simulator::Time;

constexpr std::size_t column_count = 8;
constexpr std::size_t row_count = 4;
static_assert(column_count * row_count == ft_processes);

// Operations for each element, besides transforms: two random numbers of two multiplications of
// split factors each; the exponential function and its argument; two multiplications.
constexpr std::int64_t initial_operations = 40;
constexpr std::int64_t damping_operations = 40;
constexpr std::int64_t evolve_operations = 2;

// One of the dimensions of the process grid, as a process sees it.
struct Group {
  std::vector<Home> members;
  std::size_t self = 0;

  std::size_t size() const { return members.size(); }
  std::vector<Home> peers() const {
    std::vector<Home> others = members;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(self));
    return others;
  }
};

// A transform whose input is cut along a and b, and whole along c:
//   [na / second.size()][nb / first.size()][nc]
struct Shape {
  std::size_t na, nb, nc;
  const Group& first;   // exchanges b against c
  const Group& second;  // exchanges a against b
  bool inverse;

  std::size_t planes() const { return na / second.size(); }
  std::size_t rows() const { return nb / first.size(); }
  std::size_t columns() const { return nc / first.size(); }  // after the first exchange
  std::size_t width() const { return nb / second.size(); }   // after the second
};

class Solver {
 public:
  Solver(scc::Cpu& cpu, FtTransport& transport, const FtClass& problem, Home rank)
      : cpu_(cpu),
        transport_(transport),
        p_(problem),
        rank_(rank),
        transform_(std::max({problem.nx, problem.ny, problem.nz})) {
    for (Home k = 0; k < column_count; ++k)
      row_.members.push_back(rank / column_count * column_count + k);
    for (Home k = 0; k < row_count; ++k)
      column_.members.push_back(k * column_count + rank % column_count);
    row_.self = rank % column_count;
    column_.self = rank / column_count;
    const std::size_t local = p_.points() / ft_processes;
    frequencies_ = array<Complex>(local);
    damping_ = array<double>(local);
    kept_first_ = array<Complex>(local / row_count);
    kept_second_ = array<Complex>(local / row_count);
    const std::size_t plane = largest_plane();
    work_ = array<Complex>(plane);
    stage_ = array<Complex>(local);
    run_.resize(std::max({p_.nx, p_.ny, p_.nz}));
  }

  void solve(int iterations, FtResult& result) {
    const Time start = cpu_.now();
    if (rank_ == 0) progress_ = result.progress;
    transforms_ = 1 + iterations;
    prepare_damping();
    to_frequency();
    result.before = plus(result.before, times_);
    result.seconds_before = std::max(result.seconds_before, seconds(cpu_.now() - start));
    times_ = {};
    messages_ = message_bytes_ = 0;
    for (int i = 0; i < iterations; ++i) {
      sum_ = {};
      to_space();
      result.partial[static_cast<std::size_t>(i)][rank_] = sum_;
    }
    result.iterations = plus(result.iterations, times_);
    result.messages += messages_;
    result.message_bytes += message_bytes_;
    result.seconds = std::max(result.seconds, seconds(cpu_.now() - start));
  }

 private:
  static double seconds(simulator::Duration d) { return d.in_nanoseconds() * 1e-9; }
  static FtTimes plus(const FtTimes& a, const FtTimes& b) {
    return {a.fft + b.fft,
            a.transfer + b.transfer,
            a.synchronization + b.synchronization,
            a.transpose + b.transpose,
            a.bookkeeping + b.bookkeeping,
            a.barrier + b.barrier};
  }

  template <class T>
  T* array(std::size_t n) {
    return new (transport_.allocate(n * sizeof(T))) T[n];
  }

  std::size_t largest_plane() const {
    const std::size_t to_frequency = std::max(
        {p_.ny / column_count * p_.nx, p_.nx / column_count * p_.ny, p_.ny / row_count * p_.nz});
    const std::size_t to_space = std::max(
        {p_.ny / row_count * p_.nz, p_.nz / row_count * p_.ny, p_.ny / column_count * p_.nx});
    return std::max(to_frequency, to_space);
  }

  // ---- Time -------------------------------------------------------------------------------------

  template <class Body>
  void timed(double& part, Body&& body) {
    const Time begin = cpu_.now();
    body();
    part += seconds(cpu_.now() - begin);
  }
  void operations(std::size_t n) {
    cpu_.compute(cpu_.timing().flop * static_cast<std::int64_t>(n));
  }
  // A store for each double.
  void touch_doubles(const void* to, std::size_t bytes) {
    const auto* at = static_cast<const std::byte*>(to);
    for (std::size_t done = 0; done < bytes; done += sizeof(double))
      transport_.touch_write(at + done, sizeof(double));
  }
  template <class T>
  void reads(const T* from, std::size_t n) {
    transport_.touch_read(from, n * sizeof(T));
  }
  template <class T>
  void writes(const T* to, std::size_t n) {
    touch_doubles(to, n * sizeof(T));
  }

  // ---- One transform ----------------------------------------------------------------------------

  // Rows of `work_`, one after the other. store(row number, row) says where the result goes.
  template <class Store>
  void transform_rows(std::size_t rows, std::size_t n, bool inverse, Store&& store) {
    const auto levels = static_cast<std::size_t>(std::bit_width(n) - 1);
    timed(times_.fft, [&] {
      for (std::size_t r = 0; r < rows; ++r) {
        Complex* const row = work_ + r * n;
        reads(row, n);
        transform_.run(row, n, inverse);
        operations(5 * n * levels);
        store(r, row);
      }
    });
  }

  // Transforms the rows of a plane and sends each member of the group its columns: a block, which
  // is [row][column], to the place(plane, sender) of its blocks. The own block goes to
  // `kept`.
  template <class Place>
  void send_plane(std::size_t plane, std::size_t rows, std::size_t n, const Group& group,
                  bool inverse, Complex* kept, Place&& place) {
    const std::size_t part = n / group.size();
    const std::size_t block = rows * part;
    Complex* const stage = stage_ + plane * rows * n;
    const auto block_of = [&](std::size_t t) { return t == group.self ? kept : stage + t * block; };
    transform_rows(rows, n, inverse, [&](std::size_t r, const Complex* row) {
      for (std::size_t t = 0; t < group.size(); ++t) {
        Complex* const to = block_of(t) + r * part;
        std::copy(row + t * part, row + (t + 1) * part, to);
        writes(to, part);
      }
    });
    timed(times_.transfer, [&] {
      // Each begins with the next member, so that not all send to the first at once.
      for (std::size_t k = 1; k < group.size(); ++k) {
        const std::size_t t = (group.self + k) % group.size();
        transport_.send(group.members[t], place(plane, group.self) * sizeof(Complex), block_of(t),
                        block * sizeof(Complex));
        ++messages_;
        message_bytes_ += block * sizeof(Complex);
      }
    });
  }

  // Blocks of as many elements will come, one of each plane from each peer.
  template <class Place>
  void open(const Group& group, std::size_t planes, std::size_t block, Place&& place) {
    std::vector<FtArrival> arrivals;
    for (std::size_t a = 0; a < planes; ++a)
      for (std::size_t k = 1; k < group.size(); ++k) {
        const std::size_t from = (group.self + group.size() - k) % group.size();
        arrivals.push_back(
            {group.members[from], place(a, from) * sizeof(Complex), block * sizeof(Complex)});
      }
    timed(times_.synchronization, [&] { transport_.open(group.peers(), arrivals); });
  }
  void close() {
    timed(times_.synchronization, [&] { transport_.close(); });
  }

  // A row of a block that came, or was kept, becomes a column of `work_`, whose rows are of `n`.
  void transpose_row(const Complex* kept, std::uint64_t came, std::size_t length, std::size_t to,
                     std::size_t n) {
    if (kept != nullptr) {
      reads(kept, length);
      std::copy(kept, kept + length, run_.begin());
    } else {
      transport_.read(came * sizeof(Complex), run_.data(), length * sizeof(Complex));
    }
    for (std::size_t i = 0; i < length; ++i) {
      work_[i * n + to] = run_[i];
      writes(work_ + i * n + to, 1);
    }
  }

  // load(plane) brings a plane of the input into `work_`; store(plane, row number, row) takes the
  // result's.
  template <class Load, class Store>
  void transform(const Shape& s, Load&& load, Store&& store) {
    const std::uint64_t second_area = p_.points() / ft_processes;
    // At the receiver: [plane][sender] blocks, then [plane of all senders] blocks.
    const std::size_t first_block = s.rows() * s.columns();
    const auto first_place = [&](std::size_t a, std::size_t sender) {
      return (a * s.first.size() + sender) * first_block;
    };
    const std::size_t second_block = s.columns() * s.width();
    const auto second_place = [&](std::size_t a, std::size_t sender) {
      return second_area + (sender * s.planes() + a) * second_block;
    };
    open(s.first, s.planes(), first_block, first_place);
    for (std::size_t a = 0; a < s.planes(); ++a) {
      load(a);
      send_plane(a, s.rows(), s.nc, s.first, s.inverse, kept_first_ + a * first_block, first_place);
      tell(0, a, s.planes());
    }
    close();
    open(s.second, s.planes(), second_block, second_place);
    for (std::size_t a = 0; a < s.planes(); ++a) {
      timed(times_.transpose, [&] { transpose_first(s, a); });
      send_plane(a, s.columns(), s.nb, s.second, s.inverse, kept_second_ + a * second_block,
                 second_place);
      tell(1, a, s.planes());
    }
    close();
    for (std::size_t c = 0; c < s.columns(); ++c) {
      timed(times_.transpose, [&] { transpose_second(s, c, second_area); });
      transform_rows(s.width(), s.na, s.inverse,
                     [&](std::size_t r, const Complex* row) { store(c, r, row); });
      tell(2, c, s.columns());
    }
    ++transformed_;
    timed(times_.barrier, [&] { transport_.barrier(); });
  }

  // One of `all` planes of a third of the transform is done.
  void tell(int third, std::size_t one, std::size_t all) {
    if (progress_ == nullptr) return;
    const double planes = static_cast<double>(one + 1) / static_cast<double>(all);
    progress_->at((transformed_ + (third + planes) / 3) / transforms_);
  }

  void transpose_first(const Shape& s, std::size_t a) {
    const std::size_t block = s.rows() * s.columns();
    for (std::size_t from = 0; from < s.first.size(); ++from)
      for (std::size_t r = 0; r < s.rows(); ++r) {
        const std::size_t in_block = r * s.columns();
        const Complex* kept = from == s.first.self ? kept_first_ + a * block + in_block : nullptr;
        transpose_row(kept, (a * s.first.size() + from) * block + in_block, s.columns(),
                      from * s.rows() + r, s.nb);
      }
  }

  void transpose_second(const Shape& s, std::size_t c, std::uint64_t area) {
    const std::size_t block = s.columns() * s.width();
    for (std::size_t a = 0; a < s.na; ++a) {
      const std::size_t in_block = c * s.width();
      const Complex* kept = a / s.planes() == s.second.self
                                ? kept_second_ + a % s.planes() * block + in_block
                                : nullptr;
      transpose_row(kept, area + a * block + in_block, s.width(), a, s.na);
    }
  }

  // ---- The benchmark ----------------------------------------------------------------------------

  // Where a process's part begins in a dimension cut among the members of a group.
  static std::size_t first_of(std::size_t n, const Group& group) {
    return n / group.size() * group.self;
  }

  // Of [x/8][y/4][z].
  template <class Visit>
  void each_frequency(Visit&& visit) {
    std::size_t at = 0;
    for (std::size_t x = 0; x < p_.nx / column_count; ++x)
      for (std::size_t y = 0; y < p_.ny / row_count; ++y)
        for (std::size_t z = 0; z < p_.nz; ++z)
          visit(at++, first_of(p_.nx, row_) + x, first_of(p_.ny, column_) + y, z);
  }

  void prepare_damping() {
    timed(times_.bookkeeping, [&] {
      const std::size_t local = p_.points() / ft_processes;
      each_frequency([&](std::size_t at, std::size_t x, std::size_t y, std::size_t z) {
        damping_[at] = ft_damping(p_, x, y, z);
      });
      operations(damping_operations * local);
      writes(damping_, local);
    });
  }

  void to_frequency() {
    const Shape shape{p_.nz, p_.ny, p_.nx, row_, column_, false};
    transform(
        shape, [&](std::size_t z) { timed(times_.bookkeeping, [&] { initial_plane(shape, z); }); },
        [&](std::size_t x, std::size_t y, const Complex* row) {
          Complex* const to = frequencies_ + (x * shape.width() + y) * p_.nz;
          std::copy(row, row + p_.nz, to);
          writes(to, p_.nz);
        });
  }

  void initial_plane(const Shape& shape, std::size_t z) {
    const std::size_t n = shape.rows() * p_.nx;
    const std::size_t y = first_of(p_.ny, row_);
    ft_initial(((first_of(p_.nz, column_) + z) * p_.ny + y) * p_.nx, n, work_);
    operations(initial_operations * n);
    writes(work_, n);
  }

  void to_space() {
    const Shape shape{p_.nx, p_.ny, p_.nz, column_, row_, true};
    transform(
        shape, [&](std::size_t x) { timed(times_.bookkeeping, [&] { evolve_plane(shape, x); }); },
        [&](std::size_t z, std::size_t y, const Complex* row) {
          writes(row, p_.nx);
          add_to_checksum(first_of(p_.nz, column_) + z, first_of(p_.ny, row_) + y, row);
        });
  }

  void evolve_plane(const Shape& shape, std::size_t x) {
    const std::size_t n = shape.rows() * p_.nz;
    Complex* const u = frequencies_ + x * n;
    const double* const factor = damping_ + x * n;
    constexpr std::size_t step = 4;  // elements of two lines
    for (std::size_t i = 0; i < n; i += step) {
      reads(u + i, step);
      reads(factor + i, step);
      for (std::size_t k = i; k < i + step; ++k)
        work_[k] = u[k] = {u[k].re * factor[k], u[k].im * factor[k]};
      operations(evolve_operations * step);
      writes(u + i, step);
      writes(work_ + i, step);
    }
  }

  void add_to_checksum(std::size_t z, std::size_t y, const Complex* row) {
    for (std::size_t j = 1; j <= ft_checksum_elements; ++j) {
      const FtElement e = ft_checksum_element(p_, j);
      if (e.z != z || e.y != y) continue;
      sum_ = {sum_.re + row[e.x].re, sum_.im + row[e.x].im};
    }
  }

  scc::Cpu& cpu_;
  FtTransport& transport_;
  const FtClass& p_;
  Home rank_;
  Group row_;
  Group column_;
  FtTransform transform_;
  Complex* frequencies_ = nullptr;
  double* damping_ = nullptr;
  Complex* kept_first_ = nullptr;  // blocks of the exchanges that do not travel
  Complex* kept_second_ = nullptr;
  Complex* work_ = nullptr;
  Complex* stage_ = nullptr;
  std::vector<Complex> run_;
  Complex sum_;
  std::uint64_t messages_ = 0;
  std::uint64_t message_bytes_ = 0;
  FtTimes times_;
  Progress* progress_ = nullptr;
  int transforms_ = 1;
  int transformed_ = 0;
};

}  // namespace

std::uint64_t ft_bytes_received(const FtClass& problem) {
  return 2 * problem.points() / ft_processes * sizeof(Complex);
}

void ft_solve(scc::Cpu& cpu, FtTransport& transport, const FtClass& problem, int iterations,
              machine::Home rank, FtResult& result) {
  result.partial.resize(static_cast<std::size_t>(iterations));
  for (std::vector<Complex>& sums : result.partial) sums.resize(ft_processes);
  transport.barrier();
  Solver(cpu, transport, problem, rank).solve(iterations, result);
}

void ft_finish(const FtClass& problem, FtResult& result) {
  const auto points = static_cast<double>(problem.points());
  result.checksums.clear();
  for (const std::vector<Complex>& sums : result.partial) {
    Complex total;
    for (const Complex& c : sums) total = {total.re + c.re, total.im + c.im};
    result.checksums.push_back({total.re / points, total.im / points});
  }
}

}  // namespace tombolo::experiments
