// SPDX-License-Identifier: Apache-2.0
// Purpose: atomic operations between threads, as programs of C++ have them: counts, flags before
// data, locks and lists of the program's own, references that are counted. For programs that are
// compiled with tombolo-c++, or run under Pthreads.
//
//   atomics_check THREADS ROUNDS [counts]      all of it, or the counts alone
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace {

int threads = 3;
int rounds = 100;

template <class F>
void in_all(const F& part) {
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) all.emplace_back([&part, i] { part(i); });
  for (std::thread& each : all) each.join();
}

std::atomic<long> of_the_program{0};

void counts() {
  std::atomic<std::uint8_t> narrow{0};  // on this thread's stack
  std::uint8_t neighbours[2] = {1, 2};
  auto* const on_heap = new std::atomic<std::uint32_t>(7);
  std::atomic<double> real{0.5};
  std::atomic<int> most{-5}, least{5};
  long plain = 0;
  in_all([&](int self) {
    for (int i = 0; i < rounds; ++i) {
      of_the_program.fetch_add(1, std::memory_order_relaxed);
      narrow.fetch_add(3);
      *on_heap -= 2;
      for (double now = real.load(); !real.compare_exchange_weak(now, now + 0.25);) {
      }
      __atomic_fetch_add(&plain, 2, __ATOMIC_RELAXED);
    }
    __atomic_fetch_max(reinterpret_cast<int*>(&most), self, __ATOMIC_SEQ_CST);
    __atomic_fetch_min(reinterpret_cast<int*>(&least), -self, __ATOMIC_SEQ_CST);
  });
  std::printf("counts: %ld %d %u %g %d %d %d %d, plain %ld\n", of_the_program.load(), +narrow,
              on_heap->load(), real.load(), most.load(), least.load(), neighbours[0], neighbours[1],
              plain);
  delete on_heap;
}

// Each thread waits for the one before it, and for all that it has stored.
void flags() {
  struct Box {
    std::vector<int> data = std::vector<int>(3000);
    std::atomic<int> full{0};
  };
  std::vector<Box> boxes(static_cast<std::size_t>(threads) + 1);
  in_all([&](int self) {
    Box& mine = boxes[static_cast<std::size_t>(self)];
    Box& next = boxes[static_cast<std::size_t>(self) + 1];
    for (int i = 1; i <= rounds / 10 + 1; ++i) {
      while (self > 0 && mine.full.load(std::memory_order_acquire) < i) std::this_thread::yield();
      for (std::size_t at = 0; at < next.data.size(); ++at)
        next.data[at] += self == 0 ? i : mine.data[at] / i;
      next.full.store(i, std::memory_order_release);
      // Its reader is done before the box is filled again.
      while (self + 1 < threads && boxes[static_cast<std::size_t>(threads)].full.load() < i)
        std::this_thread::yield();
    }
  });
  long sum = 0;
  for (const Box& box : boxes)
    for (const int each : box.data) sum += each;
  std::printf("flags: %ld\n", sum);
}

// A lock of the program's own, in the span of a mutex now and then.
void locks() {
  std::atomic_flag taken = ATOMIC_FLAG_INIT;
  std::mutex mutex;
  long under_own = 0, under_both = 0;
  in_all([&](int self) {
    for (int i = 0; i < rounds; ++i) {
      std::unique_lock lock(mutex, std::defer_lock);
      if ((i + self) % 3 == 0) lock.lock();
      while (taken.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
      ++under_own;
      taken.clear(std::memory_order_release);
      if (lock.owns_lock()) ++under_both;
    }
  });
  std::printf("locks: %ld %s\n", under_own, under_both > 0 ? "both" : "none");
}

struct Node {
  long value;
  Node* next;
};

void lists() {
  std::atomic<Node*> head{nullptr};
  in_all([&](int self) {
    for (int i = 0; i < rounds; ++i) {
      Node* const node = new Node{self * 1000L + i, head.load(std::memory_order_relaxed)};
      while (!head.compare_exchange_weak(node->next, node, std::memory_order_release,
                                         std::memory_order_relaxed)) {
      }
    }
  });
  long sum = 0, nodes = 0;
  for (Node* node = head.exchange(nullptr); node != nullptr; ++nodes) {
    sum += node->value;
    const Node* const done = std::exchange(node, node->next);
    delete done;
  }
  std::printf("lists: %ld nodes, %ld\n", nodes, sum);
}

std::atomic<int> destroyed{0};
struct Shared {
  explicit Shared(int n) : number(n) {}
  ~Shared() { destroyed.fetch_add(number); }
  int number;
};

void references() {
  long sum = 0;
  for (int round = 0; round < 5; ++round) {
    auto shared = std::make_shared<Shared>(round + 1);
    std::atomic<long> seen{0};
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i)
      all.emplace_back([copy = shared, &seen] {
        for (int k = 0; k < rounds; ++k) {
          const std::shared_ptr<Shared> other = copy;
          seen += other->number;
        }
      });
    shared.reset();
    for (std::thread& each : all) each.join();
    sum += seen;
  }
  std::printf("references: %ld, destroyed %d\n", sum, destroyed.load());
}

// In turns: a plain list in the order of threads.
void turns() {
  std::atomic<int> turn{0};
  std::vector<int> order;
  in_all([&](int self) {
    for (int i = 0; i < 5; ++i) {
      while (turn.load() % threads != self) std::this_thread::yield();
      order.push_back(self);
      ++turn;
    }
  });
  std::printf("turns:");
  for (const int each : order) std::printf(" %d", each);
  std::printf("\n");
}

struct Slow {
  Slow() {
    made.fetch_add(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<long>(i);
  }
  static inline std::atomic<int> made{0};
  std::vector<long> numbers = std::vector<long>(2000);
};

const Slow& one_of_all() {
  static const Slow slow;
  return slow;
}

void statics() {
  std::atomic<long> sum{0};
  in_all([&](int) {
    long own = 0;
    for (const long each : one_of_all().numbers) own += each;
    sum += own;
  });
  std::printf("statics: made %d, %ld\n", Slow::made.load(), sum.load());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) threads = std::atoi(argv[1]);
  if (argc > 2) rounds = std::atoi(argv[2]);
  counts();
  if (argc > 3) return 0;
  flags();
  locks();
  lists();
  references();
  turns();
  statics();
  return 0;
}
