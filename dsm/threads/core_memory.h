// SPDX-License-Identifier: Apache-2.0
// Purpose: the part of a ProgramMemory that is the same on every machine and with every transport:
// its words are sync words of a core, and a wait steps back as one for a lock does.
//
// Invariants: DCM1 word i lies at home i mod homes, so that no home has all of them.
//             DCM2 a fence follows each store of a word: a load of another word does not overtake
//                  it (DPM2, R3).
//             DCM3 the signal handler of a thread that is interrupted may use the core as well, but
//                  not amid an operation of the thread. A pause that is longer than others may have
//                  to wait for an answer is a sleep, which the handler ends. An operation of a
//                  thread that is not interrupted looks at no gate.
// Memory: 8 bytes for each word.
// Thread safety: one thread for each object.
#pragma once

#include <algorithm>
#include <concepts>
#include <utility>

#include "base/check.h"
#include "dsm/threads/growing_pause.h"
#include "dsm/threads/program_memory.h"
#include "host/interrupts/interrupt_gate.h"
#include "machine/contract.h"

namespace tombolo::dsm {

// `Interrupts`: host::Interrupted of a thread that answers others by interrupts, which is why only
// the memory of a protocol that polls pays for it.
template <machine::Core C, class Interrupts = host::NotInterrupted>
class CoreMemory : public ProgramMemory {
 public:
  struct WordLayout {
    machine::Offset at = 0;
    WordIndex words = 0;
    Thread threads = 1;
    Thread first_home = 0;
    Thread homes = 1;
  };
  static WordLayout take_words(machine::SyncLayout& layout, const Shape& shape, WordIndex words) {
    const Thread homes = shape.homes();
    return {.at = layout.take_lines((words + homes - 1) / homes),
            .words = words,
            .threads = shape.threads,
            .first_home = shape.first_home(),
            .homes = homes};
  }

  CoreMemory(machine::AttachmentOf<C> attachment, WordLayout layout)
      : core_(std::move(attachment)), layout_(layout), pause_(core_.self()) {}
  CoreMemory(const CoreMemory&) = delete;
  CoreMemory& operator=(const CoreMemory&) = delete;

  Thread self() const final { return core_.self(); }
  Thread threads() const final { return layout_.threads; }

  WordIndex words() const final { return layout_.words; }
  std::uint64_t load(WordIndex word) final {
    const Closed closed(interrupts_);
    return core_.load(place(word));
  }
  void store(WordIndex word, std::uint64_t value) final {
    const Closed closed(interrupts_);
    core_.store(place(word), value);
    core_.fence();  // DCM2
  }
  std::uint64_t exchange(WordIndex word, std::uint64_t value) final {
    const Closed closed(interrupts_);
    return core_.exchange(place(word), value);
  }
  std::uint64_t fetch_add(WordIndex word, std::uint64_t value) final {
    const Closed closed(interrupts_);
    return core_.fetch_add(place(word), value);
  }
  std::uint64_t compare_exchange(WordIndex word, std::uint64_t expected,
                                 std::uint64_t desired) final {
    const Closed closed(interrupts_);
    return core_.compare_exchange(place(word), expected, desired);
  }

  Status pause() override {
    const std::uint64_t ns = pause_.next_ns();
    if constexpr (std::same_as<Interrupts, host::Interrupted>)
      return pause_and_sleep(ns);
    else
      return core_.pause(ns);
  }
  void paused_enough() final { pause_.reset(); }

 protected:
  C& core() { return core_; }
  // The core is used in closed parts of these.
  Interrupts& interrupts() { return interrupts_; }

 private:
  using Closed = typename Interrupts::Closed;

  // With the gate closed: as the waits of the protocols that answer.
  static constexpr std::uint64_t longest_deaf_ns = 20'000;

  Status pause_and_sleep(std::uint64_t ns) {
    const std::uint64_t deaf = std::min(ns, longest_deaf_ns);
    {
      const Closed closed(interrupts_);
      TOMBOLO_TRY(core_.pause(deaf));
    }
    if (ns != deaf) interrupts_.gate().sleep(ns - deaf);
    return {};
  }

  typename C::Word place(WordIndex word) {
    TOMBOLO_CHECK(word < layout_.words, "word {} is past the {} words of the program", word,
                  layout_.words);
    return core_.word({layout_.first_home + static_cast<Thread>(word % layout_.homes),
                       layout_.at + word / layout_.homes * sizeof(std::uint64_t)});
  }

  C core_;
  WordLayout layout_;
  GrowingPause pause_;
  [[no_unique_address]] Interrupts interrupts_;
};

}  // namespace tombolo::dsm
