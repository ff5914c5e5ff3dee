// SPDX-License-Identifier: Apache-2.0
// Purpose: the parameters of a chip of the SCC's kind: read from a TOML file in which each stands
// with its source (chips/scc.toml). A file may name another as its base and state only the
// differences.
//
// Invariants: PA1 a file without a base states every parameter; an unknown one, or one of the wrong
//                 kind or out of its range, is refused with the file, the name and the values
//                 allowed.
//             PA2 core cycles may be halves, so that a Duration holds them exactly.
// Thread safety: values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "simulator/kernel/time.h"
#include "simulator/parts/mesh.h"

namespace tombolo::scc {

// A number of cycles of the core's clock, in halves.
struct HalfCycles {
  std::int64_t halves = 0;
};

// How the time of the memory behind a controller is modelled: memory_unit.h.
enum class MemoryKind : std::uint8_t { banked, plain };

struct Parameters {
  std::string name;
  std::string title;

  struct Layout {
    std::int64_t mesh_columns, mesh_rows, cores_per_tile;
    std::vector<simulator::Tile> controllers;
    MemoryKind memory_model;
    std::int64_t controller_megabytes, banks_per_controller, bank_interleave_bytes;
    std::int64_t private_pages, public_pages;
    std::int64_t mpb_bytes_per_tile;
    std::int64_t lut_entries, lut_page_megabytes;
    std::int64_t shared_lut_entry, mpb_lut_entry, register_lut_entry;
    std::int64_t first_free_lut_entry, free_lut_entries;
  } layout;
  struct Clocks {
    std::int64_t core_megahertz, mesh_megahertz, memory_megahertz;
  } clocks;
  struct Caches {
    std::int64_t l1_bytes, l2_bytes, ways, line_bytes;
  } caches;
  struct MeshTiming {
    std::int64_t hop_mesh_cycles, link_bytes;
  } mesh;
  struct CoreTiming {
    HalfCycles load, store, loop, miss, l2, system_call;
    bool stalls_behind_write;
  } core;
  struct Path {
    HalfCycles mpb, local_mpb, registers, dram;
    std::int64_t dram_memory_cycles, controller_busy_memory_cycles, bank_busy_memory_cycles;
    std::int64_t write_to_read_memory_cycles, read_to_write_memory_cycles;
    HalfCycles mpb_busy, register_busy;
  } path;
  struct Operations {
    HalfCycles cl1invmb, wbinvd, wbinvd_valid_line, invd_valid_line, flush_loop;
  } operations;
  struct Errata {
    bool mpbt_wt_reads_uncached, local_mpb_bypass_unusable, ncm_wcb_reads_first_word;
  } errata;
  struct Extensions {
    bool selective_write_back, selective_invalidation, remote_invalidation, guaranteed_commit,
        copy_engine;
    HalfCycles line_operation, copy_engine_start;
  } extensions;
  struct Software {
    HalfCycles library_call, put_call, report_put_call, convert_group, convert_rank, copy_word,
        flop;
    HalfCycles packet, rma_step;  // of baselines/rckmpi*
  } software;
  // sccLinux, as far as experiments/svp/ needs it.
  struct Linux {
    std::int64_t private_megabytes, kernel_megabytes;
    std::int64_t tick_microseconds;
    std::int64_t packet_bytes, window_bytes, map_threshold_kilobytes;
    HalfCycles interrupt, context_switch, thread, page_fault, allocation;
    HalfCycles socket_call, segment_send, segment_receive, acknowledgement;
  } system;
  // The distributed implementation of SVP that 002 measures.
  struct Svp {
    HalfCycles gather_element, xdr_element, xdr_word;
  } svp;

  std::uint32_t tiles() const {
    return static_cast<std::uint32_t>(layout.mesh_columns * layout.mesh_rows);
  }
  std::uint32_t cores() const {
    return tiles() * static_cast<std::uint32_t>(layout.cores_per_tile);
  }
  std::uint64_t page_bytes() const {
    return static_cast<std::uint64_t>(layout.lut_page_megabytes) << 20;
  }
};

// Reads `path`, and its base from the same folder. bad_configuration: see PA1.
Status read_parameters(const std::string& path, Parameters* parameters);

// A chip by its name among those of the project ("scc", "mesh-8x8", ...), or by the path of a file
// (anything with a slash or ".toml"). bad_configuration, with the names there are, if there is
// none.
Status find_parameters(const std::string& name_or_path, Parameters* parameters);

// A number that differs between any two chips whose parameters differ.
std::uint64_t digest(const Parameters& parameters);

}  // namespace tombolo::scc
