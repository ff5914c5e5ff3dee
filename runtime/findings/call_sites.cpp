// SPDX-License-Identifier: Apache-2.0
#include "runtime/findings/call_sites.h"

#include <fmt/format.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <string_view>

#include "host/processes/program_output.h"

namespace tombolo::runtime {
namespace {

constexpr unsigned offset_bits = 32;
constexpr std::uint64_t offset_mask = (std::uint64_t{1} << offset_bits) - 1;
constexpr std::chrono::seconds patience{20};

// A range of addresses that a module is loaded at.
struct Code {
  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t base;  // of its module
  std::uint16_t id;    // of its module
  std::string path;    // of its module
};

std::string path_of_program() {
  std::array<char, 4096> path{};
  const ssize_t bytes = readlink("/proc/self/exe", path.data(), path.size() - 1);
  return bytes > 0 ? std::string(path.data(), static_cast<std::size_t>(bytes)) : std::string();
}

// FNV-1a, folded. Never 0, so that no place of a module is 0.
std::uint16_t id_of(std::string_view path) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : path) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  hash ^= hash >> 32;
  return std::max<std::uint16_t>(1, static_cast<std::uint16_t>(hash ^ hash >> 16));
}

std::vector<Code> loaded_code() {
  std::vector<Code> all;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        auto& into = *static_cast<std::vector<Code>*>(out);
        // The program itself comes first, and without a name.
        const std::string path =
            into.empty() && *info->dlpi_name == '\0' ? path_of_program() : info->dlpi_name;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
          const std::uint64_t begin = info->dlpi_addr + segment.p_vaddr;
          into.push_back({begin, begin + segment.p_memsz, info->dlpi_addr, id_of(path), path});
        }
        return 0;
      },
      &all);
  return all;
}

// The modules of this process, looked up again when an address is in none of them.
class Modules {
 public:
  std::uint64_t site(std::uint64_t address) {
    const std::lock_guard lock(mutex_);
    const Code* code = find(address);
    if (code == nullptr) {
      all_ = loaded_code();
      code = find(address);
    }
    if (code == nullptr) return address & offset_mask;  // made at run time
    return std::uint64_t{code->id} << offset_bits | ((address - code->base) & offset_mask);
  }

 private:
  const Code* find(std::uint64_t address) {
    const auto covers = [address](const Code& code) {
      return code.begin <= address && address < code.end;
    };
    if (last_ < all_.size() && covers(all_[last_])) return &all_[last_];
    const auto found = std::find_if(all_.begin(), all_.end(), covers);
    if (found == all_.end()) return nullptr;
    last_ = static_cast<std::size_t>(found - all_.begin());
    return &*found;
  }

  std::mutex mutex_;
  std::vector<Code> all_;
  std::size_t last_ = 0;
};

// Never destroyed: calls come from a program's own static objects too.
Modules& modules() {
  static Modules* const all = new Modules;
  return *all;
}

// The module with this number and code at this offset; null if none or several fit.
const Code* module_of(const std::vector<Code>& all, std::uint64_t site) {
  const Code* found = nullptr;
  for (const Code& code : all) {
    const std::uint64_t address = code.base + (site & offset_mask);
    if (code.id != site >> offset_bits || address < code.begin || address >= code.end) continue;
    if (found != nullptr && found->path != code.path) return nullptr;
    found = &code;
  }
  return found;
}

// One line of addr2line, "FILE:LINE (discriminator 1)"; empty if it does not know.
std::string place_in(std::string_view line) {
  line = line.substr(0, line.find(" ("));
  const auto colon = line.rfind(':');
  if (colon == std::string_view::npos || line.starts_with("??")) return {};
  const std::string_view number = line.substr(colon + 1);
  if (number == "?" || number == "0") return {};
  std::array<char, 4096> here{};
  const std::string_view folder = getcwd(here.data(), here.size()) != nullptr ? here.data() : "";
  if (!folder.empty() && line.starts_with(folder) && line[folder.size()] == '/')
    line.remove_prefix(folder.size() + 1);
  return std::string(line);
}

// The places in one module, in the order of the offsets.
std::vector<std::string> resolved(const std::string& module,
                                  const std::vector<std::uint64_t>& offsets) {
  std::vector<std::string> command{"addr2line", "-e", module};
  for (const std::uint64_t offset : offsets) command.push_back(fmt::format("{:#x}", offset));
  const std::string text = host::output_of(command, patience).value_or("");
  std::vector<std::string> places;
  std::string_view rest = text;
  for (const std::uint64_t offset : offsets) {
    const auto end = rest.find('\n');
    std::string place = place_in(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    places.push_back(place.empty() ? fmt::format("{}+{:#x}", module, offset) : std::move(place));
  }
  return places;
}

}  // namespace

std::uint64_t call_site(const void* address) {
  // The return address may be that of the next line.
  return modules().site(reinterpret_cast<std::uint64_t>(address) - 1);
}

std::uint64_t code_place(const void* address) {
  const std::uint64_t site = modules().site(reinterpret_cast<std::uint64_t>(address));
  return site >> offset_bits == 0 ? 0 : site;
}

const void* address_of(std::uint64_t place) {
  const std::vector<Code> all = loaded_code();
  const Code* const code = module_of(all, place);
  return code == nullptr ? nullptr
                         : reinterpret_cast<const void*>(code->base + (place & offset_mask));
}

std::vector<std::string> places_of(std::span<const std::uint64_t> sites) {
  const std::vector<Code> all = loaded_code();
  std::vector<std::string> places(sites.size());
  std::map<std::string, std::vector<std::size_t>> by_module;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    if (sites[i] == 0) continue;
    if (const Code* const module = module_of(all, sites[i]); module == nullptr)
      places[i] = fmt::format("an unknown module+{:#x}", sites[i] & offset_mask);
    else
      by_module[module->path].push_back(i);
  }
  for (const auto& [module, indices] : by_module) {
    std::vector<std::uint64_t> offsets;
    for (const std::size_t i : indices) offsets.push_back(sites[i] & offset_mask);
    std::vector<std::string> found = resolved(module, offsets);
    for (std::size_t i = 0; i < indices.size(); ++i) places[indices[i]] = std::move(found[i]);
  }
  return places;
}

}  // namespace tombolo::runtime
