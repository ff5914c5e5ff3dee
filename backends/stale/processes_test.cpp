// SPDX-License-Identifier: Apache-2.0
// Purpose: the machine `stale` between processes, and with regions far larger than their used part:
// the ways in which MPI windows use it.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iterator>
#include <string>
#include <thread>

#include "backends/stale/settler.h"
#include "backends/stale/stale.h"
#include "host/descriptor.h"
#include "host/processes/shared_fork.h"
#include "host/processes/start_thread.h"
#include "host/processes/testing/few_threads.h"
#include "host/processes/testing/slow_library.h"

namespace tombolo::stale {
namespace {

using machine::Home;

// Memory shared with the processes that are forked off later.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes) : bytes_(bytes) {
    at_ = static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    TOMBOLO_CHECK(at_ != MAP_FAILED, "test: no {} shared bytes", bytes);
  }
  ~SharedMemory() { munmap(at_, bytes_); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  std::byte* at() const { return at_; }

 private:
  std::byte* at_;
  std::size_t bytes_;
};

struct Job {
  static constexpr std::size_t sync_bytes = 4096;
  Job(Home n, std::size_t bytes)
      : cores(n),
        data_bytes(bytes),
        sync(n * sync_bytes),
        data(n * bytes),
        shared(Core::shared_bytes(std::vector<machine::DataRegion>(n, {.bytes = bytes}))) {}

  // As an MPI process would: images of its own, made after the fork.
  Attachment attach(Home self, std::uint64_t seed, std::uint64_t evictions) const {
    Attachment at;
    at.self = self;
    at.cores = cores;
    at.sync = sync.at();
    at.sync_bytes_per_home = sync_bytes;
    for (Home home = 0; home < cores; ++home)
      at.data.push_back({.memory = data.at() + home * data_bytes, .bytes = data_bytes});
    at.shared = shared.at();
    at.waiting = machine::WaitPolicy::for_host(cores, 2);
    at.seed = seed;
    at.evictions = evictions;
    return at;
  }

  Home cores;
  std::size_t data_bytes;
  SharedMemory sync;
  SharedMemory data;
  SharedMemory shared;
};

// Runs body(self) in a process for each core; true if all return true.
template <class Body>
bool in_processes(
    Home cores, Body&& body, pid_t (*start)() = [] { return fork(); }) {
  std::vector<pid_t> children;
  for (Home self = 0; self < cores; ++self) {
    const pid_t child = start();
    if (child == 0) {
      alarm(100);
      const bool good = body(self);
      std::fflush(nullptr);
      _exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  bool good = true;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    good = good && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  return good;
}

// Each core puts into the others' memory and finds in its own the bytes that the others put there.
bool exchange(const Job& job, Home self, std::uint64_t seed, std::uint64_t evictions) {
  Core core(job.attach(self, seed, evictions));
  const auto counter = [&](Home home) {
    return core.word({home, Core::reserved_sync_bytes(job.cores)});
  };
  const auto everybody_told = [&](std::uint64_t times) {
    for (Home peer = 0; peer < job.cores; ++peer) {
      core.fetch_add(counter(peer), 1);
      core.notify(peer);
    }
    return core.wait_until(counter(self), [&](std::uint64_t v) { return v >= times * job.cores; })
        .ok();
  };
  bool good = everybody_told(1);  // all cores exist
  auto* own = reinterpret_cast<std::uint64_t*>(core.view({self, 0}));
  for (std::uint64_t round = 1; round <= 50; ++round) {
    for (Home peer = 0; peer < job.cores; ++peer) {
      const std::uint64_t value = round * 1000 + self * 10 + peer;
      good = good && core.write_through({peer, self * 8u}, &value, 8).ok();
    }
    core.drain();
    good = everybody_told(2 * round) && good;
    core.refresh({self, 0}, job.data_bytes);
    for (Home peer = 0; peer < job.cores; ++peer)
      good = good && own[peer] == round * 1000 + peer * 10 + self;
    good = everybody_told(2 * round + 1) && good;  // no core puts before all have looked
  }
  core.close();
  if (!core.findings().clean()) std::fputs(core.findings().report().c_str(), stderr);
  return good && core.findings().clean();
}

TEST(StaleProcesses, PutsReachEverybody) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Job job(3, 4096);
    EXPECT_TRUE(in_processes(3, [&](Home self) { return exchange(job, self, seed, 7); }))
        << "seed " << seed;
  }
}

TEST(StaleProcesses, ALostUpdateNamesTheOtherProcess) {
  const Job job(2, 4096);
  const auto body = [&](Home self) {
    Core core(job.attach(self, 1, 0));
    const auto step = core.word({0, Core::reserved_sync_bytes(2)});
    const auto reached = [&](std::uint64_t wanted) {
      while (core.load(step) != wanted) (void)core.pause(1000);
    };
    core.set_site(100 + self);
    std::uint64_t value = 0;
    if (self == 1) {
      reached(1);
      value = 7;
      (void)core.write_through({0, 8}, &value, 8);
      core.drain();
      core.fetch_add(step, 1);
      return true;
    }
    (void)core.read({0, 0}, &value, 8);
    core.fetch_add(step, 1);
    reached(2);
    *core.view({0, 0}) = std::byte{1};
    core.publish({0, 0}, 8);
    const auto& details = core.findings().details();
    return details.size() == 1 && details[0].victim == Writer{1, 101} &&
           details[0].culprit == Writer{0, 100};
  };
  EXPECT_TRUE(in_processes(2, body));
}

// A store that a process defers and then computes on is seen by the others all the same.
TEST(StaleProcesses, AComputingProcessKeepsNoStore) {
  const Job job(2, 4096);
  SharedMemory finished(4096);
  auto& end = *reinterpret_cast<std::atomic<std::uint32_t>*>(finished.at());
  const auto body = [&](Home self) {
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      Core core(job.attach(self, seed, 0));
      const auto word = core.word({1, Core::reserved_sync_bytes(2)});
      if (self == 0) {
        core.store(word, seed);
        while (end < seed) std::this_thread::yield();  // computes without a call
      } else {
        if (!core.wait_until(word, [&](std::uint64_t v) { return v == seed; }).ok()) return false;
        end = static_cast<std::uint32_t>(seed);
      }
    }
    return true;
  };
  EXPECT_TRUE(in_processes(2, body));
}

// A child of a process that has cores may end as it likes, and may have cores of its own, which
// keep no store. `start` forks.
void fork_from_a_process_with_cores(pid_t (*start)()) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer allows no threads in the child of a process with threads";
#endif
  const Job job(1, 4096);
  const Job other(1, 4096);
  auto core = std::make_unique<Core>(job.attach(0, 1, 0));
  const std::uint64_t value = 5;
  ASSERT_TRUE(core->write_through({0, 0}, &value, 8).ok());
  core->store(core->word({0, 128}), 1);
  const bool good = in_processes(
      1,
      [&](Home) {
        core.reset();  // sends nothing
        for (std::uint64_t seed = 1; seed <= 8; ++seed) {
          Core mine(other.attach(0, seed, 0));
          mine.store(mine.word({0, 128}), seed);
          while (reinterpret_cast<std::atomic<std::uint64_t>*>(other.sync.at() + 128)->load() !=
                 seed)
            std::this_thread::yield();
        }
        return *reinterpret_cast<std::uint64_t*>(job.data.at()) == 0;
      },
      start);
  EXPECT_TRUE(good);
  core->drain();
  EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(job.data.at()), 5u);
}

TEST(StaleProcesses, AForkedChildLeavesTheParentsCoresAlone) {
  fork_from_a_process_with_cores([] { return fork(); });
}

TEST(StaleProcesses, AChildThatWasForkedPastTheCLibraryDoesSoToo) {
  fork_from_a_process_with_cores([] { return host::fork_sharing_files(SIGCHLD); });
}

// A core whose settling takes the dynamic linker's lock, and holds it as long as a test likes.
class CoreThatLoads final : public Settleable {
 public:
  void settle() override {}
  bool settle_if_free() override {
    if (!done_) library_.load();
    done_ = true;
    return true;
  }
  const host::testing::SlowLibrary& library() const { return library_; }
  bool done() const { return done_; }

 private:
  host::testing::SlowLibrary library_;
  std::atomic<bool> done_{false};
};

// SE6: the child looks up a symbol, for which it would wait for ever, but where the C library's
// fork has begun the linker's lock anew; and it finds the helper's work done.
void fork_while_the_helper_holds_a_lock(pid_t (*start)()) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer allows no threads in the child of a process with threads";
#endif
  CoreThatLoads core;
  ASSERT_TRUE(settler::add(core));
  // It begins before, which takes the lock. Until the fork, if that does not wait for the helper.
  host::Descriptor writer;
  std::atomic<bool> is_held{false};
  std::atomic<bool> forked{false};
  std::thread ends([&] {
    while (!is_held) std::this_thread::yield();
    for (int i = 0; i < 1000 && !forked; ++i) usleep(1000);
    writer.reset(-1);
  });
  settler::arm();
  writer = core.library().writer();
  is_held = true;
  const pid_t child = start();
  if (child == 0) {
    alarm(20);
    (void)dlsym(RTLD_DEFAULT, "getpid");
    _exit(core.done() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << "14: the child was ended by the alarm";
  forked = true;
  ends.join();
  settler::remove(core);
}

TEST(StaleProcesses, AForkedChildFindsNoLockThatTheHelperHeld) {
  fork_while_the_helper_holds_a_lock([] { return fork(); });
}

TEST(StaleProcesses, AChildThatWasForkedPastTheCLibraryFindsNoneEither) {
  fork_while_the_helper_holds_a_lock([] { return host::fork_sharing_files(SIGCHLD); });
}

class CoreWithoutStores final : public Settleable {
 public:
  void settle() override {}
  bool settle_if_free() override { return true; }
};

constinit std::atomic<bool> helper_begins{false};
constinit std::atomic<bool> helper_may_begin{false};

void begin_slowly() {
  helper_begins = true;
  for (int i = 0; i < 1000 && !helper_may_begin; ++i) usleep(1000);
  helper_begins = false;
}

// The answer of `meanwhile`, which another thread runs while the helper begins, for the first core.
// The helper goes on afterwards, or after a second if `meanwhile` waits for it.
bool while_the_helper_begins(const std::function<bool()>& meanwhile) {
  bool good = false;
  std::thread other([&] {
    while (!helper_begins) std::this_thread::yield();
    good = meanwhile();
    helper_may_begin = true;
  });
  host::testing::first_of_threads = begin_slowly;
  CoreWithoutStores first;
  const bool added = settler::add(first);
  host::testing::first_of_threads = nullptr;
  other.join();
  settler::remove(first);
  return added && good;
}

// SE6, in a process that has no helper until then.
TEST(StaleProcesses, AForkWaitsForAHelperThatBegins) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer allows no threads in the child of a process with threads";
#endif
  EXPECT_TRUE(in_processes(1, [](Home) {
    return while_the_helper_begins([] {
      const pid_t child = fork();
      if (child == 0) _exit(helper_begins ? 1 : 0);
      int status = 0;
      return waitpid(child, &status, 0) == child && status == 0;
    });
  }));
}

TEST(StaleProcesses, EachCoreWaitsForAHelperThatBegins) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer allows no threads in the child of a process with threads";
#endif
  EXPECT_TRUE(in_processes(1, [](Home) {
    return while_the_helper_begins([] {
      CoreWithoutStores second;
      const bool good = settler::add(second) && !helper_begins;
      settler::remove(second);
      return good;
    });
  }));
}

// Called behind all other handlers before a fork, since it is there before them.
constinit std::atomic<bool> signal_at_forks{false};
[[gnu::constructor(101)]] void see_forks() {
  pthread_atfork(
      [] {
        if (signal_at_forks) raise(SIGUSR1);
      },
      nullptr, nullptr);
}

constinit std::atomic<bool> has_armed{false};

bool blocks(int signal) {
  sigset_t now;
  pthread_sigmask(SIG_BLOCK, nullptr, &now);
  return sigismember(&now, signal) != 0;
}

// It would wait for the thread that it has interrupted.
TEST(StaleProcesses, AHandlerOfASignalDuringAForkMayStore) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer allows no threads in the child of a process with threads";
#endif
  EXPECT_TRUE(in_processes(1, [](Home) {
    CoreWithoutStores core;
    if (!settler::add(core)) return false;
    signal(SIGUSR1, [](int) {
      settler::arm();
      has_armed = true;
    });
    std::atomic<bool> forked{false};
    std::thread ends([&] {  // a thread that waits for itself blocks the alarm, too
      for (int i = 0; i < 2000 && !forked; ++i) usleep(10'000);
      if (!forked) _exit(2);
    });
    signal_at_forks = true;
    const pid_t child = fork();
    if (child == 0) _exit(blocks(SIGUSR1) ? 1 : 0);
    signal_at_forks = false;
    forked = true;
    ends.join();
    int status = 0;
    waitpid(child, &status, 0);
    settler::remove(core);
    return has_armed && status == 0 && !blocks(SIGUSR1);
  }));
}

std::ptrdiff_t threads_of_this_process() {
  const std::filesystem::directory_iterator threads("/proc/self/task");
  return std::distance(begin(threads), end(threads));
}

// Threads of a child whose cores store, one after the other. The parent's helper runs already.
void expect_threads_of_a_child(pid_t (*start)(), std::ptrdiff_t wanted) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer has a thread of its own, and allows no others in a child";
#endif
  const Job job(1, 4096);
  const Job other(1, 4096);
  const Core core(job.attach(0, 1, 0));
  const bool good = in_processes(
      1,
      [&](Home) {
        for (std::uint64_t seed = 1; seed <= 8; ++seed) {
          Core mine(other.attach(0, seed, 0));
          for (std::uint64_t value = 0; value < 32; ++value) mine.store(mine.word({0, 128}), value);
          if (threads_of_this_process() != wanted) return false;
        }
        return true;
      },
      start);
  EXPECT_TRUE(good);
}

// SE7: the stores of a core are seen at once.
TEST(StaleProcesses, WithoutAThreadForTheHelperCoresDoNotDefer) {
  const Job job(1, 4096);
  EXPECT_TRUE(in_processes(1, [&](Home) {
    const host::testing::FewThreads left(0);
    ::testing::internal::CaptureStderr();
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      Core mine(job.attach(0, seed, 0));
      for (std::uint64_t value = 1; value <= 32; ++value) {
        mine.store(mine.word({0, 128}), value);
        const auto* const word = reinterpret_cast<std::atomic<std::uint64_t>*>(job.sync.at() + 128);
        if (word->load() != value) return false;
      }
    }
    const std::string sentence = fmt::format(
        "tombolo: the host has no thread that settles stores on stale: Resource temporarily "
        "unavailable; {}; the cores of this process defer no store, so fewer of the orders that "
        "the "
        "machine allows are tried\n",
        host::no_thread_advice);
    return ::testing::internal::GetCapturedStderr() == sentence;
  }));
}

// SE1: the thread that the next test must not find is there where a helper is.
TEST(StaleProcesses, AForkedChildHasAHelper) {
  expect_threads_of_a_child([] { return fork(); }, 2);
}

// SE5
TEST(StaleProcesses, AChildThatWasForkedPastTheCLibraryStartsNoThread) {
  expect_threads_of_a_child([] { return host::fork_sharing_files(SIGCHLD); }, 1);
}

std::size_t resident_bytes() {
  std::size_t total = 0;
  std::size_t resident = 0;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/self/statm", "re"),
                                                             std::fclose);
  if (file == nullptr || std::fscanf(file.get(), "%zu %zu", &total, &resident) != 2) return 0;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// A window of 8 GiB of which three pages are used.
TEST(StaleProcesses, HugeRegionsCostWhatIsTouched) {
  constexpr std::size_t bytes = std::size_t{8} << 30;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "shadow memory of the mapped range would be the larger part";
#endif
  const Job job(2, bytes);
  const auto before = resident_bytes();
  const auto start = std::chrono::steady_clock::now();
  auto at = job.attach(0, 1, 20);
  Core a(at);
  at.self = 1;
  Core b(at);
  auto* own = a.view({0, 0});
  for (const std::size_t offset : {std::size_t{5}, bytes / 2 + 4096, bytes - 1}) {
    own[offset] = std::byte{1};
    a.publish({0, 0}, bytes);
    b.refresh({0, 0}, bytes);
    std::byte got{};
    ASSERT_TRUE(b.read({0, offset}, &got, 1).ok());
    EXPECT_EQ(got, std::byte{1});
    got = std::byte{2};
    ASSERT_TRUE(b.write_through({0, offset}, &got, 1).ok());
    b.drain();
    a.refresh({0, 0}, bytes);
    EXPECT_EQ(own[offset], std::byte{2});
  }
  b.expose(0);
  EXPECT_EQ(*b.view({0, bytes - 1}), std::byte{2});
  EXPECT_EQ(*b.view({0, bytes - 2}), std::byte{0});
  EXPECT_TRUE(a.findings().clean()) << a.findings().report();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  const auto used = resident_bytes() - before;
  std::printf("8 GiB: %.2f s, %zu KiB resident\n", took.count(), used / 1024);
  EXPECT_LT(used, std::size_t{200} << 20);
}

}  // namespace
}  // namespace tombolo::stale
