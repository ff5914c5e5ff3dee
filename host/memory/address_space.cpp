// SPDX-License-Identifier: Apache-2.0
#include "host/memory/address_space.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "host/descriptor.h"
#include "host/memory/raw_calls.h"

namespace tombolo::host {
namespace {

// Takes the text before `end` off the front of `text`, and `end` itself.
std::string_view take_until(std::string_view& text, char end) {
  const auto at = std::min(text.find(end), text.size());
  const std::string_view head = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return head;
}

bool number(std::string_view text, int base, std::uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

// "7f0000000000-7f0000001000 rw-p 00000000 00:01 1027                 /memfd:x (deleted)"
bool parse_line(std::string_view line, Mapping& mapping) {
  std::uint64_t major = 0;
  std::uint64_t minor = 0;
  if (!number(take_until(line, '-'), 16, mapping.range.low)) return false;
  if (!number(take_until(line, ' '), 16, mapping.range.high)) return false;
  mapping.access = take_until(line, ' ');
  if (mapping.access.size() != 4) return false;
  if (!number(take_until(line, ' '), 16, mapping.offset)) return false;
  if (!number(take_until(line, ':'), 16, major)) return false;
  if (!number(take_until(line, ' '), 16, minor)) return false;
  if (!number(take_until(line, ' '), 10, mapping.inode)) return false;
  mapping.device = makedev(static_cast<unsigned>(major), static_cast<unsigned>(minor));
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  mapping.name = line;
  return true;
}

// "VmLck:\t       0 kB"; 0 if absent.
std::uint64_t kilobytes(std::string_view status, std::string_view key) {
  const auto at = status.find(key);
  if (at == std::string_view::npos) return 0;
  std::string_view rest = status.substr(at + key.size());
  rest.remove_prefix(std::min(rest.find_first_of("0123456789"), rest.size()));
  std::uint64_t value = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), value);
  return value;
}

bool starts_with_any(std::string_view name, std::initializer_list<std::string_view> heads) {
  return std::any_of(heads.begin(), heads.end(),
                     [&](std::string_view head) { return name.starts_with(head); });
}

// False and errno if the kernel does not tell.
bool read_pagemap(int file, const AddressRange& range, std::uint64_t page, std::span<Page> out) {
  // From the kernel's Documentation/admin-guide/mm/pagemap.rst.
  constexpr std::uint64_t in_memory = std::uint64_t{1} << 63;
  constexpr std::uint64_t swapped = std::uint64_t{1} << 62;
  constexpr std::uint64_t mapped_once = std::uint64_t{1} << 56;  // never set for the page of zeros
  std::array<std::uint64_t, 4096> entries;
  for (std::size_t done = 0; done < out.size();) {
    const std::size_t wanted = std::min(entries.size(), out.size() - done);
    const std::uint64_t at = (range.low / page + done) * sizeof entries[0];
    const long n = raw::read(file, entries.data(), wanted * sizeof entries[0], at);
    if (n >= 0 && n < static_cast<long>(sizeof entries[0])) errno = ENODATA;
    if (n < static_cast<long>(sizeof entries[0])) return false;
    for (std::size_t i = 0; i < static_cast<std::size_t>(n) / sizeof entries[0]; ++i) {
      const std::uint64_t entry = entries[i];
      if ((entry & swapped) != 0 || ((entry & in_memory) != 0 && (entry & mapped_once) != 0)) {
        out[done++] = Page::present;
      } else {
        out[done++] = (entry & in_memory) != 0 ? Page::read : Page::absent;
      }
    }
  }
  return true;
}

}  // namespace

AddressRange common_part(const AddressRange& a, const AddressRange& b) {
  return {std::max(a.low, b.low), std::min(a.high, b.high)};
}

AddressRange file_range(const Mapping& mapping) {
  return {mapping.offset, mapping.offset + mapping.range.bytes()};
}

std::vector<Mapping> parse_mappings(std::string_view text) {
  std::vector<Mapping> mappings;
  while (!text.empty()) {
    Mapping mapping;
    if (parse_line(take_until(text, '\n'), mapping)) mappings.push_back(std::move(mapping));
  }
  return mappings;
}

Status read_proc(const std::string& path, std::string& out) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return Status::io(fmt::format("open of {}: {}", path, std::strerror(errno)));
  out.clear();
  std::array<char, 65536> buffer;
  while (true) {
    const ssize_t n = read(file.get(), buffer.data(), buffer.size());
    if (n == 0) return {};
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Status::io(fmt::format("read of {}: {}", path, std::strerror(errno)));
    out.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

Status read_mappings(std::vector<Mapping>& out) {
  std::string text;
  TOMBOLO_TRY(read_proc("/proc/self/maps", text));
  out = parse_mappings(text);
  return {};
}

AddressRange whole_pages(const AddressRange& range, std::uint64_t page) {
  const std::uint64_t low = (range.low + page - 1) / page * page;
  const std::uint64_t high = range.high / page * page;
  if (low < range.low || high <= low) return {};  // the first: past the last address
  return {low, high};
}

bool is_plain_memory(const Mapping& mapping) {
  return mapping.access == "rw-p" && mapping.inode == 0 &&
         (mapping.name.empty() || mapping.name == "[heap]" || mapping.name.starts_with("[anon:"));
}

bool memory_may_be_registered(const std::vector<Mapping>& mappings, std::string_view status) {
  if (kilobytes(status, "VmLck:") > 0 || kilobytes(status, "VmPin:") > 0) return true;
  return std::any_of(mappings.begin(), mappings.end(), [](const Mapping& mapping) {
    return mapping.name.starts_with("/dev/") &&
           !starts_with_any(mapping.name, {"/dev/shm/", "/dev/zero", "/dev/hugepages/"});
  });
}

Status read_pages(const AddressRange& range, std::uint64_t page, std::vector<Page>& out) {
  out.resize(range.bytes() / page);
  if (read_pages(range, page, std::span(out))) return {};
  return Status::unsupported(fmt::format("read of /proc/self/pagemap: {}", std::strerror(errno)));
}

bool read_pages(const AddressRange& range, std::uint64_t page, std::span<Page> out) {
  const int file = raw::open("/proc/self/pagemap");
  if (file < 0) return false;
  const bool read = read_pagemap(file, range, page, out);
  const int error = errno;
  raw::close(file);
  errno = error;
  return read;
}

}  // namespace tombolo::host
