// SPDX-License-Identifier: Apache-2.0
// Purpose: a program of several processes that create families in each other. The command
// `tombolo svp run -n N PROGRAM` starts them, or the launcher of an MPI, on several hosts. Process
// 0 runs the program, the others serve.
//
//   int main() {
//     return svp::run([](svp::Job& job) {
//       auto family = svp::create(job.place(1), {.limit = n}, svp::remote<&scale>, 2.0, from, to);
//       ...
//       return 0;
//     });
//   }
//
// A program that is started alone has one process, whose places are local. Families in any process
// have the same job: Job::here().
//
// Invariants: JOB1 all processes take the settings of process 0 where they have to be alike.
//             JOB2 shared memory is at one address in all processes of a host.
//             JOB3 the program ends, and all processes with it, when its function at process 0
//                  returns. A process that ends before is known to the others within some
//                  milliseconds: its places refuse families.
// Thread safety: yes.
#pragma once

#include <functional>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "base/status.h"
#include "svp/places/place.h"
#include "svp/remote/distributed.h"

namespace tombolo::svp {

class Job {
 public:
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job();

  // That of this process, in run().
  static Job& here();

  unsigned processes() const;
  unsigned rank() const;

  // The default place of a process, which may be this one; its workers run the family. How arrays
  // travel there: as TOMBOLO_SVP_TRANSPORT says, or `transport`. Stops the program if there is no
  // such process.
  Place place(unsigned process) const;
  Place place(unsigned process, Transport transport) const;
  // Of each process, one where one family runs at a time.
  Place exclusive(unsigned process) const;
  // The default places of all processes, by rank.
  std::vector<Place> places() const;

  // Shared memory, of this process's part (TOMBOLO_SVP_MEMORY). Throws std::bad_alloc.
  void* allocate(std::size_t bytes);
  void free(void* at);

 private:
  friend int run(const std::function<int(Job&)>& program);
  struct State;
  explicit Job(std::unique_ptr<State> state);
  static Status start(std::unique_ptr<Job>& out);
  void look();
  int run_program(const std::function<int(Job&)>& program);
  void serve();
  void leave();

  std::unique_ptr<State> state_;
};

// In main(): at process 0 calls the program, as a thread of a family, and returns its result, or
// the value of a break_family() in that thread; throws the program's exception, after the others
// were told to end. At the others serves until the program has ended, and returns 0. An error at
// the start is written to stderr, and returns 1.
int run(const std::function<int(Job&)>& program);

// An array in shared memory, which goes to other processes by its address. Elements begin as zero
// bytes. To be freed where it was made.
template <Portable T>
class SharedArray {
 public:
  // Throws std::bad_alloc.
  explicit SharedArray(std::size_t size)
      : elements_(static_cast<T*>(Job::here().allocate(size * sizeof(T))), size) {
    std::uninitialized_value_construct(elements_.begin(), elements_.end());
  }
  SharedArray(SharedArray&& other) noexcept : elements_(std::exchange(other.elements_, {})) {}
  SharedArray& operator=(SharedArray&& other) noexcept {
    std::swap(elements_, other.elements_);
    return *this;
  }
  ~SharedArray() {
    if (elements_.data() != nullptr) Job::here().free(elements_.data());
  }

  T* data() const { return elements_.data(); }
  std::size_t size() const { return elements_.size(); }
  T* begin() const { return data(); }
  T* end() const { return data() + size(); }
  T& operator[](std::size_t i) const { return elements_[i]; }

 private:
  std::span<T> elements_;
};

}  // namespace tombolo::svp
