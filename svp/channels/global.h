// SPDX-License-Identifier: Apache-2.0
// Purpose: a global channel (002 chapter 3): one value from the parent to all threads of a family,
// written once, before the family's sync; reads block until it is there.
//
//   Global<int> size;
//   auto family = create({.limit = 10}, [](Index i, Global<int>& n) { ... n.read() ... }, size);
//   size.write(10);
//   family.sync();
//
// A channel belongs to one family, and outlives it. One that belongs to none is never closed: a
// read of it waits until any thread writes.
// Thread safety: yes.
#pragma once

#include <utility>

#include "base/check.h"
#include "svp/channels/cell.h"

namespace tombolo::svp {

template <ChannelValue T>
class Global {
 public:
  using Value = T;
  using End = Global<T>&;

  Global() = default;
  explicit Global(T value) { write(std::move(value)); }

  void write(T value) {
    TOMBOLO_CHECK(cell_.claim(),
                  "write: a global channel was written before, or its family was synced");
    cell_.put(std::move(value));
  }
  // Throws Stopped, std::bad_alloc (Channel::wait).
  const T& read() {
    if (!cell_.wait()) no_value("read: the parent synced without a write to this global channel");
    return cell_.get();
  }

  // By the family, at its create.
  void hand_over() {
    TOMBOLO_CHECK(cell_.hand_over(), "create: a channel that belongs to another family");
  }
  // By the family, when its parent will write no more.
  void close_parent() { cell_.close(); }

  // ---- By a transport, where parent and family are at two sites ----
  Channel& parent_channel() { return cell_; }
  // Null: the parent has not written yet.
  const T* parent_value() const { return cell_.has_value() ? &cell_.get() : nullptr; }
  // At the family: the parent's value has come.
  void bring(T value) {
    if (cell_.claim()) cell_.put(std::move(value));
  }

 private:
  Cell<T> cell_;
};

}  // namespace tombolo::svp
