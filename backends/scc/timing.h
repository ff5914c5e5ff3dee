// SPDX-License-Identifier: Apache-2.0
// Purpose: the durations that follow from a chip's parameters.
// Thread safety: values.
#pragma once

#include "backends/scc/parameters.h"
#include "simulator/kernel/time.h"

namespace tombolo::scc {

// A device as a requester sees it: `path` is spent at the core's tile (without the miss itself),
// `access` at the device until the data are there, for `busy` of it no other request is served.
struct DeviceTiming {
  simulator::Duration path;
  simulator::Duration access;
  simulator::Duration busy;
};

struct Timing {
  explicit Timing(const Parameters& p)
      : core(simulator::Clock::megahertz(p.clocks.core_megahertz)),
        mesh(simulator::Clock::megahertz(p.clocks.mesh_megahertz)),
        memory(simulator::Clock::megahertz(p.clocks.memory_megahertz)),
        half_cycle(simulator::Clock::megahertz(2 * p.clocks.core_megahertz).period()),
        load(cycles(p.core.load)),
        store(cycles(p.core.store)),
        loop(cycles(p.core.loop)),
        miss(cycles(p.core.miss)),
        l2(cycles(p.core.l2)),
        system_call(cycles(p.core.system_call)),
        hop(mesh.cycles(p.mesh.hop_mesh_cycles)),
        link_bytes(static_cast<std::size_t>(p.mesh.link_bytes)),
        dram{cycles(p.path.dram), memory.cycles(p.path.dram_memory_cycles),
             memory.cycles(p.path.controller_busy_memory_cycles)},
        bank_busy(memory.cycles(p.path.bank_busy_memory_cycles)),
        write_to_read(memory.cycles(p.path.write_to_read_memory_cycles)),
        read_to_write(memory.cycles(p.path.read_to_write_memory_cycles)),
        mpb{cycles(p.path.mpb), {}, cycles(p.path.mpb_busy)},
        registers{cycles(p.path.registers), {}, cycles(p.path.register_busy)},
        local_mpb(cycles(p.path.local_mpb)),
        cl1invmb(cycles(p.operations.cl1invmb)),
        wbinvd(cycles(p.operations.wbinvd)),
        wbinvd_valid_line(cycles(p.operations.wbinvd_valid_line)),
        invd_valid_line(cycles(p.operations.invd_valid_line)),
        flush_loop(cycles(p.operations.flush_loop)),
        line_operation(cycles(p.extensions.line_operation)),
        copy_engine_start(cycles(p.extensions.copy_engine_start)),
        library_call(cycles(p.software.library_call)),
        put_call(cycles(p.software.put_call)),
        report_put_call(cycles(p.software.report_put_call)),
        convert_group(cycles(p.software.convert_group)),
        convert_rank(cycles(p.software.convert_rank)),
        copy_word(cycles(p.software.copy_word)),
        flop(cycles(p.software.flop)),
        packet(cycles(p.software.packet)),
        rma_step(cycles(p.software.rma_step)) {}

  simulator::Duration cycles(HalfCycles n) const { return half_cycle * n.halves; }

  simulator::Clock core, mesh, memory;
  simulator::Duration half_cycle;
  simulator::Duration load, store, loop, miss, l2, system_call;
  simulator::Duration hop;
  std::size_t link_bytes;
  DeviceTiming dram;
  simulator::Duration bank_busy;  // from one access to a bank to the next
  // Between a write and a read at one controller, and the other way: nothing is transferred.
  simulator::Duration write_to_read, read_to_write;
  DeviceTiming mpb, registers;
  simulator::Duration local_mpb;
  simulator::Duration cl1invmb, wbinvd, wbinvd_valid_line, invd_valid_line, flush_loop;
  simulator::Duration line_operation, copy_engine_start;
  simulator::Duration library_call, put_call, report_put_call, convert_group, convert_rank;
  simulator::Duration copy_word, flop;
  simulator::Duration packet, rma_step;
};

}  // namespace tombolo::scc
