// SPDX-License-Identifier: Apache-2.0
// Tests of RCKMPI's two-sided messages: real bytes through the simulated buffers.
#include "baselines/rckmpi.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/random.h"
#include "baselines/testing.h"

namespace tombolo::baselines {
namespace {

using testing::fill;
using testing::is;
using testing::run;

TEST(Rckmpi, MessagesOfAllKindsOfSizes) {
  for (const std::uint32_t processes : {2u, 3u, 48u}) {
    const auto result = run(processes, [](Rckmpi& mpi) {
      const std::size_t sizes[] = {0, 1, 31, 32, 33, 127, 128, 129, 8160, 8161, 20'000, 140'000};
      for (const std::size_t bytes : sizes) {
        const Place place = mpi.memory().allocate(bytes);
        if (mpi.rank() == 0) {
          fill(place, bytes, bytes);
          mpi.send(place, bytes, 1, 7);
        } else if (mpi.rank() == 1) {
          const RequestState got = mpi.recv(place, bytes, 0, 7);
          EXPECT_EQ(got.bytes, bytes);
          EXPECT_TRUE(is(place, bytes, bytes)) << bytes << " bytes";
        }
      }
    });
    EXPECT_TRUE(result.status.ok()) << result.status.message();
  }
}

TEST(Rckmpi, BytesInTheSimulatedMemoryAndItsCaches) {
  const auto result = run(2, [](Rckmpi& mpi) {
    const Place place = mpi.memory().allocate_simulated(5000);
    std::vector<std::byte> bytes(5000);
    testing::fill(bytes.data(), bytes.size(), 3);
    if (mpi.rank() == 0) {
      store(mpi.cpu(), place, bytes.data(), bytes.size());
      mpi.send(place + 3, 4990, 1, 0);
    } else {
      mpi.recv(place + 5, 4990, 0, 0);
      std::vector<std::byte> got(4990);
      load(mpi.cpu(), place + 5, got.data(), got.size());
      EXPECT_EQ(std::memcmp(got.data(), bytes.data() + 3, got.size()), 0);
    }
  });
  EXPECT_TRUE(result.status.ok()) << result.status.message();
}

// Requests of rank 1 to memory for a message of 4,096 bytes, by whether it has read its target.
std::uint64_t written(bool read_before) {
  constexpr std::size_t message_bytes = 4096;
  std::uint64_t requests = 0;
  const auto result = run(2, [&](Rckmpi& mpi) {
    const Place place = mpi.memory().allocate(message_bytes);
    for (int message = 0; message < 2; ++message) {  // the first fills the channel's buffer
      if (mpi.rank() == 0) {
        mpi.send(place, message_bytes, 1, 0);
        continue;
      }
      if (read_before) touch_read(mpi.cpu(), place, message_bytes);
      const std::uint64_t before = mpi.cpu().counters().requests_written;
      mpi.recv(place, message_bytes, 0, 0);
      requests = mpi.cpu().counters().requests_written - before;
    }
  });
  EXPECT_TRUE(result.status.ok()) << result.status.message();
  return requests;
}

TEST(Rckmpi, StoresAMessageWordByWordWhereNothingIsCached) {
  EXPECT_GE(written(false), 4096 / 4);
  EXPECT_LT(written(true), 4096 / 4 / 4);
}

TEST(Rckmpi, UnexpectedMessagesAndTagsOutOfOrder) {
  const auto result = run(3, [](Rckmpi& mpi) {
    std::vector<Place> places;
    std::vector<Request> requests;
    for (int tag = 0; tag < 20; ++tag) {
      const std::size_t bytes = tag % 5 == 0 ? 150'000 : 1'000 + 10 * tag;
      places.push_back(mpi.memory().allocate(bytes));
      if (mpi.rank() == 2) continue;
      fill(places.back(), bytes, mpi.rank() * 100 + tag);
      requests.push_back(mpi.isend(places.back(), bytes, 2, tag));
    }
    if (mpi.rank() == 2) {
      for (int tag = 19; tag >= 0; --tag)
        for (const std::uint32_t from : {1u, 0u}) {
          const std::size_t bytes = tag % 5 == 0 ? 150'000 : 1'000 + 10 * tag;
          const RequestState got = mpi.recv(places[tag], bytes, static_cast<int>(from), tag);
          EXPECT_EQ(got.bytes, bytes);
          EXPECT_EQ(got.from, from);
          EXPECT_TRUE(is(places[tag], bytes, from * 100 + tag)) << "tag " << tag;
        }
    }
    mpi.wait_all(requests);
  });
  EXPECT_TRUE(result.status.ok()) << result.status.message();
}

// Random sizes and tags between all processes, by receives that name the source, the tag, both or
// neither.
TEST(Rckmpi, RandomMessages) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    constexpr int message_kinds = 12;
    const std::uint32_t processes = 2 + static_cast<std::uint32_t>(Random(seed).below(7));
    const auto bytes_of = [seed](std::uint32_t from, std::uint32_t to, int n) {
      return 1 + Random::stream(seed, from * 10'000 + to * 100 + n).below(n % 6 == 5 ? 9000 : 300);
    };
    const auto result = run(processes, [&](Rckmpi& mpi) {
      std::vector<Request> sends;
      for (int n = 0; n < message_kinds; ++n)
        for (std::uint32_t to = 0; to < mpi.size(); ++to) {
          const std::size_t bytes = bytes_of(mpi.rank(), to, n);
          const Place place = mpi.memory().allocate(bytes);
          fill(place, bytes, mpi.rank() * 100 + n);
          sends.push_back(mpi.isend(place, bytes, to, n));
        }
      const Place in = mpi.memory().allocate(9000);
      if (seed % 2 == 0) {
        std::vector<int> next(mpi.size());
        for (std::uint32_t i = 0; i < mpi.size() * message_kinds; ++i) {
          const RequestState got = mpi.recv(in, 9000, any, any);
          EXPECT_EQ(got.tag, next[got.from]++) << "T1";
          EXPECT_EQ(got.bytes, bytes_of(got.from, mpi.rank(), got.tag));
          EXPECT_TRUE(is(in, got.bytes, got.from * 100 + got.tag));
        }
      } else {
        for (int n = message_kinds - 1; n >= 0; --n)
          for (std::uint32_t i = 0; i < mpi.size(); ++i) {
            const RequestState got = mpi.recv(in, 9000, any, n);
            EXPECT_EQ(got.bytes, bytes_of(got.from, mpi.rank(), n));
            EXPECT_TRUE(is(in, got.bytes, got.from * 100 + n));
          }
      }
      mpi.wait_all(sends);
    });
    EXPECT_TRUE(result.status.ok()) << result.status.message();
  }
}

TEST(Rckmpi, ManyToOne) {
  const auto result = run(24, [](Rckmpi& mpi) {
    const Place place = mpi.memory().allocate(3000);
    if (mpi.rank() == 0) {
      for (std::uint32_t i = 1; i < mpi.size(); ++i) {
        const RequestState got = mpi.recv(place, 3000, any, 1);
        EXPECT_TRUE(is(place, 3000, got.from));
      }
    } else {
      fill(place, 3000, mpi.rank());
      mpi.send(place, 3000, 0, 1);
    }
  });
  EXPECT_TRUE(result.status.ok()) << result.status.message();
}

TEST(Rckmpi, Collectives) {
  for (const std::uint32_t processes : {1u, 2u, 5u, 16u}) {
    const auto result = run(processes, [](Rckmpi& mpi) {
      const std::size_t each = 700;
      const Place out = mpi.memory().allocate(each * mpi.size());
      const Place in = mpi.memory().allocate(each * mpi.size());
      for (std::uint32_t to = 0; to < mpi.size(); ++to)
        fill(out + to * each, each, mpi.rank() * 100 + to);
      mpi.all_to_all(out, in, each);
      for (std::uint32_t from = 0; from < mpi.size(); ++from)
        EXPECT_TRUE(is(in + from * each, each, from * 100 + mpi.rank()));
      std::uint64_t numbers[] = {1, mpi.rank()};
      mpi.all_reduce(numbers, 2);
      EXPECT_EQ(numbers[0], mpi.size());
      EXPECT_EQ(numbers[1], std::uint64_t{mpi.size()} * (mpi.size() - 1) / 2);
    });
    EXPECT_TRUE(result.status.ok()) << result.status.message();
  }
}

TEST(Rckmpi, BarrierWaitsForTheLast) {
  const auto result = run(7, [](Rckmpi& mpi) {
    if (mpi.rank() == 3) mpi.cpu().compute(simulator::Duration::milliseconds(1));
    mpi.barrier();
    EXPECT_GT(mpi.cpu().now().since_start(), simulator::Duration::milliseconds(1));
  });
  EXPECT_TRUE(result.status.ok()) << result.status.message();
}

// A message that never comes is polled for: the run ends at its limit and says so.
TEST(Rckmpi, AReceiveWithoutASendEndsAtTheLimit) {
  const auto result = run(2, [](Rckmpi& mpi) {
    const Place place = mpi.memory().allocate(4);
    if (mpi.rank() == 1) mpi.recv(place, 4, 0, 1);
  });
  EXPECT_EQ(result.ending, simulator::Ending::time_limit);
  EXPECT_FALSE(result.status.ok());
}

// Broken twins: without the invalidation the sequence in L1 stays as it was; without the flush
// the sequence stays in the combining buffer.
TEST(Rckmpi, NeedsItsInvalidationAndItsFlush) {
  const auto exchange = [](Omitted omitted) {
    return run(
        2,
        [](Rckmpi& mpi) {
          const Place place = mpi.memory().allocate(100);
          for (int i = 0; i < 10; ++i) {
            if (mpi.rank() == 0) mpi.send(place, 100, 1, i);
            if (mpi.rank() == 1) mpi.recv(place, 100, 0, i);
          }
        },
        omitted);
  };
  EXPECT_TRUE(exchange({}).status.ok());
  EXPECT_EQ(exchange({.invalidation = true}).ending, simulator::Ending::time_limit);
  EXPECT_EQ(exchange({.flush = true}).ending, simulator::Ending::time_limit);
}

TEST(Rckmpi, ABufferWithoutRoomForSoManySectionsIsRefused) {
  scc::Parameters chip;
  ASSERT_TRUE(scc::find_parameters("mesh-32x32", &chip).ok());
  EXPECT_TRUE(Channel::fits(chip, 48).ok());
  const Status status = Channel::fits(chip, chip.cores());
  EXPECT_EQ(status.code(), Code::bad_configuration);
}

}  // namespace
}  // namespace tombolo::baselines
