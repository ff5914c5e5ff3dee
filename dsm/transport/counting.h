// SPDX-License-Identifier: Apache-2.0
// Purpose: a transport that counts the pages that go through it, for the end of a run.
// Thread safety: that of T.
#pragma once

#include "dsm/protocol/transport.h"
#include "dsm/records/observer.h"
#include "runtime/counters/counters.h"

namespace tombolo::dsm {

template <Transport T>
class Counting : public T {
 public:
  using T::T;

  // Before the first page.
  void observe(const Observer& observer) { observer_ = observer; }

  Status get(Page page, std::span<std::byte> out) {
    count(fetches_, fetched_bytes_, out.size());
    if (observer_.heat != nullptr) observer_.heat->fetched(page);
    return observer_.traced(Trace::Event::fetch, page, [&] { return T::get(page, out); });
  }
  Status get_exposed(Thread thread, std::uint32_t slot, std::span<std::byte> out) {
    count(collected_, fetched_bytes_, out.size());
    return observer_.traced(Trace::Event::collect, Trace::no_page,
                            [&] { return T::get_exposed(thread, slot, out); });
  }
  Status put(Page page, std::span<const std::byte> in) {
    count(puts_, sent_bytes_, in.size());
    if (observer_.heat != nullptr) observer_.heat->sent(page);
    return observer_.traced(Trace::Event::send_page, page, [&] { return T::put(page, in); });
  }
  Status accumulate_xor(Page page, std::span<const std::byte> diff) {
    count(diffs_, sent_bytes_, diff.size());
    if (observer_.heat != nullptr) observer_.heat->sent(page);
    return observer_.traced(Trace::Event::send_difference, page,
                            [&] { return T::accumulate_xor(page, diff); });
  }
  Status expose(std::uint32_t slot, std::span<const std::byte> in) {
    exposed_.add();
    return T::expose(slot, in);
  }
  Status put_update(Lock lock, std::uint64_t index, const Update& update) {
    count(updates_, update_bytes_, update.bytes);
    return T::put_update(lock, index, update);
  }

 private:
  static runtime::Counter& counter(const char* name) { return runtime::counters().counter(name); }
  static void count(runtime::Counter& calls, runtime::Counter& bytes, std::size_t n) {
    calls.add();
    bytes.add(n);
  }

  Observer observer_;
  runtime::Counter& fetches_ = counter("dsm_fetches");
  runtime::Counter& collected_ = counter("dsm_collected");  // from threads that kept them
  runtime::Counter& fetched_bytes_ = counter("dsm_fetched_bytes");
  runtime::Counter& diffs_ = counter("dsm_diffs");
  runtime::Counter& puts_ = counter("dsm_puts");
  runtime::Counter& sent_bytes_ = counter("dsm_sent_bytes");
  runtime::Counter& exposed_ = counter("dsm_kept");  // pages, at barriers
  runtime::Counter& updates_ = counter("dsm_updates");
  runtime::Counter& update_bytes_ = counter("dsm_update_bytes");  // recorded ones
};

}  // namespace tombolo::dsm
