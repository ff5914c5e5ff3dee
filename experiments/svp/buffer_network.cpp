// SPDX-License-Identifier: Apache-2.0
#include "experiments/svp/buffer_network.h"

#include <fmt/format.h>

#include <cstring>

namespace tombolo::experiments {
namespace {

using scc::MemoryType;
using scc::View;
using simulator::Address;
using simulator::CoreId;

constexpr std::uint64_t slot_count = 5;
constexpr std::uint64_t slot_bytes = 1504;  // whole lines, a packet and its length
constexpr std::uint64_t length_bytes = 2;
constexpr std::uint64_t buffer_bytes = 1536;
constexpr std::uint8_t none = 0;

}  // namespace

Status BufferNetwork::fits(const scc::Parameters& chip) {
  const std::uint64_t needed = slot_count * slot_bytes + chip.cores();
  const auto there = static_cast<std::uint64_t>(chip.layout.mpb_bytes_per_tile) /
                     static_cast<std::uint64_t>(chip.layout.cores_per_tile);
  if (needed > there)
    return Status::bad_configuration(
        fmt::format("chip {}: the network of {} cores needs {} bytes of each message passing "
                    "buffer; there are {}",
                    chip.name, chip.cores(), needed, there));
  return {};
}

BufferNetwork::BufferNetwork(scc::Chip& chip, Linux& system, Deliver deliver,
                             std::uint8_t first_slot)
    : chip_(chip),
      system_(system),
      deliver_(std::move(deliver)),
      packet_bytes_(static_cast<std::uint64_t>(system.times().packet_bytes)),
      first_slot_(first_slot),
      next_slot_(first_slot),
      busy_(chip.cores()) {}

Address BufferNetwork::take_buffer() {
  if (free_.empty()) free_.push_back(system_.cpu().allocate_private(buffer_bytes));
  const Address buffer = free_.back();
  free_.pop_back();
  return buffer;
}

View BufferNetwork::in_buffer(CoreId of, std::uint64_t at) const {
  return {chip_.mpb(of) + at, MemoryType::mpbt_wt};
}

View BufferNetwork::descriptor(CoreId at, CoreId of) const {
  return in_buffer(at, chip_.mpb_bytes() - chip_.cores() + of.index());
}

// ---- Sender -------------------------------------------------------------------------------------

bool BufferNetwork::pending(CoreId to) {
  if (!busy_[to.index()]) return false;
  scc::Cpu& cpu = system_.cpu();
  cpu.cl1invmb();
  if (cpu.load<std::uint8_t>(descriptor(to, cpu.id())) == none) busy_[to.index()] = false;
  return busy_[to.index()];
}

void BufferNetwork::wait_until_taken(CoreId to) {
  while (!system_.stopped() && pending(to)) {
    if (system_.cpu().take_interrupt()) receive();
    system_.cpu().compute(system_.cpu().timing().system_call);
  }
}

void BufferNetwork::set_descriptor(CoreId at, CoreId of, std::uint8_t value) {
  scc::Cpu& cpu = system_.cpu();
  cpu.cl1invmb();  // the store is not to hit in the first level
  while (!cpu.test_and_set(at)) cpu.compute(cpu.timing().loop);
  cpu.store(descriptor(at, of), value);
  cpu.flush_combined();  // the byte, and the last line of the packet before it
  cpu.clear(at);
}

void BufferNetwork::send(CoreId to, const PacketHeader& header, Address data) {
  scc::Cpu& cpu = system_.cpu();
  const std::uint8_t n = next_slot_;
  next_slot_ = static_cast<std::uint8_t>(n + 1 == slot_count ? first_slot_ : n + 1);
  if (slots_[n].used) wait_until_taken(slots_[n].to);  // BN1
  wait_until_taken(to);
  std::array<std::byte, slot_bytes> packet;
  const auto length = static_cast<std::uint16_t>(packet_header_bytes + header.data_bytes);
  std::memcpy(packet.data(), &length, length_bytes);
  std::memcpy(packet.data() + length_bytes, &header, packet_header_bytes);
  std::byte* const payload = packet.data() + length_bytes + packet_header_bytes;
  if (header.data_bytes > 0) cpu.copy_from({data, MemoryType::dcm}, payload, header.data_bytes);
  cpu.cl1invmb();
  cpu.write(in_buffer(cpu.id(), n * slot_bytes), packet.data(), length_bytes + length);
  busy_[to.index()] = true;
  slots_[n] = {true, to};
  set_descriptor(to, cpu.id(), static_cast<std::uint8_t>(n + 1));
  cpu.interrupt(to);
}

// ---- Receiver -----------------------------------------------------------------------------------

bool BufferNetwork::next_sender(CoreId* sender, std::uint8_t* slot) {
  scc::Cpu& cpu = system_.cpu();
  cpu.cl1invmb();
  for (std::uint32_t i = 1; i <= chip_.cores(); ++i) {
    const CoreId from((last_sender_ + i) % chip_.cores());
    *slot = cpu.load<std::uint8_t>(descriptor(cpu.id(), from));
    cpu.compute(cpu.timing().loop);
    if (*slot == none) continue;
    last_sender_ = from.index();
    *sender = from;
    return true;
  }
  return false;
}

void BufferNetwork::take(CoreId sender, std::uint8_t slot) {
  scc::Cpu& cpu = system_.cpu();
  const View packet = in_buffer(sender, (slot - 1) * slot_bytes);
  PacketHeader header;
  cpu.copy_from(packet + length_bytes, &header, packet_header_bytes);
  Address buffer;
  if (header.data_bytes > 0) {
    std::array<std::byte, slot_bytes> data;
    buffer = take_buffer();
    cpu.copy_from(packet + (length_bytes + packet_header_bytes), data.data(), header.data_bytes);
    cpu.write({buffer, MemoryType::dcm}, data.data(), header.data_bytes);
  }
  set_descriptor(cpu.id(), sender, none);
  deliver_(header, buffer);
}

void BufferNetwork::receive() {
  CoreId sender{0};
  std::uint8_t slot = none;
  while (next_sender(&sender, &slot)) take(sender, slot);
}

}  // namespace tombolo::experiments
