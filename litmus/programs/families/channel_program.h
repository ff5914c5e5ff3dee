// SPDX-License-Identifier: Apache-2.0
// Purpose: the guarantees of a channel of svp/ between threads of one process (002 chapter 3): a
// reader that blocks goes on with the value, or with the end of a channel that was closed without
// one, or as its family was stopped; and nothing accesses a reader or a listener that has left.
// Core 0 ends the channel; the others read, write or listen, by the script.
//
// Invariants: GP1 of explorer/program.h: the outcome is that of memory alone.
// Thread safety: as Program.
#pragma once

#include <fmt/format.h>

#include "litmus/explorer/program.h"
#include "litmus/explorer/run.h"
#include "svp/channels/write_once.h"
#include "svp/scheduler/inbox.h"

namespace tombolo::litmus {

enum class ChannelScript : std::uint8_t {
  written,   // core 0 writes, the others read
  stopped,   // core 0 stops the reader of core 1, and then writes; the others read
  closed,    // core 0 syncs: it closes the channel; core 1 reads, core 2 writes
  listened,  // core 0 writes, core 1 listens for a while, the others read
};

template <class C, class Channel = svp::WriteOnce<C>>
class ChannelProgram final : public Program {
 public:
  using Word = typename C::Word;
  using Words = typename Channel::Words;
  using Number = typename Channel::Number;

  ChannelProgram(machine::Home cores, ChannelScript script) : cores_(cores), script_(script) {}

  MemoryShape shape() const override {
    machine::SyncLayout layout(C::reserved_sync_bytes(cores_));
    (void)take(layout);
    return {.cores = cores_, .sync_bytes = layout.bytes(), .data_bytes = line_bytes};
  }
  void begin() override {}
  void run(const machine::Attachment& at, Run& run) override {
    C core(at);
    const Places places = places_of();
    Body body{core, places, run,
              Words{.state = core.word({0, places.state}),
                    .waiting = core.word({0, places.waiting}),
                    .listener = core.word({0, places.listener})}};
    if (at.self == 0) return body.end_it(script_);
    if (script_ == ChannelScript::closed && at.self == 2) return body.write();
    if (script_ == ChannelScript::listened && at.self == 1) return body.listen();
    body.read(script_ == ChannelScript::stopped && at.self == 1);
  }
  std::string outcome(const Memory& memory, Run& run) override {
    const Places at = places_of();
    const auto value = [&](machine::Offset offset) {
      return memory.load(memory.word_index({0, offset}));
    };
    const std::uint64_t state = value(at.state);
    if (state != (Channel::claimed | Channel::has) && state != (Channel::claimed | Channel::closed))
      run.fail(fmt::format("channel: its state is {} at the end", state));
    if (value(at.waiting) != 0) run.fail("channel: a reader is listed at the end");
    return (state & Channel::has) != 0 ? "a value" : "closed without a value";
  }

 private:
  static constexpr std::uint64_t gone = ~std::uint64_t{0};
  static constexpr std::uint64_t written_value = 42;
  struct Places {
    machine::Offset state;  // these three at home 0
    machine::Offset waiting;
    machine::Offset listener;
    machine::Offset link;  // the others at each reader's home
    machine::Offset inbox;
    machine::Offset signal;
    machine::Offset stopped;
    machine::Offset told;
  };
  static Places take(machine::SyncLayout& layout) {
    Places at{};
    for (machine::Offset* const one : {&at.state, &at.waiting, &at.listener, &at.link, &at.inbox,
                                       &at.signal, &at.stopped, &at.told})
      *one = layout.take_lines(1);
    return at;
  }
  Places places_of() const {
    machine::SyncLayout layout(C::reserved_sync_bytes(cores_));
    return take(layout);
  }

  struct Body {
    using Mail = svp::Inbox<C>;
    C& core;
    Places places;
    Run& run;
    Words at;

    // A reader's number, or a listener's, is its home and 1.
    Word of(Number number, machine::Offset offset) {
      if (number <= core.cores())
        return core.word({static_cast<machine::Home>(number - 1), offset});
      run.fail("channel: the list goes on behind a reader that has left it");
      return core.word({core.self(), offset});
    }
    Number own() { return Number{core.self()} + 1; }
    auto link() {
      return [this](Number reader) { return of(reader, places.link); };
    }
    auto await() {
      return [this](Word) { (void)core.pause(1).ok(); };  // of any home (R6)
    }
    auto deliver() {
      return [this](Number reader) {
        if (core.load(of(reader, places.link)) == gone)
          return run.fail("channel: a delivery to a reader that has left");
        Mail::put(core, of(reader, places.inbox), reader, of(reader, places.link));
        wake(reader);
      };
    }
    auto changed() {
      return [this](Number listener) {
        if (listener == 0) return;
        if (core.fetch_add(of(listener, places.told), 1) == gone)
          return run.fail("channel: a listener is told that has left");
        core.notify(static_cast<machine::Home>(listener - 1));
      };
    }
    void wake(Number reader) {
      core.fetch_add(of(reader, places.signal), 1);
      core.notify(static_cast<machine::Home>(reader - 1));
    }

    void end_it(ChannelScript script) {
      if (script == ChannelScript::closed)
        return Channel::close(core, at, link(), await(), deliver(), changed());
      if (script == ChannelScript::stopped) {
        core.store(of(2, places.stopped), 1);
        wake(2);
      }
      write();
    }
    void write() {
      if (!Channel::claim(core, at)) return;
      const std::uint64_t value = written_value;
      (void)core.write({0, 0}, &value, sizeof value).ok();
      core.publish({0, 0}, sizeof value);
      Channel::end(core, at, Channel::has, link(), await(), deliver(), changed());
    }
    void read(bool may_be_stopped) {
      const bool listed =
          !Channel::settled(core, at) && Channel::list(core, at, own(), link(), await(), changed());
      const bool ended = !listed || await_end(may_be_stopped);
      if (Mail::take(core, of(own(), places.inbox), link()) != 0)
        run.fail("channel: a reader leaves, and its delivery is still on the way");
      core.store(of(own(), places.link), gone);  // a reader lies in a frame, which it leaves now
      if (ended) look();
    }
    // False: stopped.
    bool await_end(bool may_be_stopped) {
      bool leaves = false;
      for (;;) {
        const std::uint64_t seen = core.load(of(own(), places.signal));
        if (Mail::take(core, of(own(), places.inbox), link()) != 0) return !leaves;
        if (may_be_stopped && !leaves && core.load(of(own(), places.stopped)) != 0) {
          if (Channel::unlist(core, at, own(), link(), await())) return false;
          leaves = true;
        }
        const Status status = core.wait_until(of(own(), places.signal),
                                              [seen](std::uint64_t now) { return now != seen; });
        if (!status.ok()) run.fail(status.message());
      }
    }
    void look() {
      if (!Channel::settled(core, at)) run.fail("channel: a reader goes on before its end");
      if (!Channel::has_value(core, at)) return;
      std::uint64_t value = 0;
      core.refresh({0, 0}, sizeof value);
      (void)core.read({0, 0}, &value, sizeof value).ok();
      if (value != written_value)
        run.fail(fmt::format("lost or stale data: a reader sees {}", value));
    }
    void listen() {
      if (!Channel::listen(core, at, own(), await())) run.fail("channel: it has a listener");
      const Word told = of(own(), places.told);
      if (!Channel::settled(core, at)) {
        const Status status = core.wait_until(told, [](std::uint64_t now) { return now != 0; });
        if (!status.ok()) run.fail(status.message());
      }
      Channel::ignore(core, at, await());
      core.store(told, gone);
    }
  };

  machine::Home cores_;
  ChannelScript script_;
};

}  // namespace tombolo::litmus
