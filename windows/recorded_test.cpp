// SPDX-License-Identifier: Apache-2.0
// The operations of each call on memory and on sync words, in which order and over which bytes: on
// a machine that notes every one of them (testing/recorder.h).
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "windows/testing/recorder.h"
#include "windows/window.h"

namespace tombolo::windows::testing {
namespace {

using sync::Access;

// The last line of a region holds two bytes of it.
constexpr std::size_t region = 130;
constexpr EngineOptions usual{};
constexpr EngineOptions shared{.program_reads_peers = true};

// The processes of a window, all in this thread.
template <class Core>
class ProcessesOn {
 public:
  explicit ProcessesOn(Home processes, const EngineOptions& options = usual)
      : recorder_({.cores = processes,
                   .sync_bytes = Window<Core>::sync_bytes(processes),
                   .data_bytes = region}) {
    for (Home self = 0; self < processes; ++self)
      windows_.push_back(std::make_unique<Window<Core>>(recorder_.attachment(self), options));
  }
  Window<Core>& operator[](Home self) { return *windows_[self]; }
  Recorder& recorder() { return recorder_; }

  // The operations of the call.
  template <class Call>
  std::string of(Call&& call) {
    (void)recorder_.take();
    EXPECT_TRUE(call().ok());
    return recorder_.take();
  }
  // Those before it would have to wait for another process.
  template <class Call>
  std::string before_waiting(Call&& call) {
    (void)recorder_.take();
    EXPECT_EQ(call().code(), Code::io);
    return recorder_.take();
  }

 private:
  Recorder recorder_;
  std::vector<std::unique_ptr<Window<Core>>> windows_;
};
using Processes = ProcessesOn<RecordedCore>;

void put(Window<RecordedCore>& window, Home target) {
  const std::uint64_t v = 5;
  ASSERT_TRUE(window.put(target, 8, &v, sizeof v).ok());
}

// A whole epoch: the flag of process 1 is up after it, and stays so until that looks.
void announce(Processes& processes) {
  ASSERT_TRUE(processes[0].lock(Access::shared, 1, {}).ok());
  put(processes[0], 1);
  ASSERT_TRUE(processes[0].unlock(1).ok());
}

bool starts_with(const std::string& text, const std::string& start) {
  return text.compare(0, start.size(), start) == 0;
}
bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// ---- Announced only when in memory (WD1) --------------------------------------------------------

// The drain, the flag of the target where there is one, and the stores of the program.
const char* end_of_epoch(const EngineOptions& options) {
  return options.program_reads_peers ? "0:drain 0:publish(0,0,130) 0:publish(1,0,130) "
                                     : "0:drain 0:fence 0:store 0:fence 0:publish(0,0,130) ";
}

// After `first` come operations on sync words only.
void expect_then_sync_words(const std::string& notes, const std::string& first) {
  EXPECT_TRUE(starts_with(notes, first)) << notes;
  const std::string rest = notes.substr(std::min(first.size(), notes.size()));
  EXPECT_FALSE(rest.empty());
  EXPECT_FALSE(has(rest, "drain") || has(rest, "publish")) << notes;
}

TEST(Recorded, UnlockDrainsAndPublishesBeforeItFreesTheLock) {
  for (std::size_t place = 0; place < sync::WindowLockFamilies::size; ++place)
    for (const Access access : {Access::shared, Access::exclusive}) {
      SCOPED_TRACE(sync::WindowLockFamilies::names[place]);
      for (EngineOptions options : {usual, shared}) {
        options.locks = sync::LockKind(place);
        Processes processes(2, options);
        ASSERT_TRUE(processes[0].lock(access, 1, {}).ok());
        put(processes[0], 1);
        expect_then_sync_words(processes.of([&] { return processes[0].unlock(1); }),
                               end_of_epoch(options));
      }
    }
}

TEST(Recorded, UnlockAllDrainsAndPublishesBeforeItFreesTheLock) {
  for (std::size_t place = 0; place < sync::WindowLockFamilies::size; ++place) {
    SCOPED_TRACE(sync::WindowLockFamilies::names[place]);
    for (EngineOptions options : {usual, shared}) {
      options.locks = sync::LockKind(place);
      Processes processes(2, options);
      ASSERT_TRUE(processes[0].lock_all({}).ok());
      put(processes[0], 1);
      expect_then_sync_words(processes.of([&] { return processes[0].unlock_all(); }),
                             end_of_epoch(options));
    }
  }
}

TEST(Recorded, FenceDrainsAndPublishesBeforeItArrives) {
  for (const EngineOptions& options : {usual, shared}) {
    Processes processes(2, options);
    (void)processes.before_waiting([&] { return processes[0].fence({}); });
    put(processes[0], 1);
    expect_then_sync_words(processes.before_waiting([&] { return processes[0].fence({}); }),
                           options.program_reads_peers
                               ? "0:publish(0,0,130) 0:publish(1,0,130) 0:drain "
                               : "0:publish(0,0,130) 0:drain 0:fence 0:store ");
  }
}

TEST(Recorded, PostPublishesAndCompleteDrainsBeforeTheyTell) {
  Processes processes(2);
  const Home origins[] = {0};
  const Home targets[] = {1};
  expect_then_sync_words(processes.of([&] { return processes[1].post(origins, {}); }),
                         "1:publish(1,0,130) ");
  ASSERT_TRUE(processes[0].start(targets, {}).ok());
  put(processes[0], 1);
  expect_then_sync_words(processes.of([&] { return processes[0].complete(); }),
                         "0:drain 0:fence 0:store ");
}

// A flush whose puts the target has not been told of: a later put may not be seen before the news.
constexpr const char* told_at_once = "0:drain 0:fence 0:store 0:fence";

TEST(Recorded, PutsAreAnnouncedWhenTheyAreInMemory) {
  Processes processes(2);
  ASSERT_TRUE(processes[0].lock_all({}).ok());
  put(processes[0], 1);
  EXPECT_EQ(processes.of([&] { return processes[0].flush(1); }), told_at_once);
  EXPECT_EQ(processes.of([&] { return processes[0].flush_all(); }), "0:drain") << "once";
}

// ---- Over all bytes -----------------------------------------------------------------------------

TEST(Recorded, GetRefreshesTheBytesThatItReads) {
  std::byte to[62];
  for (const EngineOptions& options : {usual, shared}) {
    Processes processes(2, options);
    ASSERT_TRUE(processes[0].lock_all({}).ok());
    EXPECT_EQ(processes.of([&] { return processes[0].get(0, 3, to, sizeof to); }),
              "0:publish(0,3,62) 0:refresh(0,3,62) 0:read(0,3,62)");
    EXPECT_EQ(processes.of([&] { return processes[0].get(1, 3, to, sizeof to); }),
              std::string(options.program_reads_peers ? "0:publish(1,3,62) " : "") +
                  "0:refresh(1,3,62) 0:read(1,3,62)");
  }
}

TEST(Recorded, RunsAreReadAndWrittenAsSingleCallsAre) {
  std::byte bytes[16] = {};
  const std::vector<ByteRun> runs{{3, bytes, 5}, {70, bytes + 5, 0}, {100, bytes + 5, 8}};
  Processes processes(2);
  ASSERT_TRUE(processes[0].lock_all({}).ok());
  EXPECT_EQ(processes.of([&] { return processes[0].get_runs(1, runs); }),
            "0:refresh(1,3,5) 0:read(1,3,5) 0:refresh(1,100,8) 0:read(1,100,8)");
  EXPECT_EQ(processes.of([&] { return processes[0].put_runs(1, runs); }),
            "0:write_through(1,3,5) 0:write_through(1,100,8)");
  // The target is told of puts when the epoch ends.
  expect_then_sync_words(processes.of([&] { return processes[0].unlock_all(); }),
                         "0:drain 0:fence 0:store 0:fence 0:publish(0,0,130) ");
}

// The program's own stores in a run are in memory before the refresh, as for a single get.
TEST(Recorded, RunsThatTheProgramMayHaveStoredToArePublishedFirst) {
  std::byte bytes[16] = {};
  const std::vector<ByteRun> runs{{3, bytes, 5}, {70, bytes + 5, 0}, {100, bytes + 5, 8}};
  const auto notes = [](Home home) {
    return fmt::format(
        "0:publish({0},3,5) 0:refresh({0},3,5) 0:read({0},3,5) "
        "0:publish({0},100,8) 0:refresh({0},100,8) 0:read({0},100,8)",
        home);
  };
  Processes own(2);
  ASSERT_TRUE(own[0].lock_all({}).ok());
  EXPECT_EQ(own.of([&] { return own[0].get_runs(0, runs); }), notes(0));
  Processes peers(2, shared);
  ASSERT_TRUE(peers[0].lock_all({}).ok());
  EXPECT_EQ(peers.of([&] { return peers[0].get_runs(1, runs); }), notes(1));
}

TEST(Recorded, RunsAreServedAtOnceWhereTheMachineCan) {
  std::byte bytes[16] = {};
  const std::vector<ByteRun> runs{{3, bytes, 5}, {70, bytes + 5, 0}, {100, bytes + 5, 8}};
  for (const EngineOptions& options : {usual, shared}) {
    ProcessesOn<PiecesRecordedCore> processes(2, options);
    ASSERT_TRUE(processes[0].lock_all({}).ok());
    // The renewal publishes the program's own stores as well.
    EXPECT_EQ(processes.of([&] { return processes[0].get_runs(1, runs); }),
              "0:renew_pieces(1,3+5,70+0,100+8) 0:read_pieces(1,3+5,70+0,100+8)");
    EXPECT_EQ(processes.of([&] { return processes[0].put_runs(1, runs); }),
              "0:write_pieces_through(1,3+5,70+0,100+8)");
    EXPECT_TRUE(starts_with(processes.of([&] { return processes[0].unlock_all(); }), "0:drain "));
  }
}

// Under one mutex; all are in memory before that is free (AU2).
template <class Core>
void expect_update_of_runs(const std::string& read, const std::string& write) {
  const std::vector<ElementRun> runs{{64, 1}, {8, 2}};
  const std::uint64_t in[3] = {1, 2, 3};
  std::uint64_t former[3] = {};
  ProcessesOn<Core> processes(2);
  ASSERT_TRUE(processes[0].lock_all({}).ok());
  const auto update = [&](Op op, void* result) {
    return processes.of(
        [&] { return processes[0].accumulate_runs(1, runs, op, Element::u64, in, result); });
  };
  EXPECT_EQ(update(Op::sum, nullptr), "0:atomic " + read + write + " 0:drain 0:store");
  EXPECT_EQ(update(Op::sum, former), "0:atomic " + read + write + " 0:drain 0:store");
  EXPECT_TRUE(std::equal(std::begin(in), std::end(in), former));
  EXPECT_EQ(update(Op::no_op, former), "0:atomic " + read + " 0:store");
  EXPECT_EQ(former[2], 6u);
  EXPECT_TRUE(has(processes.of([&] { return processes[0].unlock_all(); }), "0:fence 0:store"))
      << "the target is told";
}

TEST(Recorded, RunsAreUpdatedAtTheCostOfOne) {
  expect_update_of_runs<PiecesRecordedCore>(
      "0:renew_pieces(1,64+8,8+16) 0:read_pieces(1,64+8,8+16)",
      " 0:write_pieces_through(1,64+8,8+16)");
  expect_update_of_runs<RecordedCore>(
      "0:refresh(1,64,8) 0:read(1,64,8) 0:refresh(1,8,16) 0:read(1,8,16)",
      " 0:write_through(1,64,8) 0:write_through(1,8,16)");
}

TEST(Recorded, NothingIsDoneInPlaceWhereMemoryIsNotCoherent) {
  Processes processes(2);
  ASSERT_TRUE(processes[0].lock_all({}).ok());
  const auto fail = [](void*, std::byte*) { ADD_FAILURE() << "a plain access"; };
  bool done = true;
  EXPECT_EQ(processes.of([&] {
    return processes[0].get_in_place(1, {0, 8, 8}, fail, nullptr, done);
  }),
            "");
  EXPECT_FALSE(done);
  done = true;
  EXPECT_EQ(processes.of([&] {
    return processes[0].put_in_place(1, {0, 8, 8}, fail, nullptr, done);
  }),
            "");
  EXPECT_FALSE(done);
}

// The caller's copy, noted among the operations: the address that it gets, and when.
struct NotedCopy {
  Recorder& recorder;
  std::byte* expected;
  std::string before{};
  static void run(void* to, std::byte* memory) {
    auto& copy = *static_cast<NotedCopy*>(to);
    EXPECT_EQ(memory, copy.expected);
    copy.before = copy.recorder.take() + " copy";
  }
};

TEST(Recorded, InPlaceACopyComesBehindTheCheckAndTheRefresh) {
  using Core = CoherentRecordedCore;
  Recorder recorder({.cores = 2, .sync_bytes = Window<Core>::sync_bytes(2), .data_bytes = region});
  Window<Core> window(recorder.attachment(0), usual);
  NotedCopy copy{recorder, Core(recorder.attachment(0)).memory({1, 9})};
  bool done = false;
  EXPECT_EQ(window.get_in_place(1, {9, 64, 64}, NotedCopy::run, &copy, done).code(), Code::epoch);
  EXPECT_EQ(window.put_in_place(1, {9, 64, 64}, NotedCopy::run, &copy, done).code(), Code::epoch);
  ASSERT_TRUE(window.lock_all({}).ok());
  (void)recorder.take();
  ASSERT_TRUE(window.get_in_place(1, {9, 64, 64}, NotedCopy::run, &copy, done).ok());
  EXPECT_TRUE(done);
  EXPECT_EQ(copy.before, "0:refresh(1,9,64) copy");
  copy.before.clear();
  ASSERT_TRUE(window.get_in_place(1, {9, 65, 65}, NotedCopy::run, &copy, done).ok());
  EXPECT_FALSE(done) << "not all in reach";
  ASSERT_TRUE(window.put_in_place(1, {9, 65, 65}, NotedCopy::run, &copy, done).ok());
  EXPECT_FALSE(done);
  EXPECT_EQ(copy.before, "");
  EXPECT_EQ(recorder.take(), "");
  ASSERT_TRUE(window.put_in_place(1, {9, 64, 64}, NotedCopy::run, &copy, done).ok());
  EXPECT_TRUE(done);
  EXPECT_EQ(copy.before, " copy");
}

// Of a layout that has as many lines as numbers at most; others are read piece by piece.
TEST(Recorded, AGetInPlaceRenewsAllThatItReachesWhereTheMachineCan) {
  using Core = ViewedRecordedCore;
  Recorder recorder({.cores = 2, .sync_bytes = Window<Core>::sync_bytes(2), .data_bytes = region});
  Window<Core> window(recorder.attachment(0), usual);
  NotedCopy copy{recorder, Core(recorder.attachment(0)).memory({1, 9})};
  bool done = false;
  ASSERT_TRUE(window.lock_all({}).ok());
  (void)recorder.take();
  ASSERT_TRUE(window.get_in_place(1, {9, 64, 8}, NotedCopy::run, &copy, done).ok());
  EXPECT_TRUE(done);
  EXPECT_EQ(copy.before, "0:renew_pieces(1,9+64) copy");
  copy.before.clear();
  ASSERT_TRUE(window.get_in_place(1, {9, 65, 8}, NotedCopy::run, &copy, done).ok());
  EXPECT_FALSE(done) << "too many lines";
  ASSERT_TRUE(window.put_in_place(1, {9, 8, 8}, NotedCopy::run, &copy, done).ok());
  EXPECT_FALSE(done) << "the caches would bring old neighbours to memory";
  EXPECT_EQ(copy.before, "");
  EXPECT_EQ(recorder.take(), "");
}

// Where memory is not coherent the refresh of a get comes after them in any case.
TEST(Recorded, FlushKeepsLaterGetsBehindThePutsOfACoherentMachine) {
  using Core = CoherentRecordedCore;
  Recorder recorder({.cores = 2, .sync_bytes = Window<Core>::sync_bytes(2), .data_bytes = region});
  Window<Core> window(recorder.attachment(0), usual);
  ASSERT_TRUE(window.lock_all({}).ok());
  const std::uint64_t v = 5;
  ASSERT_TRUE(window.put(1, 8, &v, sizeof v).ok());
  (void)recorder.take();
  ASSERT_TRUE(window.flush(1).ok());
  EXPECT_EQ(recorder.take(), "0:drain 0:fence");
}

TEST(Recorded, LockRefreshesTheWholeRegionAfterAPut) {
  Processes processes(2);
  const auto lock_and_unlock = [&] {
    EXPECT_TRUE(processes[1].lock(Access::shared, 1, {}).ok());
    const std::string notes = processes.recorder().take();
    EXPECT_TRUE(processes[1].unlock(1).ok());
    return notes;
  };
  (void)processes.recorder().take();
  EXPECT_FALSE(has(lock_and_unlock(), "refresh")) << "there was no put";
  announce(processes);
  (void)processes.recorder().take();
  EXPECT_TRUE(ends_with(lock_and_unlock(), "1:atomic 1:publish(1,0,130) 1:refresh(1,0,130)"))
      << "the flag is down first";
}

TEST(Recorded, SyncPublishesAndRefreshesAllSharedRegions) {
  Processes processes(2, shared);
  EXPECT_EQ(processes.of([&] { return processes[0].sync(); }),
            "0:publish(0,0,130) 0:publish(1,0,130) 0:fence 0:publish(0,0,130) 0:publish(1,0,130) "
            "0:refresh(0,0,130) 0:refresh(1,0,130)");
}

// ---- Accumulates --------------------------------------------------------------------------------

std::string accumulated(const EngineOptions& options, Home target) {
  Processes processes(2, options);
  EXPECT_TRUE(processes[0].lock_all({}).ok());
  const std::uint64_t v = 5;
  return processes.of(
      [&] { return processes[0].accumulate(target, 8, Op::sum, Element::u64, &v, 1); });
}

// The mutex around; stores of the program itself that may be there are published first.
TEST(Recorded, AccumulateReadsFromMemoryAndIsThereBeforeTheMutexIsFree) {
  const auto with = [](const std::string& first) {
    return "0:atomic " + first + "0:refresh(1,8,8) 0:read(1,8,8) 0:write_through(1,8,8) 0:drain 0:";
  };
  EXPECT_TRUE(starts_with(accumulated(usual, 1), with(""))) << accumulated(usual, 1);
  EXPECT_TRUE(starts_with(accumulated(shared, 1), with("0:publish(1,8,8) ")))
      << accumulated(shared, 1);
  for (const EngineOptions& options : {usual, shared})
    EXPECT_TRUE(starts_with(accumulated(options, 0), "0:atomic 0:publish(0,8,8) 0:refresh(0,8,8) "))
        << accumulated(options, 0);
}

// ---- Promises -----------------------------------------------------------------------------------

// They speak of the own region; where the program stores to its peers' as well, none is kept.
TEST(Recorded, FenceKeepsPromisesOfTheOwnRegionOnly) {
  for (const EngineOptions& options : {usual, shared}) {
    const bool own_only = !options.program_reads_peers;
    Processes one(1, options);
    const std::string all = "0:publish(0,0,130) 0:refresh(0,0,130)";
    EXPECT_EQ(one.of([&] { return one[0].fence({.no_store = true, .no_put = true}); }),
              own_only ? "0:drain" : "0:publish(0,0,130) 0:drain " + all);
    EXPECT_EQ(one.of([&] { return one[0].fence({.no_store = true}); }),
              own_only ? "0:drain" : "0:publish(0,0,130) 0:drain " + all)
        << "after a promise of no put";
  }
}

TEST(Recorded, PostKeepsPromisesOfTheOwnRegionOnly) {
  const Home origins[] = {0};
  const Home targets[] = {1};
  for (const EngineOptions& options : {usual, shared}) {
    const bool own_only = !options.program_reads_peers;
    Processes two(2, options);
    announce(two);
    const std::string posted =
        two.of([&] { return two[1].post(origins, {.no_store = true, .no_put = true}); });
    EXPECT_EQ(has(posted, "refresh"), own_only) << "instead of the wait's: " << posted;
    EXPECT_EQ(starts_with(posted, "1:publish(0,0,130) 1:publish(1,0,130) 1:atomic"), !own_only)
        << posted;
    ASSERT_TRUE(two[0].start(targets, {}).ok());
    put(two[0], 1);
    ASSERT_TRUE(two[0].complete().ok());
    const std::string waited = two.of([&] { return two[1].wait(); });
    EXPECT_EQ(has(waited, "refresh(1,0,130)"), !own_only) << waited;
  }
}

// ---- Threads ------------------------------------------------------------------------------------

// A second thread of a process.
class OtherThread {
 public:
  explicit OtherThread(std::function<void()> body)
      : thread_([this, body = std::move(body)] {
          id_ = static_cast<int>(syscall(SYS_gettid));
          body();
          done_ = true;
        }) {}
  void join() { thread_.join(); }
  // Until it has ended, or sleeps, which it does only for a mutex of another thread: whether it has
  // ended.
  bool wait_until_stuck_or_done() const {
    while (id_ == 0) std::this_thread::yield();
    while (!done_ && state() != 'S') std::this_thread::yield();
    return done_;
  }

 private:
  // As the kernel tells it: behind the name, which is in parentheses.
  char state() const {
    std::ifstream file(fmt::format("/proc/self/task/{}/stat", id_.load()));
    std::string text;
    std::getline(file, text);
    const std::size_t name_end = text.rfind(") ");
    return name_end == std::string::npos ? '?' : text[name_end + 2];
  }

  std::atomic<int> id_ = 0;
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

// The put of another thread to process 2 is announced by the next flush.
void expect_announced_by_flush(Processes& processes) {
  processes.recorder().at_each({});
  EXPECT_EQ(processes.of([&] { return processes[0].flush_all(); }), told_at_once);
}

TEST(Recorded, FlushForgetsNoPutOfAnotherThread) {
  for (const bool all : {false, true}) {
    SCOPED_TRACE(all);
    Processes processes(3, {.threads = true});
    ASSERT_TRUE(processes[0].lock_all({}).ok());
    put(processes[0], 1);
    std::unique_ptr<OtherThread> other;
    // While it announces the put to process 1.
    processes.recorder().at_each([&](const std::string& operation) {
      if (other || operation != "load") return;
      other = std::make_unique<OtherThread>([&] { put(processes[0], 2); });
      other->wait_until_stuck_or_done();
    });
    ASSERT_TRUE((all ? processes[0].flush_all() : processes[0].flush(1)).ok());
    ASSERT_TRUE(other);
    other->join();
    expect_announced_by_flush(processes);
  }
}

// The end of an exposure changes the epochs that a put of another thread looks at.
TEST(Recorded, WaitKeepsPutsOfOtherThreadsOutWhileItEndsTheExposure) {
  Processes processes(2, {.threads = true});
  const Home origins[] = {0};
  const Home targets[] = {1};
  ASSERT_TRUE(processes[1].lock_all({}).ok());
  ASSERT_TRUE(processes[1].post(origins, {}).ok());
  ASSERT_TRUE(processes[0].start(targets, {}).ok());
  put(processes[0], 1);
  ASSERT_TRUE(processes[0].complete().ok());
  std::unique_ptr<OtherThread> other;
  bool done_meanwhile = false;
  processes.recorder().at_each([&](const std::string& operation) {
    if (other || operation.find("refresh") == std::string::npos) return;
    other = std::make_unique<OtherThread>([&] { put(processes[1], 0); });
    done_meanwhile = other->wait_until_stuck_or_done();
  });
  ASSERT_TRUE(processes[1].wait().ok());
  ASSERT_TRUE(other);
  other->join();
  EXPECT_FALSE(done_meanwhile);
}

// A put is noted when it is done: a flush that comes in between must not announce it.
TEST(Recorded, FlushAnnouncesNoPutThatIsNotDone) {
  using W = Window<RecordedCore>;
  std::uint64_t v = 5;
  std::uint64_t result = 0;
  const ByteRun bytes[] = {{8, reinterpret_cast<std::byte*>(&v), sizeof v}};
  const ElementRun elements[] = {{8, 1}};
  const std::function<Status(W&)> calls[] = {
      [&](W& w) { return w.put(1, 8, &v, sizeof v); },
      [&](W& w) { return w.put_runs(1, bytes); },
      [&](W& w) { return w.accumulate(1, 8, Op::sum, Element::u64, &v, 1); },
      [&](W& w) { return w.accumulate_runs(1, elements, Op::sum, Element::u64, &v, nullptr); },
      [&](W& w) { return w.compare_and_swap(1, 8, Element::u64, &result, &v, &result); },
  };
  for (const auto& call : calls) {
    SCOPED_TRACE(&call - calls);
    Processes processes(2, {.threads = true});
    ASSERT_TRUE(processes[0].lock_all({}).ok());
    std::string flushed;
    processes.recorder().at_each([&](const std::string& operation) {
      if (operation != "write_through") return;
      (void)processes.recorder().take();
      OtherThread([&] { (void)processes[0].flush(1).ok(); }).join();
      flushed = processes.recorder().take();
    });
    ASSERT_TRUE(call(processes[0]).ok());
    EXPECT_EQ(flushed, "0:drain");
    processes.recorder().at_each({});
    EXPECT_EQ(processes.of([&] { return processes[0].flush(1); }), told_at_once);
  }
}

// Two threads of process 0. The first holds the state of the epochs, in the middle of a test(),
// while the other's call must look at it.
class TwoThreads {
 public:
  using Calls = std::function<Status(Window<RecordedCore>&)>;

  // Process 0 is exposed to process 1, and in the epoch that `prepare` opens.
  explicit TwoThreads(const Calls& prepare = {}) : processes_(3, {.threads = true}) {
    const Home peers[] = {1};
    EXPECT_TRUE(processes_[0].post(peers, {}).ok());
    if (prepare) {
      EXPECT_TRUE(prepare(processes_[0]).ok());
    }
  }
  Processes& processes() { return processes_; }

  // Whether the call waits for the first thread before it does anything; or, if `from` names an
  // operation, after it has come to that.
  bool waits(const Calls& call, const std::string& from = "") {
    std::atomic<bool> holds = false;
    std::atomic<bool> is_there = from.empty();
    std::unique_ptr<OtherThread> other;
    bool waited = false;
    std::atomic<bool> acted = false;
    std::atomic<bool> released = false;
    const std::thread::id first = std::this_thread::get_id();
    processes_.recorder().at_each([&](const std::string& operation) {
      if (std::this_thread::get_id() != first) {
        if (from.empty() && !released) acted = true;
        if (is_there || operation != from) return;
        is_there = true;
        while (!holds) std::this_thread::yield();
      } else if (is_there && !holds) {
        holds = true;
        if (!other) other = another(call);
        waited = !other->wait_until_stuck_or_done();
        released = true;
      }
    });
    if (!is_there) other = another(call);
    while (!is_there) std::this_thread::yield();
    bool done = false;
    EXPECT_TRUE(processes_[0].test(done).ok());
    other->join();
    processes_.recorder().at_each({});
    return waited && !acted;
  }

 private:
  std::unique_ptr<OtherThread> another(const Calls& call) {
    return std::make_unique<OtherThread>([this, call] { (void)call(processes_[0]).ok(); });
  }
  Processes processes_;
};

// Whether they fit the epochs or not: they look.
TEST(Recorded, EveryCallWaitsForTheThreadThatHasTheState) {
  using W = Window<RecordedCore>;
  const Home peers[] = {1};
  std::uint64_t v = 0;
  const TwoThreads::Calls calls[] = {
      [](W& w) { return w.fence({}); },
      [&](W& w) { return w.post(peers, {}); },
      [&](W& w) { return w.start(peers, {}); },
      [](W& w) { return w.complete(); },
      [](W& w) { return w.wait(); },
      [](W& w) {
        bool done = false;
        return w.test(done);
      },
      [](W& w) { return w.lock(Access::shared, 1, {}); },
      [](W& w) { return w.unlock(1); },
      [](W& w) { return w.lock_all({}); },
      [](W& w) { return w.unlock_all(); },
      [](W& w) { return w.flush(1); },
      [](W& w) { return w.flush_all(); },
      [](W& w) { return w.flush_local(1); },
      [](W& w) { return w.flush_local_all(); },
      [](W& w) { return w.closable(); },
      [](W& w) { return w.may_sync(); },
      [&](W& w) { return w.put(1, 8, &v, 8); },
  };
  for (const auto& call : calls) {
    SCOPED_TRACE(&call - calls);
    EXPECT_TRUE(TwoThreads().waits(call));
  }
}

TEST(Recorded, EveryCallWaitsAgainWhenItChangesTheState) {
  using W = Window<RecordedCore>;
  const Home peers[] = {1};
  std::uint64_t v = 0;
  EXPECT_TRUE(TwoThreads().waits([](W& w) { return w.lock(Access::shared, 1, {}); }, "atomic"));
  EXPECT_TRUE(TwoThreads().waits([](W& w) { return w.lock_all({}); }, "atomic"));
  const auto lock_all = [](W& w) { return w.lock_all({}); };
  const auto puts = [&](W& w) { return w.put(1, 8, &v, 8); };
  EXPECT_TRUE(TwoThreads(lock_all).waits(puts, "write_through"));
  const auto start = [&](W& w) { return w.start(peers, {}); };
  TwoThreads waits_for_post(start);
  waits_for_post.processes().recorder().allow_pauses(1);
  EXPECT_TRUE(waits_for_post.waits(puts, "pause"));
  TwoThreads completes(start);
  const Home origins[] = {0};
  ASSERT_TRUE(completes.processes()[1].post(origins, {}).ok());
  EXPECT_TRUE(completes.waits([](W& w) { return w.complete(); }, "atomic"));
}

// The flag is down, but the puts are not to be seen before the refresh is done.
TEST(Recorded, SyncWaitsForTheThreadThatRefreshes) {
  Processes processes(2, {.threads = true});
  announce(processes);
  std::unique_ptr<OtherThread> other;
  std::atomic<bool> begun = false;
  bool waited = false;
  processes.recorder().at_each([&](const std::string& operation) {
    if (operation != "refresh" || begun.exchange(true)) return;
    other = std::make_unique<OtherThread>([&] { (void)processes[1].sync().ok(); });
    waited = !other->wait_until_stuck_or_done();
  });
  ASSERT_TRUE(processes[1].sync().ok());
  ASSERT_TRUE(other);
  other->join();
  EXPECT_TRUE(waited);
}

// Whether the call of process 1, once it has drained, waits for a thread that is in the middle of a
// test(), which has the state, before it does anything more.
bool waits_once_drained(Processes& processes, const TwoThreads::Calls& call) {
  const std::thread::id first = std::this_thread::get_id();
  std::unique_ptr<OtherThread> other;
  std::atomic<bool> drained = false;
  std::atomic<bool> tests = false;
  std::atomic<bool> holds = false;
  std::atomic<bool> acted = false;
  bool waited = false;
  processes.recorder().at_each([&](const std::string& operation) {
    if (std::this_thread::get_id() != first) {
      if (drained) acted = true;
      if (operation != "drain" || drained.exchange(true)) return;
      while (!holds) std::this_thread::yield();
    } else if (tests && !holds.exchange(true)) {
      waited = !other->wait_until_stuck_or_done() && !acted;
    }
  });
  other = std::make_unique<OtherThread>([&] { (void)call(processes[1]).ok(); });
  while (!drained) std::this_thread::yield();
  const Home origins[] = {0};
  EXPECT_TRUE(processes[1].post(origins, {}).ok());
  tests = true;
  bool done = false;
  EXPECT_TRUE(processes[1].test(done).ok());
  other->join();
  processes.recorder().at_each({});
  return waited;
}

// Other threads may put meanwhile, and note it.
TEST(Recorded, PutsAreAnnouncedWhenNoOtherThreadHasTheState) {
  using W = Window<RecordedCore>;
  Processes fencing(2, {.threads = true});
  EXPECT_TRUE(waits_once_drained(fencing, [](W& w) { return w.fence({.no_succeed = true}); }));
  Processes completing(2, {.threads = true});
  const Home origins[] = {1};
  const Home targets[] = {0};
  ASSERT_TRUE(completing[0].post(origins, {}).ok());
  ASSERT_TRUE(completing[1].start(targets, {}).ok());
  put(completing[1], 0);
  EXPECT_TRUE(waits_once_drained(completing, [](W& w) { return w.complete(); }));
}

// ---- The end ------------------------------------------------------------------------------------

TEST(Recorded, CloseDrainsAndPublishesWhereOthersGetTheMemory) {
  Processes kept(2);
  EXPECT_EQ(kept.of([&] { return kept[0].close(), Status(); }), "0:drain");
  Processes handed_on(2, {.memory_moves_on = true});
  EXPECT_EQ(handed_on.of([&] { return handed_on[0].close(), Status(); }),
            "0:publish(0,0,130) 0:drain");
}

}  // namespace
}  // namespace tombolo::windows::testing
