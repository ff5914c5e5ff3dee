// SPDX-License-Identifier: Apache-2.0
// Purpose: system calls past the C library's functions of the same names, in whose place libraries
// put their own: UCX, which MPIs use, those that map memory, and profilers those that read and
// write. Theirs store to the heap, which must not change while its pages move; and UCX's mremap
// takes four arguments, so that the new address gets lost.
// Thread safety: the kernel's. Errors: as those of the C library, in errno.
#pragma once

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "host/memory/address_space.h"

namespace tombolo::host::raw {

inline void* map(std::uint64_t at, std::uint64_t bytes, int access, int flags, int file,
                 std::uint64_t offset) {
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, bytes, access, flags, file, offset));
}
inline void unmap(const void* at, std::uint64_t bytes) { syscall(SYS_munmap, at, bytes); }
inline bool protect(const AddressRange& pages, int access) {
  return syscall(SYS_mprotect, pages.low, pages.bytes(), access) == 0;
}
// In the place of the pages at `to`.
inline bool move(const void* from, std::uint64_t bytes, std::uint64_t to) {
  return syscall(SYS_mremap, from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) ==
         static_cast<long>(to);
}
// A second mapping of shared memory, in the place of the pages at `to`.
inline bool map_again(const void* from, std::uint64_t bytes, std::uint64_t to) {
  return syscall(SYS_mremap, from, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) ==
         static_cast<long>(to);
}
inline void advise(const void* at, std::uint64_t bytes, int advice) {
  syscall(SYS_madvise, at, bytes, advice);
}
inline bool is_mapped(const AddressRange& pages, unsigned char* residency) {
  return syscall(SYS_mincore, pages.low, pages.bytes(), residency) == 0;
}
// Whether the page of `at` can be written to now: the kernel adds 0 there by an atomic instruction.
inline bool is_writable(std::uint64_t at) {
  std::uint32_t unused = 0;
  const int add_zero = FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0);
  return syscall(SYS_futex, &unused, FUTEX_WAKE_OP_PRIVATE, 0, 0,
                 at / sizeof unused * sizeof unused, add_zero) >= 0;
}
// A microsecond, or as much longer as the kernel takes.
inline void sleep_briefly() {
  const timespec briefly{0, 1'000};
  syscall(SYS_nanosleep, &briefly, nullptr);
}
inline int open(const char* path) {
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC));
}
inline bool stat(int file, struct stat* shape) { return syscall(SYS_fstat, file, shape) == 0; }
inline void close(int file) { syscall(SYS_close, file); }
inline long read(int file, void* to, std::size_t bytes, std::uint64_t offset) {
  return syscall(SYS_pread64, file, to, bytes, offset);
}
inline long write(int file, const void* from, std::size_t bytes, std::uint64_t offset) {
  return syscall(SYS_pwrite64, file, from, bytes, offset);
}
inline long seek(int file, std::uint64_t offset, int to) {
  return syscall(SYS_lseek, file, offset, to);
}
inline void punch_hole(int file, const AddressRange& pages) {
  syscall(SYS_fallocate, file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, pages.low,
          pages.bytes());
}

}  // namespace tombolo::host::raw
