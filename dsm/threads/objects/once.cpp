// SPDX-License-Identifier: Apache-2.0
#include "dsm/threads/objects/once.h"

#include "dsm/threads/runtime_hooks.h"

namespace tombolo::dsm {

int Once::call(int& done, void (*routine)()) {
  const Object object = objects_.find(&done);
  must(memory_.acquire(object.lock));
  // Also when the routine throws, or ends the thread.
  struct Release {
    ProgramMemory& memory;
    Lock lock;
    ~Release() { must(memory.release(lock)); }
  } const release{memory_, object.lock};
  if (done == 0) {
    routine();
    memory_.record(&done, sizeof done);
    done = 1;
  }
  return 0;
}

}  // namespace tombolo::dsm
