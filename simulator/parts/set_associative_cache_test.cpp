// SPDX-License-Identifier: Apache-2.0
// The cache: one behaviour each, then random operations against a naive model that keeps a list of
// lines per set and searches it.
#include "simulator/parts/set_associative_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/random.h"

namespace tombolo::simulator {
namespace {

constexpr std::size_t line_size = 32;
constexpr LineKind plain = 0;
constexpr LineKind message_kinds = 1;
constexpr CacheShape small{.bytes = 8 * line_size, .ways = 4, .line_size = LineSize(line_size)};

using Bytes = std::vector<std::byte>;

Bytes filled(int value) { return Bytes(line_size, static_cast<std::byte>(value)); }

int byte_at(SetAssociativeCache& cache, std::uint64_t address) {
  std::byte value{};
  return cache.read(Address(address), &value, 1) ? static_cast<int>(value) : -1;
}

WriteOutcome put(SetAssociativeCache& cache, std::uint64_t address, int value, WritePolicy policy) {
  const auto byte = static_cast<std::byte>(value);
  return cache.write(Address(address), &byte, 1, policy);
}

TEST(SetAssociativeCache, ReturnsWhatItWasFilledWithWhateverMemorySaysNow) {
  SetAssociativeCache cache(small);
  Bytes memory = filled(1);
  EXPECT_EQ(byte_at(cache, 5), -1);
  EXPECT_FALSE(cache.fill(Line(0), plain, memory.data()).has_value());
  memory = filled(2);
  EXPECT_EQ(byte_at(cache, 5), 1);
}

TEST(SetAssociativeCache, AWriteIsKeptOrSentOnByItsPolicy) {
  SetAssociativeCache cache(small);
  cache.fill(Line(0), plain, filled(1).data());
  EXPECT_EQ(put(cache, 3, 7, WritePolicy::write_through), WriteOutcome::sent_on);
  EXPECT_EQ(byte_at(cache, 3), 7);
  EXPECT_FALSE(cache.look(Line(0))->dirty);
  EXPECT_EQ(put(cache, 4, 8, WritePolicy::write_back), WriteOutcome::kept);
  EXPECT_TRUE(cache.look(Line(0))->dirty);
  EXPECT_EQ(byte_at(cache, 4), 8);
}

TEST(SetAssociativeCache, AWriteMissAllocatesOnlyWhereTheCacheDoes) {
  SetAssociativeCache without(small);
  EXPECT_EQ(put(without, 3, 7, WritePolicy::write_back), WriteOutcome::sent_on);
  EXPECT_EQ(byte_at(without, 3), -1);
  CacheShape shape = small;
  shape.allocate_on_write_miss = true;
  SetAssociativeCache with(shape);
  EXPECT_EQ(put(with, 3, 7, WritePolicy::write_back), WriteOutcome::must_fill);
}

TEST(SetAssociativeCache, C2AVictimIsAnInvalidWayElseByPseudoLru) {
  SetAssociativeCache cache(small);  // 2 sets: even lines in the first
  for (std::uint64_t n : {0, 2, 4, 6}) {
    EXPECT_FALSE(cache.fill(Line(n), plain, filled(static_cast<int>(n)).data()).has_value());
  }
  put(cache, 4 * line_size + 1, 99, WritePolicy::write_back);
  EXPECT_EQ(cache.fill(Line(8), plain, filled(8).data())->line, Line(0));
  const auto victim = cache.fill(Line(10), plain, filled(10).data());
  ASSERT_TRUE(victim.has_value());
  EXPECT_EQ(victim->line, Line(6));
  cache.evict(Line(8));
  EXPECT_FALSE(cache.fill(Line(12), plain, filled(12).data()).has_value());
  EXPECT_TRUE(cache.look(Line(4))->dirty);
}

TEST(SetAssociativeCache, ADirtyVictimCarriesItsWholeLine) {
  SetAssociativeCache cache({.bytes = line_size, .ways = 1, .line_size = LineSize(line_size)});
  cache.fill(Line(0), message_kinds, filled(1).data());
  put(cache, 2, 9, WritePolicy::write_back);
  const auto victim = cache.fill(Line(1), plain, filled(3).data());
  ASSERT_TRUE(victim && victim->dirty);
  EXPECT_EQ(victim->kind, message_kinds);
  Bytes expected = filled(1);
  expected[2] = std::byte{9};
  EXPECT_EQ(Bytes(victim->bytes, victim->bytes + line_size), expected);
}

TEST(SetAssociativeCache, C3InvalidatingAKindLosesItsDirtyBytesAndSparesOthers) {
  SetAssociativeCache cache(small);
  cache.fill(Line(0), message_kinds, filled(1).data());
  cache.fill(Line(1), plain, filled(2).data());
  put(cache, 0, 9, WritePolicy::write_back);
  cache.invalidate_kind(message_kinds);
  EXPECT_EQ(byte_at(cache, 0), -1);
  EXPECT_EQ(byte_at(cache, line_size), 2);
  int written = 0;
  cache.flush([&](const CachedLine&) { ++written; });
  EXPECT_EQ(written, 0);
  cache.fill(Line(0), message_kinds, filled(4).data());
  EXPECT_EQ(byte_at(cache, 0), 4) << "lines filled after it are there";
}

TEST(SetAssociativeCache, FlushHandsOutDirtyLinesAndEmptiesTheCache) {
  SetAssociativeCache cache(small);
  for (std::uint64_t n = 0; n < 4; ++n) cache.fill(Line(n), plain, filled(0).data());
  put(cache, 3 * line_size, 1, WritePolicy::write_back);
  put(cache, 0, 1, WritePolicy::write_back);
  std::string written;
  cache.flush([&](const CachedLine& l) { written += std::to_string(l.line.number()); });
  EXPECT_EQ(written, "03");
  int left = 0;
  cache.visit([&](const CachedLine&) { ++left; });
  EXPECT_EQ(left, 0);
}

TEST(SetAssociativeCache, WriteBackOfSomeLeavesThemCleanAndTheRestDirty) {
  SetAssociativeCache cache(small);
  for (std::uint64_t n = 0; n < 2; ++n) {
    cache.fill(Line(n), plain, filled(0).data());
    put(cache, n * line_size, 5, WritePolicy::write_back);
  }
  int written = 0;
  cache.write_back_if([](const CachedLine& l) { return l.line == Line(1); },
                      [&](const CachedLine&) { ++written; });
  EXPECT_EQ(written, 1);
  EXPECT_TRUE(cache.look(Line(0))->dirty);
  EXPECT_FALSE(cache.look(Line(1))->dirty);
  EXPECT_EQ(byte_at(cache, line_size), 5);
}

// ---- Against a naive model ----------------------------------------------------------------------

class Naive {
 public:
  explicit Naive(const CacheShape& shape)
      : shape_(shape), sets_(shape.bytes / shape.line_size.bytes() / shape.ways) {
    for (std::size_t set = 0; set < sets_; ++set) ways_[set].resize(shape.ways);
    for (std::size_t set = 0; set < sets_; ++set) older_half_[set].resize(shape.ways, 0);
  }

  struct Way {
    bool valid = false;
    Line line;
    LineKind kind = 0;
    bool dirty = false;
    Bytes bytes;
  };

  Way* find(Line line) {
    for (Way& way : ways_[line.number() % sets_]) {
      if (way.valid && way.line == line) return &way;
    }
    return nullptr;
  }

  Way* use(Line line) {
    Way* way = find(line);
    if (way != nullptr) touch(line.number() % sets_, way);
    return way;
  }

  Way fill(Line line, LineKind kind, const Bytes& bytes) {
    const std::size_t set = line.number() % sets_;
    auto& ways = ways_[set];
    auto at = std::find_if(ways.begin(), ways.end(), [](const Way& w) { return !w.valid; });
    if (at == ways.end()) at = ways.begin() + oldest(set, 0, shape_.ways);
    Way gone = *at;
    *at = {true, line, kind, false, bytes};
    touch(set, &*at);
    return gone;
  }

  std::vector<Way*> held() {
    std::vector<Way*> found;
    for (auto& [set, ways] : ways_) {
      for (Way& way : ways) {
        if (way.valid) found.push_back(&way);
      }
    }
    return found;
  }

 private:
  // Pseudo-LRU by halving: for the ways [from, to), which half was used longer ago.
  long oldest(std::size_t set, std::uint32_t from, std::uint32_t to) {
    if (to - from == 1) return from;
    const std::uint32_t middle = (from + to) / 2;
    return older_half_[set][middle] == 0 ? oldest(set, from, middle) : oldest(set, middle, to);
  }
  void touch(std::size_t set, const Way* used) {
    const auto way = static_cast<std::uint32_t>(used - ways_[set].data());
    std::uint32_t from = 0;
    std::uint32_t to = shape_.ways;
    while (to - from > 1) {
      const std::uint32_t middle = (from + to) / 2;
      older_half_[set][middle] = way < middle ? 1 : 0;
      (way < middle ? to : from) = middle;
    }
  }

  CacheShape shape_;
  std::size_t sets_;
  std::map<std::size_t, std::vector<Way>> ways_;
  std::map<std::size_t, std::vector<int>> older_half_;
};

void expect_same(const std::optional<CachedLine>& line, const Naive::Way* way) {
  ASSERT_EQ(line.has_value(), way != nullptr && way->valid);
  if (!line) return;
  ASSERT_EQ(line->line, way->line);
  ASSERT_EQ(line->kind, way->kind);
  ASSERT_EQ(line->dirty, way->dirty);
  ASSERT_EQ(Bytes(line->bytes, line->bytes + way->bytes.size()), way->bytes);
}

class Comparison {
 public:
  Comparison(const CacheShape& shape, std::uint64_t seed)
      : shape_(shape), random_(seed), cache_(shape), naive_(shape) {}

  void step() {
    const Line line(random_.below(40));
    const Address address = shape_.line_size.first(line) + random_.below(shape_.line_size.bytes());
    const std::size_t room = shape_.line_size.bytes() - shape_.line_size.offset(address);
    const std::size_t bytes = 1 + random_.below(room);
    switch (random_.below(24)) {
      default:
        access(line, address, bytes);
        break;
      case 0:
        invalidate(static_cast<LineKind>(random_.below(3)));
        break;
      case 1:
        write_back(random_.below(5));
        break;
      case 2: {
        Naive::Way* way = naive_.find(line);
        expect_same(cache_.evict(line), way);
        if (way != nullptr) way->valid = false;
        break;
      }
      case 3:
        if (random_.one_in(20)) empty();
        break;
    }
    std::size_t held = 0;
    cache_.visit([&](const CachedLine& l) {
      ++held;
      expect_same(l, naive_.find(l.line));
    });
    ASSERT_EQ(held, naive_.held().size());
  }

 private:
  Bytes random_bytes(std::size_t n) {
    Bytes bytes(n);
    for (std::byte& b : bytes) b = static_cast<std::byte>(random_.below(256));
    return bytes;
  }

  void access(Line line, Address address, std::size_t bytes) {
    Naive::Way* way = naive_.use(line);
    const std::size_t offset = shape_.line_size.offset(address);
    if (random_.one_in(2)) {
      Bytes got(bytes);
      ASSERT_EQ(cache_.read(address, got.data(), bytes), way != nullptr);
      if (way != nullptr) {
        ASSERT_TRUE(std::equal(got.begin(), got.end(), way->bytes.begin() + long(offset)));
      } else {
        fill(line);
      }
      return;
    }
    const Bytes put = random_bytes(bytes);
    const WritePolicy policy =
        random_.one_in(2) ? WritePolicy::write_back : WritePolicy::write_through;
    const WriteOutcome outcome = cache_.write(address, put.data(), bytes, policy);
    if (way == nullptr) {
      ASSERT_EQ(outcome,
                shape_.allocate_on_write_miss ? WriteOutcome::must_fill : WriteOutcome::sent_on);
      if (outcome == WriteOutcome::must_fill) fill(line);
      return;
    }
    std::copy(put.begin(), put.end(), way->bytes.begin() + long(offset));
    way->dirty = way->dirty || policy == WritePolicy::write_back;
    ASSERT_EQ(outcome,
              policy == WritePolicy::write_back ? WriteOutcome::kept : WriteOutcome::sent_on);
  }

  void fill(Line line) {
    const auto kind = static_cast<LineKind>(random_.below(3));
    const Bytes bytes = random_bytes(shape_.line_size.bytes());
    const Naive::Way gone = naive_.fill(line, kind, bytes);
    expect_same(cache_.fill(line, kind, bytes.data()), &gone);
  }

  void invalidate(LineKind kind) {
    if (random_.one_in(2)) {
      cache_.invalidate_kind(kind);
    } else {
      cache_.invalidate_if([&](const CachedLine& l) { return l.kind == kind; });
    }
    for (Naive::Way* way : naive_.held()) way->valid = way->kind != kind;
  }

  void write_back(std::uint64_t remainder) {
    std::vector<Line> lines;
    std::vector<Line> expected;
    cache_.write_back_if([&](const CachedLine& l) { return l.line.number() % 5 == remainder; },
                         [&](const CachedLine& l) { lines.push_back(l.line); });
    for (Naive::Way* way : naive_.held()) {
      if (!way->dirty || way->line.number() % 5 != remainder) continue;
      way->dirty = false;
      expected.push_back(way->line);
    }
    ASSERT_EQ(lines, expected) << "SA4";
  }

  void empty() {
    std::size_t dirty = 0;
    cache_.flush([&](const CachedLine&) { ++dirty; });
    for (Naive::Way* way : naive_.held()) {
      dirty -= way->dirty ? 1 : 0;
      way->valid = false;
    }
    ASSERT_EQ(dirty, 0u);
  }

  CacheShape shape_;
  Random random_;
  SetAssociativeCache cache_;
  Naive naive_;
};

TEST(SetAssociativeCache, DoesWhatANaiveModelDoes) {
  std::uint64_t seed = 0;
  for (const auto& [bytes, ways, line] :
       {std::tuple<std::size_t, std::uint32_t, std::size_t>{512, 4, 32},
        {512, 2, 64},
        {256, 8, 32},
        {128, 1, 16},
        {64, 4, 16}}) {
    for (const bool allocate : {false, true}) {
      Comparison comparison({bytes, ways, LineSize(line), allocate}, ++seed);
      for (int i = 0; i < 4000 && !testing::Test::HasFatalFailure(); ++i) comparison.step();
    }
  }
}

TEST(SetAssociativeCacheDeathTest, MisuseStopsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(SetAssociativeCache({.bytes = 96, .ways = 1, .line_size = LineSize(32)}),
               "not a power of two of sets");
  EXPECT_DEATH(byte_at(*std::make_unique<SetAssociativeCache>(
                           CacheShape{.bytes = 256, .ways = 3, .line_size = LineSize(32)}),
                       0),
               "3 ways");
  SetAssociativeCache cache(small);
  Bytes two(2);
  EXPECT_DEATH(cache.read(Address(31), two.data(), 2), "not in one line");
  cache.fill(Line(1), plain, filled(0).data());
  EXPECT_DEATH(cache.fill(Line(1), plain, filled(0).data()), "already there");
}

}  // namespace
}  // namespace tombolo::simulator
