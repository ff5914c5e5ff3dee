// SPDX-License-Identifier: Apache-2.0
// Purpose: threads of C++: std::thread, mutexes, conditions, futures, atomic variables and waits on
// them, call_once, static variables of functions, exceptions, thread_local objects and
// shared pointers.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

std::atomic<int> destroyed{0};
std::mutex mutex;

struct Own {
  std::string text = "fresh";
  ~Own() { ++destroyed; }
};
thread_local Own own;

const std::string& made_once() {
  static std::atomic<int> made{0};
  static const std::string text = "made " + std::to_string(++made);
  return text;
}

struct Base {
  virtual ~Base() = default;
  virtual int value() const = 0;
};
struct Derived : Base {
  explicit Derived(int n) : number(n) {}
  int value() const override { return number; }
  int number;
};

void several(int threads) {
  std::map<int, std::string> texts;
  std::vector<std::thread> all;
  std::shared_ptr<std::vector<int>> shared = std::make_shared<std::vector<int>>(1000, 1);
  std::atomic<long> sum{0};
  for (int i = 0; i < threads; ++i)
    all.emplace_back([&, i] {
      if (own.text != "fresh") std::cout << "thread_local of another thread\n";
      own.text = "used";
      for (int k = 0; k < 1000; ++k) {
        const auto copy = shared;
        sum += (*copy)[static_cast<std::size_t>(k)];
      }
      const std::lock_guard lock(mutex);
      texts[i] = made_once() + " for " + std::to_string(i);
    });
  for (std::thread& thread : all) thread.join();
  for (const auto& [number, text] : texts) std::cout << number << ": " << text << '\n';
  std::cout << sum << ", owners " << shared.use_count() << ", destroyed " << destroyed << '\n';
}

void futures() {
  auto value = std::async(std::launch::async, [] { return std::string(100, 'x'); });
  std::cout << value.get().size() << '\n';
  auto thrown = std::async(std::launch::async, []() -> int { throw std::runtime_error("thrown"); });
  try {
    thrown.get();
  } catch (const std::runtime_error& error) {
    std::cout << error.what() << '\n';
  }
  std::promise<std::unique_ptr<Base>> promise;
  std::thread thread([&] { promise.set_value(std::make_unique<Derived>(42)); });
  std::cout << promise.get_future().get()->value() << '\n';
  thread.join();
}

void waits() {
  std::atomic<int> word{0};
  std::thread thread([&] {
    word.wait(0);
    word = 2;
    word.notify_one();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  word = 1;
  word.notify_one();
  word.wait(1);
  thread.join();
  std::cout << "word " << word << '\n';
  std::counting_semaphore<4> semaphore(0);
  std::thread poster([&] { semaphore.release(2); });
  semaphore.acquire();
  semaphore.acquire();
  poster.join();
  std::condition_variable_any any;
  std::shared_mutex shared;
  bool ready = false;
  std::thread setter([&] {
    const std::unique_lock lock(shared);
    ready = true;
    any.notify_all();
  });
  std::shared_lock lock(shared);
  while (!any.wait_for(lock, std::chrono::seconds(10), [&] { return ready; })) {
  }
  setter.join();
  std::cout << "ready\n";
}

void once() {
  std::once_flag flag;
  int called = 0;
  std::vector<std::thread> all;
  for (int i = 0; i < 4; ++i)
    all.emplace_back([&] {
      try {
        std::call_once(flag, [&] {
          if (++called == 1) throw called;
        });
      } catch (int) {
      }
    });
  for (std::thread& thread : all) thread.join();
  std::cout << "called " << called << '\n';
}

}  // namespace

int main() {
  std::cout << own.text << '\n';
  several(4);
  futures();
  waits();
  once();
  return 0;
}
