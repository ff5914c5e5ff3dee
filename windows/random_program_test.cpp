// SPDX-License-Identifier: Apache-2.0
// Random correct programs against a sequential model. Every process draws the same program from the
// seed, does its own part of it, and keeps a model of all regions.
//
// A program is a sequence of rounds. In each the owners store into their regions, an epoch of a
// random kind follows, and the owners look at all their bytes. In an epoch each byte is written by
// at most one origin or else may be read by all; elements of the accumulated part are updated by
// many.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/random.h"
#include "windows/testing/processes.h"

namespace tombolo::windows::testing {
namespace {

constexpr Home processes = 4;
constexpr std::size_t plain_bytes = 896;  // put, got and stored
constexpr std::size_t elements = 16;      // accumulated, behind the plain bytes
constexpr std::size_t element_bytes = 8;
constexpr std::size_t region_bytes = plain_bytes + elements * element_bytes;
constexpr int rounds = 40;

enum class Kind { fence, post_wait, exclusive, shared, all };
constexpr std::uint64_t kinds = 5;

// The use of a part of a region in an epoch.
enum class Act { read, put, add_by_all, add_by_one, get_and_put };
struct Piece {
  Home home;
  Offset at;
  std::size_t bytes;
  Act act;
  Home actor;  // for put and add_by_one
};

struct Round {
  int number;
  Kind kind;
  std::vector<Piece> stores;  // by the owners, before the epoch
  std::vector<Piece> pieces;
  std::array<std::array<bool, processes>, processes> reaches;  // by origin and target
};

class RandomProgram {
 public:
  RandomProgram(Process& p, std::uint64_t seed)
      : p_(p), seed_(seed), mine_(Random::stream(seed, 1000 + p.self())) {}

  void run() {
    p_.barrier();
    for (int number = 0; number < rounds; ++number) {
      const Round round = draw(number);
      store(round);
      act(round);
      check(round);
    }
  }

 private:
  // Drawing: the same in all processes -----------------------------------------------------------

  Round draw(int number) {
    Random random = Random::stream(seed_, static_cast<std::uint64_t>(number));
    Round round{.number = number,
                .kind = static_cast<Kind>(random.below(kinds)),
                .stores = {},
                .pieces = {},
                .reaches = {}};
    for (auto& row : round.reaches)
      for (bool& reaches : row) reaches = round.kind != Kind::post_wait || random.one_in(2);
    for (Home home = 0; home < processes; ++home) {
      draw_stores(random, home, round);
      draw_pieces(random, home, round);
    }
    return round;
  }

  void draw_stores(Random& random, Home home, Round& round) {
    for (std::uint64_t i = random.below(6); i > 0; --i) {
      const std::size_t bytes = 1 + random.below(70);
      round.stores.push_back({home, random.below(plain_bytes - bytes), bytes, Act::put, home});
    }
  }

  void draw_pieces(Random& random, Home home, Round& round) {
    std::size_t at = 0;
    while (at < plain_bytes) {
      const std::size_t bytes = std::min<std::size_t>(1 + random.below(40), plain_bytes - at);
      const auto actor = static_cast<Home>(random.below(processes));
      const bool put = random.one_in(2) && round.reaches[actor][home];
      round.pieces.push_back({home, at, bytes, put ? Act::put : Act::read, actor});
      at += bytes;
    }
    for (std::size_t i = 0; i < elements; ++i, at += element_bytes) {
      const auto actor = static_cast<Home>(random.below(processes));
      Act act = static_cast<Act>(random.below(5));
      if (act == Act::put) act = Act::add_by_all;
      if (act == Act::get_and_put && round.kind != Kind::exclusive) act = Act::read;
      if (act == Act::add_by_one && !round.reaches[actor][home]) act = Act::read;
      round.pieces.push_back({home, at, element_bytes, act, actor});
    }
  }

  // The byte that a piece brings to its place `at`.
  static std::byte value(const Round& round, const Piece& piece, Offset at) {
    return static_cast<std::byte>(
        (static_cast<Offset>(round.number) * 131 + piece.actor * 57 + piece.home * 29 + at) % 251);
  }
  static std::int64_t amount(const Round& round, const Piece& piece, Home origin) {
    return round.number * 10 + static_cast<std::int64_t>(piece.at + origin);
  }

  // The model ------------------------------------------------------------------------------------

  std::byte* modelled(const Piece& piece) { return &model_[piece.home][piece.at]; }
  std::int64_t modelled_element(const Piece& piece) {
    std::int64_t v = 0;
    std::memcpy(&v, modelled(piece), sizeof v);
    return v;
  }
  std::vector<std::byte> brought(const Round& round, const Piece& piece) {
    std::vector<std::byte> bytes(piece.bytes);
    for (std::size_t i = 0; i < piece.bytes; ++i) bytes[i] = value(round, piece, piece.at + i);
    return bytes;
  }

  void update_model(const Round& round) {
    for (const Piece& piece : round.pieces) {
      if (piece.act == Act::read) continue;
      if (piece.act == Act::put) {
        const std::vector<std::byte> bytes = brought(round, piece);
        std::memcpy(modelled(piece), bytes.data(), bytes.size());
        continue;
      }
      std::int64_t sum = modelled_element(piece);
      for (Home origin = 0; origin < processes; ++origin)
        if (acts(round, piece, origin)) sum += amount(round, piece, origin);
      std::memcpy(modelled(piece), &sum, sizeof sum);
    }
  }

  static bool acts(const Round& round, const Piece& piece, Home origin) {
    if (!round.reaches[origin][piece.home]) return false;
    if (piece.act == Act::put || piece.act == Act::add_by_one) return piece.actor == origin;
    return true;
  }

  // Doing ----------------------------------------------------------------------------------------

  void store(const Round& round) {
    for (const Piece& piece : round.stores) {
      const std::vector<std::byte> bytes = brought(round, piece);
      std::memcpy(modelled(piece), bytes.data(), bytes.size());
      if (piece.home == p_.self()) p_.store_bytes(piece.home, piece.at, bytes.data(), bytes.size());
    }
  }

  void act(const Round& round) {
    switch (round.kind) {
      case Kind::fence:
        p_.fence();
        communicate(round, everyone());
        p_.fence({.no_succeed = mine_.one_in(2)});
        return;
      case Kind::post_wait:
        return post_and_wait(round);
      case Kind::exclusive:
      case Kind::shared:
      case Kind::all:
        break;
    }
    announce_stores();
    p_.barrier();
    if (round.kind == Kind::exclusive) hold_exclusive(round);
    if (round.kind == Kind::shared) hold_shared(round);
    if (round.kind == Kind::all) hold_all(round);
    p_.barrier();
    look_again();
  }

  void post_and_wait(const Round& round) {
    std::vector<Home> origins, targets;
    for (Home home : everyone()) {
      if (round.reaches[home][p_.self()]) origins.push_back(home);
      if (round.reaches[p_.self()][home]) targets.push_back(home);
    }
    p_.post(origins);
    p_.start(targets);
    communicate(round, targets);
    p_.complete();
    if (mine_.one_in(2)) {
      while (!p_.test()) p_.pause();
    } else {
      p_.wait();
    }
  }

  void hold_exclusive(const Round& round) {
    for (const Home target : everyone()) {
      p_.lock_exclusive(target);
      communicate(round, {target});
      p_.unlock(target);
    }
  }
  void hold_shared(const Round& round) {
    const std::vector<Home> targets = everyone();
    for (const Home target : targets) p_.lock_shared(target);
    communicate(round, targets);
    for (const Home target : everyone()) p_.unlock(target);
  }
  void hold_all(const Round& round) {
    p_.lock_all();
    communicate(round, everyone());
    p_.unlock_all();
  }

  // Any call that publishes will do.
  void announce_stores() {
    const Home home = static_cast<Home>(mine_.below(processes));
    switch (mine_.below(3)) {
      case 0:
        return p_.sync();
      case 1:
        p_.lock_shared(home);
        return p_.unlock(home);
      default:
        p_.lock_all();
        return p_.unlock_all();
    }
  }
  // Any call that refreshes.
  void look_again() { announce_stores(); }

  // In random order.
  std::vector<Home> everyone() {
    std::vector<Home> homes;
    for (Home home = 0; home < processes; ++home) homes.push_back(home);
    shuffle(homes);
    return homes;
  }
  template <class T>
  void shuffle(std::vector<T>& list) {
    for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[mine_.below(i)]);
  }

  void communicate(const Round& round, const std::vector<Home>& targets) {
    std::vector<const Piece*> pieces;
    for (const Piece& piece : round.pieces)
      if (std::find(targets.begin(), targets.end(), piece.home) != targets.end() &&
          acts(round, piece, p_.self()))
        pieces.push_back(&piece);
    shuffle(pieces);
    for (const Piece* piece : pieces) {
      transfer(round, *piece);
      if (round.kind == Kind::fence || round.kind == Kind::post_wait) continue;
      if (mine_.one_in(8)) flush_and_look(round, *piece);
    }
  }

  void transfer(const Round& round, const Piece& piece) {
    switch (piece.act) {
      case Act::put: {
        const std::vector<std::byte> bytes = brought(round, piece);
        const std::size_t half = mine_.below(bytes.size() + 1);
        p_.put_bytes(piece.home, piece.at, bytes.data(), half);
        p_.put_bytes(piece.home, piece.at + half, bytes.data() + half, bytes.size() - half);
        return;
      }
      case Act::read: {
        const std::size_t from = mine_.below(piece.bytes);
        std::vector<std::byte> seen(1 + mine_.below(piece.bytes - from));
        p_.get_bytes(piece.home, piece.at + from, seen.data(), seen.size());
        return expect(round, piece, seen.data(), modelled(piece) + from, seen.size(), "get");
      }
      case Act::get_and_put: {
        std::int64_t v = 0;
        p_.get_bytes(piece.home, piece.at, &v, sizeof v);
        v += amount(round, piece, p_.self());
        return p_.put_bytes(piece.home, piece.at, &v, sizeof v);
      }
      case Act::add_by_all:
      case Act::add_by_one:
        return add(round, piece);
    }
  }

  void add(const Round& round, const Piece& piece) {
    const std::int64_t v = amount(round, piece, p_.self());
    const std::int64_t expected = modelled_element(piece);
    std::int64_t before = expected;
    p_.get_accumulate(piece.home, piece.at, Op::sum, Element::i64, &v, &before, 1);
    if (piece.act == Act::add_by_one)
      expect(round, piece, &before, &expected, sizeof before, "result");
  }

  void flush_and_look(const Round& round, const Piece& piece) {
    if (mine_.one_in(2))
      p_.flush(piece.home);
    else
      p_.flush_all();
    if (piece.act != Act::put) return;
    std::vector<std::byte> seen(piece.bytes);
    p_.get_bytes(piece.home, piece.at, seen.data(), seen.size());
    expect(round, piece, seen.data(), brought(round, piece).data(), seen.size(), "get after flush");
  }

  // Checking -------------------------------------------------------------------------------------

  void check(const Round& round) {
    update_model(round);
    const Piece all{p_.self(), 0, region_bytes, Act::read, p_.self()};
    std::vector<std::byte> seen(region_bytes);
    p_.load_bytes(p_.self(), 0, seen.data(), seen.size());
    expect(round, all, seen.data(), modelled(all), region_bytes, "plain loads");
  }

  void expect(const Round& round, const Piece& piece, const void* seen, const void* wanted,
              std::size_t bytes, const char* by) {
    if (std::memcmp(seen, wanted, bytes) == 0) return;
    const auto* a = static_cast<const unsigned char*>(seen);
    const auto* b = static_cast<const unsigned char*>(wanted);
    std::size_t i = 0;
    while (a[i] == b[i]) ++i;
    ADD_FAILURE() << "program " << seed_ << ", round " << round.number << " of kind "
                  << static_cast<int>(round.kind) << ": " << by << " of " << bytes
                  << " bytes in the piece at " << piece.at << " of " << piece.home << ": byte " << i
                  << " is " << int(a[i]) << ", not " << int(b[i]);
    throw Stopped();
  }

  Process& p_;
  std::uint64_t seed_;
  Random mine_;
  std::array<std::array<std::byte, region_bytes>, processes> model_{};
};

template <class C>
class RandomProgramTest : public ::testing::Test {};
TYPED_TEST_SUITE(RandomProgramTest, Machines, MachineNames);

TYPED_TEST(RandomProgramTest, AgreesWithASequentialModel) {
  constexpr std::uint64_t granularities[] = {0, 1, 8, 100};
  World world{.processes = processes, .bytes = region_bytes};
  std::uint64_t seed = 1;
  for (const LockKind kind : every_lock_kind) {
    world.options.locks = kind;
    for (Weather weather : every_weather<TypeParam>()) {
      weather.seed = ++seed;
      world.options.atomic_bytes = granularities[seed % 4];
      run_once<TypeParam>(world, weather,
                          [&](Process& p) { RandomProgram(p, weather.seed).run(); });
      if (this->HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace tombolo::windows::testing
