// SPDX-License-Identifier: Apache-2.0
#include "backends/scc/parameters.h"

#include <toml++/toml.h>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>

#include "base/option_table.h"
#include "base/random.h"

namespace tombolo::scc {
namespace {

namespace fs = std::filesystem;

// One parameter: where it stands in the file, and the function that takes its value there. It
// returns the values that it would accept, or nothing if it took the value.
struct Field {
  std::string section;
  std::string key;
  std::function<std::string(const toml::node&)> take;
  std::function<std::uint64_t()> value;  // as a number, for the digest
};

std::string range(std::int64_t least, std::int64_t most) {
  return fmt::format("a whole number from {} to {}", least, most);
}

std::string take_integer(const toml::node& node, std::int64_t least, std::int64_t most,
                         std::int64_t& to) {
  const auto value = node.value_exact<std::int64_t>();
  if (!value || *value < least || *value > most) return range(least, most);
  to = *value;
  return {};
}

std::string take_half_cycles(const toml::node& node, HalfCycles& to) {
  constexpr double most_allowed = 10'000'000;
  const auto value = node.value<double>();
  if (node.is_number() && value && *value >= 0 && *value <= most_allowed &&
      std::floor(*value * 2) == *value * 2) {
    to.halves = static_cast<std::int64_t>(*value * 2);
    return {};
  }
  return fmt::format("a multiple of 0.5 from 0 to {}", most_allowed);
}

std::string take_bool(const toml::node& node, bool& to) {
  const auto value = node.value_exact<bool>();
  if (!value) return "true or false";
  to = *value;
  return {};
}

constexpr std::string_view memory_models[] = {"banked", "plain"};  // as MemoryKind

std::string take_memory_model(const toml::node& node, MemoryKind& to) {
  const auto name = node.value_exact<std::string>();
  const auto* const found = std::find(std::begin(memory_models), std::end(memory_models),
                                      name ? std::string_view(*name) : std::string_view());
  if (found == std::end(memory_models))
    return fmt::format("one of \"{}\"", fmt::join(memory_models, "\", \""));
  to = static_cast<MemoryKind>(found - std::begin(memory_models));
  return {};
}

std::string take_tiles(const toml::node& node, std::vector<simulator::Tile>& to) {
  const std::string wish = "a list of tiles, each [x, y]";
  const toml::array* list = node.as_array();
  if (list == nullptr || list->empty()) return wish;
  std::vector<simulator::Tile> tiles;
  for (const toml::node& item : *list) {
    const toml::array* pair = item.as_array();
    if (pair == nullptr || pair->size() != 2) return wish;
    const auto x = (*pair)[0].value_exact<std::int64_t>();
    const auto y = (*pair)[1].value_exact<std::int64_t>();
    if (!x || !y || *x < 0 || *y < 0 || *x > 1023 || *y > 1023) return wish;
    tiles.push_back({static_cast<std::uint32_t>(*x), static_cast<std::uint32_t>(*y)});
  }
  to = std::move(tiles);
  return {};
}

std::uint64_t mix(const std::vector<simulator::Tile>& tiles) {
  std::uint64_t sum = 0;
  for (const simulator::Tile& tile : tiles)
    sum = Random(sum ^ (std::uint64_t{tile.x} << 32 | tile.y)).next();
  return sum;
}

std::vector<Field> fields(Parameters& p) {
  std::vector<Field> all;
  std::string section;
  const auto number = [&](const char* key, std::int64_t& to, std::int64_t least,
                          std::int64_t most) {
    all.push_back(
        {section, key,
         [&to, least, most](const toml::node& node) { return take_integer(node, least, most, to); },
         [&to] { return static_cast<std::uint64_t>(to); }});
  };
  const auto cycles = [&](const char* key, HalfCycles& to) {
    all.push_back({section, std::string(key) + "_core_cycles",
                   [&to](const toml::node& node) { return take_half_cycles(node, to); },
                   [&to] { return static_cast<std::uint64_t>(to.halves); }});
  };
  const auto flag = [&](const char* key, bool& to) {
    all.push_back({section, key, [&to](const toml::node& node) { return take_bool(node, to); },
                   [&to] { return static_cast<std::uint64_t>(to); }});
  };
  section = "layout";
  number("mesh_columns", p.layout.mesh_columns, 1, 64);
  number("mesh_rows", p.layout.mesh_rows, 1, 64);
  number("cores_per_tile", p.layout.cores_per_tile, 1, 8);
  all.push_back({section, "controllers",
                 [&p](const toml::node& node) { return take_tiles(node, p.layout.controllers); },
                 [&p] { return mix(p.layout.controllers); }});
  number("controller_megabytes", p.layout.controller_megabytes, 64, 1 << 20);
  all.push_back(
      {section, "memory_model",
       [&p](const toml::node& node) { return take_memory_model(node, p.layout.memory_model); },
       [&p] { return static_cast<std::uint64_t>(p.layout.memory_model); }});
  number("banks_per_controller", p.layout.banks_per_controller, 1, 64);
  number("bank_interleave_bytes", p.layout.bank_interleave_bytes, 0, std::int64_t{1} << 40);
  number("private_pages", p.layout.private_pages, 2, 128);
  number("public_pages", p.layout.public_pages, 1, 64);
  number("mpb_bytes_per_tile", p.layout.mpb_bytes_per_tile, 1024, 1 << 20);
  number("lut_entries", p.layout.lut_entries, 64, 1 << 16);
  number("lut_page_megabytes", p.layout.lut_page_megabytes, 1, 1024);
  number("shared_lut_entry", p.layout.shared_lut_entry, 0, 1 << 16);
  number("mpb_lut_entry", p.layout.mpb_lut_entry, 0, 1 << 16);
  number("register_lut_entry", p.layout.register_lut_entry, 0, 1 << 16);
  number("first_free_lut_entry", p.layout.first_free_lut_entry, 0, 1 << 16);
  number("free_lut_entries", p.layout.free_lut_entries, 1, 1 << 16);
  section = "clocks";
  number("core_megahertz", p.clocks.core_megahertz, 1, 100'000);
  number("mesh_megahertz", p.clocks.mesh_megahertz, 1, 100'000);
  number("memory_megahertz", p.clocks.memory_megahertz, 1, 100'000);
  section = "caches";
  number("l1_bytes", p.caches.l1_bytes, 1024, 1 << 24);
  number("l2_bytes", p.caches.l2_bytes, 1024, 1 << 28);
  number("ways", p.caches.ways, 1, 32);
  number("line_bytes", p.caches.line_bytes, 32, 32);
  section = "mesh";
  number("hop_mesh_cycles", p.mesh.hop_mesh_cycles, 0, 1000);
  number("link_bytes", p.mesh.link_bytes, 1, 1024);
  section = "core";
  cycles("load", p.core.load);
  cycles("store", p.core.store);
  cycles("loop", p.core.loop);
  cycles("miss", p.core.miss);
  cycles("l2", p.core.l2);
  cycles("system_call", p.core.system_call);
  flag("stalls_behind_write", p.core.stalls_behind_write);
  section = "path";
  cycles("mpb", p.path.mpb);
  cycles("local_mpb", p.path.local_mpb);
  cycles("register", p.path.registers);
  cycles("dram", p.path.dram);
  number("dram_memory_cycles", p.path.dram_memory_cycles, 1, 100'000);
  number("controller_busy_memory_cycles", p.path.controller_busy_memory_cycles, 1, 100'000);
  number("bank_busy_memory_cycles", p.path.bank_busy_memory_cycles, 1, 100'000);
  number("write_to_read_memory_cycles", p.path.write_to_read_memory_cycles, 0, 100'000);
  number("read_to_write_memory_cycles", p.path.read_to_write_memory_cycles, 0, 100'000);
  cycles("mpb_busy", p.path.mpb_busy);
  cycles("register_busy", p.path.register_busy);
  section = "operations";
  cycles("cl1invmb", p.operations.cl1invmb);
  cycles("wbinvd", p.operations.wbinvd);
  cycles("wbinvd_valid_line", p.operations.wbinvd_valid_line);
  cycles("invd_valid_line", p.operations.invd_valid_line);
  cycles("flush_loop", p.operations.flush_loop);
  section = "errata";
  flag("mpbt_wt_reads_uncached", p.errata.mpbt_wt_reads_uncached);
  flag("local_mpb_bypass_unusable", p.errata.local_mpb_bypass_unusable);
  flag("ncm_wcb_reads_first_word", p.errata.ncm_wcb_reads_first_word);
  section = "extensions";
  flag("selective_write_back", p.extensions.selective_write_back);
  flag("selective_invalidation", p.extensions.selective_invalidation);
  flag("remote_invalidation", p.extensions.remote_invalidation);
  flag("guaranteed_commit", p.extensions.guaranteed_commit);
  flag("copy_engine", p.extensions.copy_engine);
  cycles("line_operation", p.extensions.line_operation);
  cycles("copy_engine_start", p.extensions.copy_engine_start);
  section = "software";
  cycles("library_call", p.software.library_call);
  cycles("put_call", p.software.put_call);
  cycles("report_put_call", p.software.report_put_call);
  cycles("convert_group", p.software.convert_group);
  cycles("convert_rank", p.software.convert_rank);
  cycles("copy_word", p.software.copy_word);
  cycles("flop", p.software.flop);
  cycles("packet", p.software.packet);
  cycles("rma_step", p.software.rma_step);
  section = "linux";
  number("private_megabytes", p.system.private_megabytes, 1, 1 << 20);
  number("kernel_megabytes", p.system.kernel_megabytes, 1, 1 << 20);
  number("tick_microseconds", p.system.tick_microseconds, 1, 1'000'000);
  number("packet_bytes", p.system.packet_bytes, 68, 1500);
  number("window_bytes", p.system.window_bytes, 1500, 1 << 30);
  number("map_threshold_kilobytes", p.system.map_threshold_kilobytes, 1, 1 << 20);
  cycles("interrupt", p.system.interrupt);
  cycles("context_switch", p.system.context_switch);
  cycles("thread", p.system.thread);
  cycles("page_fault", p.system.page_fault);
  cycles("allocation", p.system.allocation);
  cycles("socket_call", p.system.socket_call);
  cycles("segment_send", p.system.segment_send);
  cycles("segment_receive", p.system.segment_receive);
  cycles("acknowledgement", p.system.acknowledgement);
  section = "svp";
  cycles("gather_element", p.svp.gather_element);
  cycles("xdr_element", p.svp.xdr_element);
  cycles("xdr_word", p.svp.xdr_word);
  return all;
}

using Names = std::set<std::string>;

class Reader {
 public:
  explicit Reader(Parameters& parameters) : parameters_(parameters), fields_(fields(parameters)) {}

  Status read(const fs::path& path, int depth = 0) {
    if (depth > 4) return wrong(path, "its bases go round in a circle or are too many");
    std::error_code error;
    if (!fs::is_regular_file(path, error)) return wrong(path, "there is no such file");
    toml::table table;
    try {
      table = toml::parse_file(path.string());
    } catch (const toml::parse_error& mistake) {
      return wrong(path, fmt::format("line {}: {}", mistake.source().begin.line,
                                     std::string(mistake.description())));
    }
    if (table.contains("base")) {
      const auto base = table["base"].value<std::string>();
      if (!base || base->empty() || base->find('/') != std::string::npos)
        return wrong(path, "base must be the name of a chip in the same folder");
      const fs::path base_path = path.parent_path() / (*base + ".toml");
      if (!fs::is_regular_file(base_path, error))
        return wrong(path, fmt::format("its base is {}, which is not there", base_path.string()));
      TOMBOLO_TRY(read(base_path, depth + 1));
    }
    TOMBOLO_TRY(take_text(path, table, "name", parameters_.name));
    TOMBOLO_TRY(take_text(path, table, "title", parameters_.title));
    TOMBOLO_TRY(take_all(path, table));
    if (depth > 0) return {};
    for (const Field& field : fields_)
      if (!seen_.contains(field.section + "." + field.key))
        return wrong(path, fmt::format("[{}] {} is missing, and it has no base that states it",
                                       field.section, field.key));
    return check(path);
  }

 private:
  static Status wrong(const fs::path& path, const std::string& why) {
    return Status::bad_configuration(fmt::format("{}: {}", path.string(), why));
  }

  static Status take_text(const fs::path& path, const toml::table& table, const char* key,
                          std::string& to) {
    const auto text = table[key].value<std::string>();
    if (!text || text->empty()) return wrong(path, fmt::format("{} = \"...\" is missing", key));
    to = *text;
    return {};
  }

  Status take_all(const fs::path& path, const toml::table& table) {
    for (const auto& [section, node] : table) {
      const std::string name(section.str());
      if (name == "name" || name == "title" || name == "base") continue;
      const toml::table* keys = node.as_table();
      if (keys == nullptr) return wrong(path, fmt::format("{} is no parameter", name));
      for (const auto& [key, leaf] : *keys)
        TOMBOLO_TRY(take(path, name, std::string(key.str()), leaf));
    }
    return {};
  }

  Status take(const fs::path& path, const std::string& section, const std::string& key,
              const toml::node& leaf) {
    const auto field = std::find_if(fields_.begin(), fields_.end(), [&](const Field& f) {
      return f.section == section && f.key == key;
    });
    if (field == fields_.end())
      return wrong(path, fmt::format("[{}] {} is no parameter", section, key));
    const toml::table* pair = leaf.as_table();
    const bool has_source =
        pair != nullptr && !(*pair)["source"].value<std::string>().value_or("").empty();
    if (!has_source || !pair->contains("value"))
      return wrong(
          path, fmt::format("[{}] {} must be {{ value = ..., source = \"...\" }}", section, key));
    if (const std::string wish = field->take(*pair->get("value")); !wish.empty())
      return wrong(path, fmt::format("[{}] {} must be {}", section, key, wish));
    seen_.insert(section + "." + key);
    return {};
  }

  // Conditions on several parameters.
  Status check(const fs::path& path) const {
    TOMBOLO_TRY(check_layout(path));
    TOMBOLO_TRY(check_table(path));
    TOMBOLO_TRY(check_controllers(path));
    TOMBOLO_TRY(check_caches(path));
    TOMBOLO_TRY(check_ways(path));
    return check_clocks(path);
  }

  Status check_layout(const fs::path& path) const {
    const Parameters::Layout& l = parameters_.layout;
    for (const simulator::Tile& tile : l.controllers)
      if (tile.x >= l.mesh_columns || tile.y >= l.mesh_rows)
        return wrong(path,
                     fmt::format("[layout] controllers: ({}, {}) is not on the mesh of {} x {}",
                                 tile.x, tile.y, l.mesh_columns, l.mesh_rows));
    if (l.public_pages >= l.private_pages)
      return wrong(path, "[layout] public_pages are the last of private_pages: they must be fewer");
    return {};
  }

  // The parts of the lookup table.
  Status check_table(const fs::path& path) const {
    const Parameters::Layout& l = parameters_.layout;
    struct Entries {
      const char* what;
      std::int64_t first, count;
    };
    std::vector<Entries> used = {
        {"private_pages", 0, l.private_pages},
        {"shared_lut_entry", l.shared_lut_entry, static_cast<std::int64_t>(l.controllers.size())},
        {"mpb_lut_entry", l.mpb_lut_entry, parameters_.tiles()},
        {"register_lut_entry", l.register_lut_entry, parameters_.tiles()},
        {"first_free_lut_entry", l.first_free_lut_entry, l.free_lut_entries}};
    std::sort(used.begin(), used.end(),
              [](const Entries& a, const Entries& b) { return a.first < b.first; });
    for (std::size_t i = 0; i < used.size(); ++i) {
      const std::int64_t end = i + 1 < used.size() ? used[i + 1].first : l.lut_entries;
      if (used[i].first + used[i].count > end)
        return wrong(path, fmt::format("[layout] {}: {} lookup table entries from {} on reach {}",
                                       used[i].what, used[i].count, used[i].first,
                                       i + 1 < used.size()
                                           ? fmt::format("into those of {}", used[i + 1].what)
                                           : "beyond the table"));
    }
    return {};
  }

  Status check_controllers(const fs::path& path) const {
    const Parameters::Layout& l = parameters_.layout;
    const std::int64_t cores_of_one =
        (parameters_.cores() + static_cast<std::int64_t>(l.controllers.size()) - 1) /
        static_cast<std::int64_t>(l.controllers.size());
    // The pages of its cores, and one of legacy shared memory.
    const std::int64_t needed = (cores_of_one * l.private_pages + 1) * l.lut_page_megabytes;
    if (needed > l.controller_megabytes)
      return wrong(path, fmt::format("[layout] controller_megabytes: {} cores of {} private pages "
                                     "of {} MB each need {}, not {}",
                                     cores_of_one, l.private_pages, l.lut_page_megabytes, needed,
                                     l.controller_megabytes));
    return {};
  }

  Status check_caches(const fs::path& path) const {
    const Parameters& p = parameters_;
    const Parameters::Layout& l = p.layout;
    for (const std::int64_t bytes : {p.caches.l1_bytes, p.caches.l2_bytes}) {
      const std::int64_t sets = bytes / p.caches.line_bytes / p.caches.ways;
      if (sets < 1 || (sets & (sets - 1)) != 0 ||
          sets * p.caches.line_bytes * p.caches.ways != bytes)
        return wrong(path, fmt::format("[caches] {} bytes in {} ways are no power of two of sets",
                                       bytes, p.caches.ways));
    }
    if ((p.caches.ways & (p.caches.ways - 1)) != 0)
      return wrong(path, fmt::format("[caches] ways: {} is no power of two", p.caches.ways));
    const std::int64_t part = l.mpb_bytes_per_tile / l.cores_per_tile;
    if (part * l.cores_per_tile != l.mpb_bytes_per_tile || part % p.caches.line_bytes != 0)
      return wrong(path, fmt::format("[layout] mpb_bytes_per_tile: {} are no whole lines for each "
                                     "of {} cores",
                                     l.mpb_bytes_per_tile, l.cores_per_tile));
    // The kernel's two blocks for flushes lie there.
    if (2 * p.caches.l2_bytes >= ((l.private_pages - l.public_pages) * l.lut_page_megabytes) << 20)
      return wrong(path,
                   "[caches] l2_bytes: twice as much does not fit into the private pages that "
                   "are not public");
    return {};
  }

  // The times of the ways through the chip.
  Status check_ways(const fs::path& path) const {
    const Parameters& p = parameters_;
    for (const auto& [name, path_of] :
         {std::pair{"mpb", p.path.mpb}, {"register", p.path.registers}, {"dram", p.path.dram}})
      if (path_of.halves < p.core.l2.halves)
        return wrong(path,
                     fmt::format("[path] {}_core_cycles: the way through L2, {} core cycles, is "
                                 "part of it",
                                 name, static_cast<double>(p.core.l2.halves) / 2));
    if (p.software.copy_word.halves < p.core.load.halves)
      return wrong(path, "[software] copy_word_core_cycles: the load is part of it");
    if (p.system.kernel_megabytes >= p.system.private_megabytes)
      return wrong(path, "[linux] kernel_megabytes: as much as all of the private memory");
    return {};
  }

  Status check_clocks(const fs::path& path) const {
    for (const std::int64_t megahertz :
         {parameters_.clocks.core_megahertz * 2, parameters_.clocks.mesh_megahertz,
          parameters_.clocks.memory_megahertz}) {
      simulator::Clock clock = simulator::Clock::megahertz(1);
      if (Status s = simulator::Clock::make(megahertz * 1'000'000, 1, &clock); !s.ok())
        return wrong(path, "[clocks] " + s.message());
    }
    return {};
  }

  Parameters& parameters_;
  std::vector<Field> fields_;
  Names seen_;
};

fs::path chips_folder() {
  return is_set(options::chips) ? text_of(options::chips) : TOMBOLO_CHIPS_FOLDER;
}

}  // namespace

Status read_parameters(const std::string& path, Parameters* parameters) {
  Parameters read{};
  TOMBOLO_TRY(Reader(read).read(path));
  *parameters = std::move(read);
  return {};
}

Status find_parameters(const std::string& name_or_path, Parameters* parameters) {
  if (name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".toml"))
    return read_parameters(name_or_path, parameters);
  const fs::path path = chips_folder() / (name_or_path + ".toml");
  std::error_code error;
  if (fs::exists(path, error)) return read_parameters(path.string(), parameters);
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(chips_folder(), error))
    if (entry.path().extension() == ".toml") names.insert(entry.path().stem().string());
  return Status::bad_configuration(
      fmt::format("there is no chip \"{}\" in {}: there are {}; or give the path of a file",
                  name_or_path, chips_folder().string(), fmt::join(names, ", ")));
}

std::uint64_t digest(const Parameters& parameters) {
  Parameters copy = parameters;
  std::uint64_t sum = 0;
  for (const Field& field : fields(copy)) sum = Random(sum ^ field.value()).next();
  return sum;
}

}  // namespace tombolo::scc
