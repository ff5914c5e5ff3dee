// SPDX-License-Identifier: Apache-2.0
// Purpose: tells ThreadSanitizer which accesses are ordered by a word that is stored by an
// instruction it does not know. Nothing in other builds.
// Thread safety: yes.
#pragma once

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace tombolo::host::flush {

#if defined(__SANITIZE_THREAD__)
inline void tsan_acquire(const void* word) { __tsan_acquire(const_cast<void*>(word)); }
inline void tsan_release(const void* word) { __tsan_release(const_cast<void*>(word)); }
#else
inline void tsan_acquire(const void*) {}
inline void tsan_release(const void*) {}
#endif

}  // namespace tombolo::host::flush
