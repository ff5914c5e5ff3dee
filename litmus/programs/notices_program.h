// SPDX-License-Identifier: Apache-2.0
// Purpose: write notices alone (dsm/protocol/write_notices.h), on the smallest ring: the last core
// reads while the others append, each a page or a change. No notice is made up or mixed of two, and
// no wait lasts for ever.
//
// Invariants: GP1 of explorer/program.h: the notices given follow from how far each core has come.
// Thread safety: as Program.
#pragma once

#include <fmt/format.h>

#include <array>

#include "dsm/protocol/write_notices.h"
#include "litmus/explorer/run.h"

namespace tombolo::litmus {

template <class C>
class NoticesProgram final : public Program {
 public:
  using Notices = dsm::WriteNotices<C>;
  NoticesProgram(machine::Home cores, bool changes)
      : shape_{.threads = cores, .pages = cores, .notices = 1}, changes_(changes) {}

  MemoryShape shape() const override {
    machine::SyncLayout layout(C::reserved_sync_bytes(shape_.threads));
    Notices::take_with_changes(layout, shape_);
    return {.cores = shape_.threads, .sync_bytes = layout.bytes(), .data_bytes = line_bytes};
  }
  void begin() override {}
  void run(const machine::Attachment& at, Run& run) override {
    C core(at);
    machine::SyncLayout layout(C::reserved_sync_bytes(shape_.threads));
    Notices notices(core, Notices::take_with_changes(layout, shape_), shape_);
    if (core.self() + 1 < shape_.threads) {
      const std::array<dsm::Page, 1> page{core.self()};
      expect_ok(changes_ ? notices.append(change_of(core.self())) : notices.append(page), run);
    } else {
      for (int reads = 0; reads < 3; ++reads) read(notices, run);
    }
  }
  std::string outcome(const Memory&, Run&) override { return "all have ended"; }

 private:
  static void expect_ok(const Status& status, Run& run) {
    if (!status.ok()) run.fail(status.message());
  }
  static dsm::Update change_of(dsm::Page page) {
    const auto number = static_cast<std::uint32_t>(page);
    return {.page = page,
            .version = page + 2,
            .offset = 8 * number,
            .bytes = 1 + number,
            .changed = dsm::Update::all(1 + number),
            .contents = {std::byte{7}, std::byte(number)}};
  }
  void read(Notices& notices, Run& run) {
    bool lost = false;
    const auto look = [&](const dsm::Update& notice) {
      if (notice.page + 1 >= shape_.threads)
        run.fail(fmt::format("a notice of page {}", notice.page));
      const dsm::Update wanted =
          changes_ ? change_of(notice.page) : dsm::Update{.page = notice.page};
      if (notice.version != wanted.version || notice.offset != wanted.offset ||
          notice.bytes != wanted.bytes || notice.changed != wanted.changed ||
          notice.contents != wanted.contents)
        run.fail(fmt::format("a change of page {} that is mixed of two", notice.page));
      return Status();
    };
    expect_ok(notices.read(look, lost), run);
  }

  dsm::Shape shape_;
  bool changes_;
};

}  // namespace tombolo::litmus
