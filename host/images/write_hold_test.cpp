// SPDX-License-Identifier: Apache-2.0
// Purpose: that threads which store to held pages wait and lose no store, and that faults which are
// not of a hold go where they would have gone.
#include "host/images/write_hold.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <thread>

#include "host/images/memory_image.h"
#include "host/memory/page.h"
#include "host/memory/testing/memory.h"

namespace tombolo::host {
namespace {

using testing::in_child;
using testing::is_private;
using testing::Plain;

const std::uint64_t page = page_bytes();
#if defined(__SANITIZE_THREAD__)
constexpr bool handlers_are_ours = false;
#else
constexpr bool handlers_are_ours = true;
#endif

class WriteHoldTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!handlers_are_ours) GTEST_SKIP() << "the sanitizer delays signals";
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process without a handler of ours
  }
};

// A thread that runs `f` all the time.
template <class F>
class Repeating {
 public:
  explicit Repeating(F f)
      : thread_([this, f] {
          runs_ = true;
          while (!ends_) f();
        }) {
    while (!runs_) usleep(10);  // a thread that starts blocks signals
  }
  ~Repeating() { end(); }
  void end() {
    ends_ = true;
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::atomic<bool> runs_{false};
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

void idle() { usleep(100); }

TEST_F(WriteHoldTest, NoStoreIsLost) {
  Plain plain(4);
  MemoryImage image;
  ASSERT_TRUE(image.open().ok());
  auto* const in_pages = reinterpret_cast<volatile std::uint64_t*>(plain.at(page + 64));
  std::atomic<std::uint64_t> stores{0};
  Repeating writer([&] {
    *in_pages = *in_pages + 1;
    ++stores;
  });
  for (int i = 0; i < 2000; ++i) {
    ASSERT_TRUE(image.move_in(plain.range(), MemoryImage::Hold::yes, false).ok());
    ASSERT_TRUE(image.move_out(plain.range(), MemoryImage::Hold::yes).ok());
  }
  writer.end();
  EXPECT_EQ(*in_pages, stores.load());
}

// A store may find one hold, and its handler the next one, of other pages.
TEST_F(WriteHoldTest, NoStoreIsLostWhileOtherPagesAreHeld) {
  EXPECT_EQ(in_child([] {
              Plain first(1);
              Plain second(1);
              auto* const a = reinterpret_cast<volatile std::uint64_t*>(first.at(0));
              auto* const b = reinterpret_cast<volatile std::uint64_t*>(second.at(0));
              std::atomic<std::uint64_t> stores{0};
              Repeating writer([&] {
                *a = *a + 1;
                *b = *b + 1;
                ++stores;
              });
              WriteHold hold;
              for (int i = 0; i < 5'000; ++i) {
                if (!hold.take(i % 2 == 0 ? first.range() : second.range())) return 1;
                hold.release();
              }
              writer.end();
              return *a == stores && *b == stores ? 0 : 2;
            }),
            0);
}

TEST_F(WriteHoldTest, AStoreWaitsForTheEndOfTheHold) {
  Plain plain(1);
  volatile char* const byte = plain.at(0);
  std::atomic<int> go{-1};
  std::thread writer([&] {
    go = 0;
    while (go == 0) idle();
    *byte = 1;
    go = 2;
  });
  while (go < 0) idle();  // a thread that starts blocks signals
  WriteHold hold;
  const bool held = hold.take(plain.range());
  EXPECT_TRUE(held);
  go = 1;
  for (int i = 0; i < 50; ++i) idle();
  EXPECT_EQ(go, 1);
  EXPECT_EQ(*byte, 0);
  hold.release();
  writer.join();
  EXPECT_EQ(*byte, 1);
}

TEST_F(WriteHoldTest, IsRefusedWhereAThreadBlocksFaults) {
  EXPECT_EQ(in_child([] {
              if (!can_hold_writes()) return 1;  // no other thread
              std::atomic<bool> ready{false};
              std::thread blocking([&] {
                sigset_t fault;
                sigemptyset(&fault);
                sigaddset(&fault, SIGSEGV);
                pthread_sigmask(SIG_BLOCK, &fault, nullptr);
                ready = true;
                while (true) idle();
              });
              while (!ready) idle();
              if (can_hold_writes()) return 2;
              Plain plain(1);
              WriteHold hold;
              if (hold.take(plain.range())) return 3;
              *plain.at(0) = 1;
              _exit(0);
            }),
            0);
}

// By turns, as a program does around a section that no handler may interrupt.
TEST_F(WriteHoldTest, AThreadIsAskedEachTimeWhetherItBlocksFaults) {
  EXPECT_EQ(in_child([] {
              std::atomic<int> turn{0};
              std::atomic<int> now{-1};
              std::thread other([&] {
                sigset_t fault;
                sigemptyset(&fault);
                sigaddset(&fault, SIGSEGV);
                while (true) {
                  const int wanted = turn;
                  pthread_sigmask(wanted % 2 != 0 ? SIG_BLOCK : SIG_UNBLOCK, &fault, nullptr);
                  now = wanted;
                  while (turn == wanted) idle();
                }
              });
              Plain plain(1);
              for (int i = 0; i < 4; ++i) {
                turn = i;
                while (now != i) idle();
                WriteHold hold;
                const bool blocks = i % 2 != 0;
                if (hold.take(plain.range()) == blocks) return 10 + i;
                if (can_hold_writes() == blocks) return 20 + i;
              }
              _exit(0);
            }),
            0);
}

TEST_F(WriteHoldTest, IsRefusedWhereAThreadCannotBeAsked) {
  EXPECT_EQ(in_child([] {
              Repeating other(idle);
              if (!can_hold_writes()) return 1;
              int last = -1;
              for (int each = dup(1); each >= 0; each = dup(1)) last = each;
              close(last);
              return can_hold_writes() ? 2 : 0;  // one descriptor is enough for the list alone
            }),
            0);
}

volatile sig_atomic_t faults_seen = 0;

TEST_F(WriteHoldTest, OtherFaultsGoToTheProgramsHandler) {
  EXPECT_EXIT(std::_Exit([] {
                struct sigaction action = {};
                action.sa_flags = SA_SIGINFO;
                action.sa_sigaction = [](int, siginfo_t* info, void*) {
                  faults_seen = faults_seen + 1;
                  const auto at = reinterpret_cast<std::uint64_t>(info->si_addr) / page * page;
                  mprotect(reinterpret_cast<void*>(at), page, PROT_READ | PROT_WRITE);
                };
                sigaction(SIGSEGV, &action, nullptr);
                Repeating other(idle);
                Plain held(1);
                Plain plain(1);
                WriteHold hold;
                if (!hold.take(held.range())) return 1;
                mprotect(plain.at(0), page, PROT_READ);
                *plain.at(0) = 1;
                hold.release();
                return faults_seen == 1 ? 0 : 2;
              }()),
              ::testing::ExitedWithCode(0), "");
}

TEST_F(WriteHoldTest, IsRefusedOnceTheProgramHasAHandlerOverOurs) {
  EXPECT_EQ(in_child([] {
              Repeating other(idle);
              if (!can_hold_writes()) return 1;
              signal(SIGSEGV, [](int) { _exit(9); });
              return can_hold_writes() ? 2 : 0;
            }),
            0);
}

TEST_F(WriteHoldTest, TheHoldersOwnStoreEndsTheProcess) {
  EXPECT_EXIT(std::_Exit([] {
                signal(SIGSEGV, SIG_DFL);
                Repeating other(idle);
                Plain plain(1);
                WriteHold hold;
                if (!hold.take(plain.range())) return 1;
                *plain.at(0) = 1;
                return 2;
              }()),
              ::testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(WriteHoldTest, ASignalFromAnotherProcessEndsThis) {
  EXPECT_EXIT(std::_Exit([] {
                signal(SIGSEGV, SIG_DFL);
                Repeating other(idle);
                if (!can_hold_writes()) return 1;
                kill(getpid(), SIGSEGV);
                usleep(1000);
                return 2;
              }()),
              ::testing::KilledBySignal(SIGSEGV), "");
}

}  // namespace
}  // namespace tombolo::host
