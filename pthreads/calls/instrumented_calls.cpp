// SPDX-License-Identifier: Apache-2.0
// Purpose: the calls by which parts of a program that were compiled with store instrumentation find
// the runtime (dsm/compiler/runtime_calls.h).
#include "dsm/threads/instrumented_code.h"
#include "pthreads/calls/calls.h"

TOMBOLO_PTHREAD_CALL const tombolo_dsm_runtime* tombolo_dsm_attach(
    const tombolo_dsm_module* module) {
  return tombolo::dsm::attach(*module);
}

TOMBOLO_PTHREAD_CALL void tombolo_dsm_detach(const tombolo_dsm_module* module) {
  tombolo::dsm::detach(*module);
}
