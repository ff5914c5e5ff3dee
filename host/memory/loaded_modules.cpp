// SPDX-License-Identifier: Apache-2.0
#include "host/memory/loaded_modules.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <span>

namespace tombolo::host {
namespace {

constexpr std::string_view no_build = "-";

std::string hex_of(std::span<const unsigned char> bytes) {
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

constexpr std::size_t in_words(std::size_t bytes) { return (bytes + 3) / 4 * 4; }

// Of a segment of notes.
std::string build_in(const unsigned char* at, std::size_t bytes) {
  const unsigned char* const end = at + bytes;
  while (at + sizeof(ElfW(Nhdr)) <= end) {
    ElfW(Nhdr) head;
    std::memcpy(&head, at, sizeof head);
    const unsigned char* const name = at + sizeof head;
    const unsigned char* const contents = name + in_words(head.n_namesz);
    if (contents + head.n_descsz > end) return {};
    if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0)
      return hex_of({contents, head.n_descsz});
    at = contents + in_words(head.n_descsz);
  }
  return {};
}

std::string build_of(const dl_phdr_info& object) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = object.dlpi_phdr[i];
    if (header.p_type != PT_NOTE) continue;
    const auto* const at =
        reinterpret_cast<const unsigned char*>(object.dlpi_addr + header.p_vaddr);
    if (std::string build = build_in(at, header.p_memsz); !build.empty()) return build;
  }
  return {};
}

int add(dl_phdr_info* object, std::size_t, void* found) {
  auto& modules = *static_cast<std::vector<LoadedModule>*>(found);
  std::string_view name = object->dlpi_name;
  name.remove_prefix(name.rfind('/') + 1);
  if (name.starts_with("linux-vdso")) return 0;
  // The executable comes first, and has no name.
  if (modules.empty()) name = "the program";
  modules.push_back({std::string(name), object->dlpi_addr, build_of(*object)});
  return 0;
}

}  // namespace

std::vector<LoadedModule> loaded_modules() {
  std::vector<LoadedModule> modules;
  dl_iterate_phdr(&add, &modules);
  return modules;
}

std::string text_of(const std::vector<LoadedModule>& modules) {
  std::string text;
  for (const LoadedModule& module : modules)
    text += fmt::format("{:x} {} {}\n", module.address,
                        module.build.empty() ? no_build : module.build, module.name);
  return text;
}

std::vector<LoadedModule> modules_in(std::string_view text) {
  std::vector<LoadedModule> modules;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    LoadedModule module;
    const auto [behind, error] =
        std::from_chars(line.data(), line.data() + line.size(), module.address, 16);
    const auto first = static_cast<std::size_t>(behind - line.data());
    const std::size_t second = line.find(' ', first + 1);
    if (error != std::errc() || first >= line.size() || second == std::string_view::npos) continue;
    module.build = line.substr(first + 1, second - first - 1);
    if (module.build == no_build) module.build.clear();
    module.name = line.substr(second + 1);
    modules.push_back(std::move(module));
  }
  return modules;
}

std::string difference(const std::vector<LoadedModule>& mine,
                       const std::vector<LoadedModule>& theirs) {
  for (const LoadedModule& other : theirs) {
    const auto found = std::ranges::find(mine, other.name, &LoadedModule::name);
    if (found == mine.end()) return fmt::format("{} is missing", other.name);
    if (found->build != other.build) return fmt::format("{} is another build", other.name);
    if (found->address != other.address)
      return fmt::format("{} lies at {:#x}, not at {:#x}", other.name, found->address,
                         other.address);
  }
  return {};
}

}  // namespace tombolo::host
