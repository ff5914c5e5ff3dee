// SPDX-License-Identifier: Apache-2.0
#include "host/images/peer_image.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "base/rounding.h"

namespace tombolo::host {

class PeerImage::Span {
 public:
  Span(const ImageName& name, const AddressRange& range, void* start)
      : name_(name), range_(range), start_(static_cast<std::byte*>(start)) {}
  ~Span() { munmap(start_, range_.bytes()); }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

  bool covers(const ImageName& name, const AddressRange& range) const {
    return name == name_ && range_.low <= range.low && range.high <= range_.high;
  }
  bool process_ended() const { return kill(name_.pid, 0) != 0 && errno == ESRCH; }
  std::byte* at(std::uint64_t address) const { return start_ + (address - range_.low); }

 private:
  ImageName name_;
  AddressRange range_;
  std::byte* start_;
};

namespace {

constexpr std::size_t most_unused_spans = 64;

Status open_image(const ImageName& name, Descriptor& out) {
  const std::string path = fmt::format("/proc/{}/fd/{}", name.pid, name.descriptor);
  Descriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file.valid()) {
    const int error = errno;
    if (kill(name.pid, 0) != 0 && errno == ESRCH)
      return Status::process_failed(
          -1, fmt::format("process {}, whose memory was to be mapped, has ended", name.pid));
    return Status::unsupported(fmt::format("open of {}: {}", path, std::strerror(error)));
  }
  struct stat shape = {};
  if (fstat(file.get(), &shape) != 0 || shape.st_ino != name.inode)
    return Status::unsupported(
        fmt::format("{} is not the image of process {}: it was closed", path, name.pid));
  out = std::move(file);
  return {};
}

Status map_span(const ImageName& name, const AddressRange& range, void*& start) {
  Descriptor file;
  TOMBOLO_TRY(open_image(name, file));
  start = mmap(nullptr, range.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
               file.get(), static_cast<off_t>(range.low));
  if (start != MAP_FAILED) return {};
  return Status::no_memory(fmt::format(
      "mmap of {} bytes of process {}'s memory: {}; a process may have as many mappings "
      "as vm.max_map_count says",
      range.bytes(), name.pid, std::strerror(errno)));
}

class Spans {
 public:
  Status get(const ImageName& name, const AddressRange& range,
             std::shared_ptr<const PeerImage::Span>& out) {
    const std::lock_guard lock(mutex_);
    for (const auto& span : spans_)
      if (span->covers(name, range)) {
        out = span;
        return {};
      }
    drop_some();
    constexpr std::uint64_t step = PeerImage::span_bytes;
    const AddressRange span{range.low / step * step, round_up(range.high, step)};
    void* start = nullptr;
    TOMBOLO_TRY(map_span(name, span, start));
    out = spans_.emplace_back(std::make_shared<const PeerImage::Span>(name, span, start));
    return {};
  }

 private:
  // PI2. The oldest come first.
  void drop_some() {
    std::size_t unused = static_cast<std::size_t>(std::count_if(
        spans_.begin(), spans_.end(), [](const auto& span) { return span.use_count() == 1; }));
    std::erase_if(spans_, [&](const auto& span) {
      if (span.use_count() > 1) return false;
      if (!span->process_ended() && unused <= most_unused_spans) return false;
      --unused;
      return true;
    });
  }

  std::mutex mutex_;
  std::vector<std::shared_ptr<const PeerImage::Span>> spans_;
};

// Never destroyed: windows may end at the process's exit.
Spans& spans() {
  static auto* const all = new Spans;
  return *all;
}

}  // namespace

Status PeerImage::map(const ImageName& name, const AddressRange& range, PeerImage& out) {
  return spans().get(name, range, out.span_);
}

std::byte* PeerImage::at(std::uint64_t address) const { return span_->at(address); }

}  // namespace tombolo::host
