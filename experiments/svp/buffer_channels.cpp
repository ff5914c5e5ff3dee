// SPDX-License-Identifier: Apache-2.0
#include "experiments/svp/buffer_channels.h"

#include <algorithm>

namespace tombolo::experiments {

using scc::MemoryType;
using scc::View;
using simulator::CoreId;

namespace {

constexpr std::uint64_t line_bytes = 32;

}  // namespace

class BufferStream final : public Stream {
 public:
  using Head = BufferChannels::Head;

  BufferStream(Linux& system, BufferChannels& channels, CoreId peer, CoreId opener,
               std::uint32_t channel)
      : Stream(system), channels_(channels), peer_(peer) {
    sent_ = {.full = 1,
             .sender = system.cpu().id().index(),
             .opener = opener.index(),
             .channel = channel};
    wanted_ = sent_;
    wanted_.sender = peer.index();
  }

  CoreId peer() const override { return peer_; }
  void send(View from, std::uint64_t bytes) override {
    while (bytes > 0) {
      Head head = sent_;
      head.bytes = std::min(bytes, channels_.most_bytes());
      channels_.send(peer_, head, from);
      from = from + head.bytes;
      bytes -= head.bytes;
    }
  }
  void receive(View to, std::uint64_t bytes) override {
    while (bytes > 0) {
      const std::uint64_t n = channels_.receive(wanted_, to);
      TOMBOLO_CHECK(n <= bytes, "a message of {} bytes where {} are left", n, bytes);
      to = to + n;
      bytes -= n;
    }
  }
  void ask() override { send(system_.scratch(), sizeof(std::uint64_t)); }
  void await_asking() override { receive(system_.scratch(), sizeof(std::uint64_t)); }
  void close() override {}
  void await_close() override {}

 private:
  BufferChannels& channels_;
  CoreId peer_;
  Head sent_;
  Head wanted_;
};

View BufferChannels::head_of(CoreId core) const { return {chip_.mpb(core), MemoryType::ncm}; }

View BufferChannels::data_of(CoreId core) const {
  return {chip_.mpb(core) + line_bytes, MemoryType::mpbt_wb};
}

std::uint64_t BufferChannels::most_bytes() const { return chip_.mpb_bytes() - line_bytes; }

std::unique_ptr<Stream> BufferChannels::open(CoreId peer) {
  return std::make_unique<BufferStream>(system_, *this, peer, system_.cpu().id(), ++opened_);
}

std::unique_ptr<Stream> BufferChannels::accept() {
  while (!system_.stopped()) {
    const Head head = look();
    if (head.full != 0 && head.opener == head.sender && head.channel > latest_[head.sender]) {
      latest_[head.sender] = head.channel;
      return std::make_unique<BufferStream>(system_, *this, CoreId(head.sender),
                                            CoreId(head.opener), head.channel);
    }
    system_.sleep();
  }
  return nullptr;
}

void BufferChannels::lock(CoreId core) {
  scc::Cpu& cpu = system_.cpu();
  while (!cpu.test_and_set(core)) cpu.compute(cpu.timing().loop);
}

// While another message is in the buffer, the sender looks again and again; other threads of
// its core have their turns meanwhile.
void BufferChannels::lock_empty_buffer(CoreId core) {
  scc::Cpu& cpu = system_.cpu();
  while (true) {
    lock(core);
    if (cpu.load<std::uint32_t>(head_of(core)) == 0) return;
    cpu.clear(core);
    system_.compute(cpu.timing().system_call);
  }
}

void BufferChannels::send(CoreId to, Head head, View from) {
  scc::Cpu& cpu = system_.cpu();
  lock_empty_buffer(to);
  std::vector<std::byte> held(head.bytes);
  cpu.copy_from(from, held.data(), head.bytes);
  cpu.cl1invmb();
  cpu.write(data_of(to), held.data(), head.bytes);
  cpu.flush_combined();  // before the head says that they are there
  cpu.write(head_of(to), &head, sizeof head);
  cpu.clear(to);
}

BufferChannels::Head BufferChannels::look() {
  scc::Cpu& cpu = system_.cpu();
  Head head;
  lock(cpu.id());
  cpu.read(head_of(cpu.id()), &head, sizeof head);
  cpu.clear(cpu.id());
  return head;
}

std::uint64_t BufferChannels::receive(const Head& wanted, View to) {
  scc::Cpu& cpu = system_.cpu();
  Head head;
  while (true) {
    head = look();
    if (head.full != 0 && head.sender == wanted.sender && head.opener == wanted.opener &&
        head.channel == wanted.channel)
      break;
    system_.sleep();
  }
  lock(cpu.id());
  std::vector<std::byte> held(head.bytes);
  cpu.cl1invmb();  // the lines of the message before
  cpu.copy_from(data_of(cpu.id()), held.data(), head.bytes);
  cpu.store<std::uint32_t>(head_of(cpu.id()), 0);
  cpu.clear(cpu.id());
  cpu.write(to, held.data(), head.bytes);
  return head.bytes;
}

}  // namespace tombolo::experiments
