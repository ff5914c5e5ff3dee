// SPDX-License-Identifier: Apache-2.0
// For each optional part of a machine: one without it works and is not taken to have it (the
// example), one with it is recognised (a double), and a near miss is not.
#include "machine/optional.h"

#include <gtest/gtest.h>

#include <string>

#include "machine/example_machine.h"
#include "machine/testing/ensemble.h"
#include "machine/testing/forwarding.h"

namespace tombolo::machine {
namespace {

using testing::Ensemble;
using testing::Forwarding;

class Example : public example::Core {
 public:
  using example::Core::Core;
};
// Its attachment has more members than the others'.
struct MoreAttachment : Attachment {
  std::byte* own_view = nullptr;
  std::byte* shared = nullptr;
  std::uint64_t evictions = 0;
};
class GivenMore : public example::Core {
 public:
  using Attachment = MoreAttachment;
  explicit GivenMore(const Attachment& at) : Core(at), given(at) {}
  void hand_back() {}
  Attachment given;
};

struct Publishes : Example {
  using Example::Example;
  void publish_written(Home) {}
};
struct Refreshes : Example {
  using Example::Example;
  bool refreshes_at_once() const { return true; }
};
struct Pieced : Example {
  using Example::Example;
  void renew_pieces(Home, std::span<const DataPiece>) {}
  Status read_pieces(Home, std::span<const DataPiece>) { return {}; }
  Status write_pieces_through(Home, std::span<const DataPiece>) { return {}; }
};
struct Viewless : Example {
  using Example::Example;
  static constexpr bool has_views = false;
};
struct Ranged : Example {
  using Example::Example;
  using Example::view;
  std::byte* view(DataPlace place, std::size_t) { return Example::view(place); }
};
struct Alone : Example {
  using Example::Example;
  void store_alone(Word word, std::uint64_t v) { store(word, v); }
};
struct Deferring : Example {
  using Example::Example;
  void settle() { ++settled; }
  int settled = 0;
};
struct Asymmetric : Example {
  using Example::Example;
  static bool fences_asymmetrically() { return true; }
  void fence_light() {}
  void fence_heavy() { fence(); }
};
struct Sleeping : Example {
  using Example::Example;
  Status sleep_on(Word, std::uint64_t) { return {}; }
  void wake_sleepers(Word, std::uint32_t) {}
};
struct Threaded : Example {
  using Example::Example;
  void several_threads() {}
};
struct Telling : Example {
  struct Findings {
    bool clean() const { return true; }
    std::string report() const { return {}; }
  };
  using Example::Example;
  void check_promise(Promise) {}
  void close() {}
  std::vector<LossFact> take_losses() { return {}; }
  void losses_told() {}
  bool has_mistakes() { return false; }
  const Findings& findings() const { return none; }
  Findings none;
};
struct Sited : Example {
  using Example::Example;
  void set_site(std::uint64_t) {}
};
// Also for the members that its attachment must have.
struct Sharing : GivenMore {
  using GivenMore::GivenMore;
  static std::size_t shared_bytes(std::span<const DataRegion> regions) {
    return regions.size() * sizeof(std::uint64_t);
  }
};

// Recognised, alone, and handed on by a machine that stands on it.
template <class C>
void expect_extras(const Extras& expected) {
  static_assert(Core<C>);
  EXPECT_TRUE(extras_of<C> == expected);
  EXPECT_TRUE(extras_of<Forwarding<C>> == expected);
}

TEST(Optional, TheExampleHasNothing) { expect_extras<example::Core>({}); }

TEST(Optional, EachIsRecognised) {
  expect_extras<Publishes>({.publishes_written = true});
  expect_extras<Refreshes>({.refreshes_at_once = true});
  expect_extras<Pieced>({.serves_pieces = true});
  expect_extras<Viewless>({.has_no_views = true});
  expect_extras<Ranged>({.views_ranges = true});
  expect_extras<Alone>({.stores_alone = true});
  expect_extras<Deferring>({.defers_stores = true});
  expect_extras<Asymmetric>({.fences_asymmetrically = true});
  expect_extras<Sleeping>({.sleeps_on_words = true});
  expect_extras<Threaded>({.is_told_of_threads = true});
  expect_extras<Telling>({.tells_losses = true});
  expect_extras<Sited>({.names_sites = true});
  expect_extras<GivenMore>({.keeps_views_apart = true, .evicts_at_random = true});
  expect_extras<Sharing>(
      {.keeps_views_apart = true, .wants_shared_memory = true, .evicts_at_random = true});
}

// Each lacks something without which a call would break its promise.
struct HasViews : Example {
  using Example::Example;
  static constexpr bool has_views = true;
};
struct CannotClose : Example {
  using Example::Example;
  const Telling::Findings& findings() const { return none; }
  Telling::Findings none;
};
// It does not say whether its host allows them.
struct FencesBlindly : Example {
  using Example::Example;
  void fence_light() {}
  void fence_heavy() { fence(); }
};
struct SleepsForEver : Example {
  using Example::Example;
  Status sleep_on(Word, std::uint64_t) { return {}; }
};
struct NoRoomForShared : Example {
  using Example::Example;
  static std::size_t shared_bytes(std::span<const DataRegion>) { return 8; }
};
struct PublishesOneHome : Example {
  using Example::Example;
  void publish_written() {}
};
TEST(Optional, NearMissesAreNot) {
  expect_extras<HasViews>({});
  expect_extras<CannotClose>({});
  expect_extras<FencesBlindly>({});
  expect_extras<SleepsForEver>({});
  expect_extras<NoRoomForShared>({});
  expect_extras<PublishesOneHome>({});
}

// A type of that name which is no attachment.
struct Misnamed : Example {
  using Example::Example;
  using Attachment = int;
};
TEST(Optional, AnAttachmentIsTheMachinesOwn) {
  static_assert(std::same_as<AttachmentOf<example::Core>, Attachment>);
  static_assert(std::same_as<AttachmentOf<GivenMore>, MoreAttachment>);
  static_assert(std::same_as<AttachmentOf<Forwarding<GivenMore>>, MoreAttachment>);
  static_assert(std::same_as<AttachmentOf<Misnamed>, Attachment>);
}

TEST(Optional, AnEnsembleGivesAndAsksForWhatThereIs) {
  Ensemble<example::Core> plain({.cores = 2, .evictions = 5});
  plain.run([](example::Core& core) { core.fence(); });

  Ensemble<Sharing> sharing({.cores = 3, .evictions = 5});
  EXPECT_EQ(sharing.core(0).given.evictions, 5u);
  EXPECT_EQ(sharing.core(0).given.own_view, nullptr);
  ASSERT_NE(sharing.core(0).given.shared, nullptr);
  EXPECT_EQ(sharing.core(2).given.shared, sharing.core(0).given.shared);
  for (std::size_t i = 0; i < 3 * sizeof(std::uint64_t); ++i)
    EXPECT_EQ(sharing.core(0).given.shared[i], std::byte{0});
  Ensemble<GivenMore> not_sharing({.cores = 1});
  EXPECT_EQ(not_sharing.core(0).given.shared, nullptr);

  Ensemble<Deferring> deferring({.cores = 2});
  deferring.run([](Deferring&) {});
  EXPECT_EQ(deferring.core(1).settled, 1);
}

}  // namespace
}  // namespace tombolo::machine
