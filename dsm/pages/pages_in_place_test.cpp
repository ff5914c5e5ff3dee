// SPDX-License-Identifier: Apache-2.0
// Purpose: a page store whose pages lie in memory of its caller, by each mechanism: others see the
// program's stores there as they are made; and pages that are left to the program.
// Thread safety: -
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <string>
#include <vector>

#include "dsm/pages/fault_pages.h"
#include "host/memory/page.h"
#include "host/memory/testing/memory.h"

namespace tombolo::dsm {
namespace {

using host::FaultMechanism;

const std::size_t host_page = host::page_bytes();

// Installs pages that are filled with 1 + page, and counts.
class Filling : public MissHandler {
 public:
  explicit Filling(FaultPages& pages) : pages_(pages) {}
  Status read_miss(Page page) override {
    ++reads;
    if (pages_.full()) pages_.invalidate(pages_.victim());
    pages_.install(page, std::vector<std::byte>(host_page, std::byte(1 + page)));
    return {};
  }
  Status write_miss(Page page) override {
    ++writes;
    if (pages_.lookup(page) == nullptr) TOMBOLO_TRY(read_miss(page));
    pages_.allow_writes(page);
    return {};
  }
  int reads = 0;
  int writes = 0;

 private:
  FaultPages& pages_;
};

class PagesInPlaceTest : public ::testing::TestWithParam<FaultMechanism> {
 protected:
  static constexpr Page number = 64;

  void SetUp() override {
    const Status status = host::available(GetParam());
    if (!status.ok()) GTEST_SKIP() << status.message();
    frames = map(MAP_SHARED);
    make(8);
  }
  void TearDown() override {
    pages.reset();
    if (frames != nullptr) munmap(frames, number * host_page);
  }
  static std::byte* map(int kind) {
    void* const at =
        mmap(nullptr, number * host_page, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
  }
  void make(std::uint32_t cached) {
    const Shape shape{.pages = number, .page_bytes = host_page, .cached_pages = cached};
    const Status made =
        FaultPages::create(shape, {.mechanism = GetParam(), .frames = frames}, pages);
    ASSERT_TRUE(made.ok()) << made.message();
    handler = std::make_unique<Filling>(*pages);
    pages->on_miss(*handler);
  }
  volatile char& at(Page page, std::size_t offset = 0) {
    return *reinterpret_cast<char*>(pages->memory().data() + page * host_page + offset);
  }
  int beside(Page page, std::size_t offset = 0) const {
    return static_cast<int>(frames[page * host_page + offset]);
  }

  std::byte* frames = nullptr;
  std::unique_ptr<FaultPages> pages;
  std::unique_ptr<Filling> handler;
};

TEST_P(PagesInPlaceTest, StoresAreInTheCallersMemoryAtOnce) {
  EXPECT_TRUE(pages->in_place());
  at(5, 3) = 77;
  EXPECT_EQ(beside(5, 3), 77);
  EXPECT_EQ(beside(5, 4), 6) << "as it was installed";
  frames[5 * host_page + 4] = std::byte{9};
  EXPECT_EQ(at(5, 4), 9);
  EXPECT_EQ(pages->frame(5).data(), frames + 5 * host_page);
  EXPECT_EQ(at(63), 64);
  EXPECT_EQ(beside(63), 64);
}

TEST_P(PagesInPlaceTest, APageHasTheSlotOfItsNumber) {
  for (const Page page : {Page{9}, Page{0}, Page{63}}) {
    EXPECT_EQ(at(page), 1 + static_cast<int>(page));
    EXPECT_EQ(pages->slot(page), page);
  }
  at(9) = 50;
  pages->make_twin(9);
  at(9) = 51;
  EXPECT_EQ(pages->twin(9)[0], std::byte{50}) << "twins have slots of their own";
  EXPECT_EQ(pages->twin(9).size(), host_page);
}

TEST_P(PagesInPlaceTest, MemoryOfPagesThatHaveGoneIsGivenBack) {
  for (Page page = 0; page < number; ++page) EXPECT_EQ(at(page), 1 + static_cast<int>(page));
  std::vector<unsigned char> resident(number);
  ASSERT_EQ(mincore(frames, number * host_page, resident.data()), 0);
  int have_memory = 0;
  for (const unsigned char page : resident) have_memory += page & 1;
  EXPECT_LE(have_memory, 8);
  for (Page page = 0; page < number; ++page) EXPECT_EQ(at(page), 1 + static_cast<int>(page));
}

TEST_P(PagesInPlaceTest, TheCallersMemoryOutlivesTheStore) {
  at(2) = 42;
  pages.reset();
  EXPECT_EQ(beside(2), 42);
  frames[0] = std::byte{1};
}

// The mechanism maps the memory a second time, which the kernel does of shared memory alone.
TEST_P(PagesInPlaceTest, PrivateMemoryIsRefused) {
  std::byte* const private_memory = map(MAP_PRIVATE);
  ASSERT_NE(private_memory, nullptr);
  const Shape shape{.pages = number, .page_bytes = host_page, .cached_pages = 8};
  std::unique_ptr<FaultPages> none;
  const Status made =
      FaultPages::create(shape, {.mechanism = GetParam(), .frames = private_memory}, none);
  EXPECT_FALSE(made.ok());
  EXPECT_EQ(none, nullptr);
  munmap(private_memory, number * host_page);
}

TEST_P(PagesInPlaceTest, AStoreOfItsOwnHasSlotsOfItsOwn) {
  std::unique_ptr<FaultPages> own;
  const Shape shape{.pages = number, .page_bytes = host_page, .cached_pages = 8};
  ASSERT_TRUE(FaultPages::create(shape, {.mechanism = GetParam()}, own).ok());
  EXPECT_FALSE(own->in_place());
}

// ---- Pages that are left to the program ---------------------------------------------------------

TEST_P(PagesInPlaceTest, StoresToPagesThatAreLeftAreNotMetNorListed) {
  EXPECT_EQ(at(1), 2);
  pages->leave_to_program(1);
  EXPECT_EQ(handler->writes, 0);
  at(1) = 7;
  EXPECT_EQ(handler->writes, 0);
  EXPECT_TRUE(pages->writable(1));
  EXPECT_EQ(pages->written(), std::vector<Page>{});
  EXPECT_EQ(pages->cached(), std::vector<Page>{1});
  pages->allow_writes(1);
  EXPECT_EQ(pages->written(), std::vector<Page>{1});
  pages->leave_to_program(1);
  pages->forbid_writes(1);
  EXPECT_FALSE(pages->writable(1));
  at(1) = 8;
  EXPECT_EQ(handler->writes, 1);
}

TEST_P(PagesInPlaceTest, PagesThatAreLeftGiveWayLast) {
  pages->on_miss(*handler);
  for (Page page = 10; page < 14; ++page) {
    EXPECT_EQ(at(page), 1 + static_cast<int>(page));
    pages->leave_to_program(page);
  }
  at(20) = 1;
  for (Page page = 30; page < 33; ++page) EXPECT_EQ(at(page), 1 + static_cast<int>(page));
  EXPECT_EQ(pages->victim(), 20U) << "of the readable ones all were missed lately";
  pages->invalidate(20);
  EXPECT_EQ(pages->victim(), 10U);
  EXPECT_EQ(pages->cached().size(), 7U);
}

TEST_P(PagesInPlaceTest, PagesThatAreLeftCountAsCached) {
  for (Page page = 0; page < 8; ++page) {
    EXPECT_FALSE(pages->full()) << page;
    EXPECT_EQ(at(page), 1 + static_cast<int>(page));
    pages->leave_to_program(page);
  }
  EXPECT_TRUE(pages->full());
}

INSTANTIATE_TEST_SUITE_P(Mechanisms, PagesInPlaceTest,
                         ::testing::Values(FaultMechanism::userfault, FaultMechanism::protection),
                         [](const auto& of) { return std::string(host::name_of(of.param)); });

}  // namespace
}  // namespace tombolo::dsm
