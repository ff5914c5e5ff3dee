// SPDX-License-Identifier: Apache-2.0
// Purpose: programs of a test that run in processes with compute servers, on each transport,
// protocol and machine. The test's own executable is started as their processes, with --member.
//
//   int main(int argc, char** argv) {
//     if (is_member(argc, argv)) return run_member(settings, [](auto& memory, auto& chosen) {...});
//     ...
//   }
//   EXPECT_TRUE(ran(launch_of(name, kind, threads)).ok());
//
// A process that fails says so on stderr and ends with a status of its own, and the launcher ends
// the others.
// Thread safety: -
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "dsm/memory/compute_server.h"
#include "runtime/processes/launcher.h"

// In a process of a program.
#define REQUIRE(condition)                                                               \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      std::fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
      _exit(3);                                                                          \
    }                                                                                    \
  } while (false)
#define MUST(call)                                                                               \
  do {                                                                                           \
    if (const Status status_of_call = (call); !status_of_call.ok()) {                            \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, status_of_call.message().c_str()); \
      _exit(4);                                                                                  \
    }                                                                                            \
  } while (false)

namespace tombolo::dsm::testing {

struct Kind {
  std::string transport;
  std::string machine;
  std::string protocol;
  std::string name() const { return protocol + "_by_" + transport + "_on_" + machine; }
};

inline std::vector<Kind> kinds_by_window(const std::string& protocol) {
  std::vector<Kind> all;
  for (const std::string_view machine : runtime::machine_names())
    all.push_back({"window", std::string(machine), protocol});
  return all;
}
inline Status available(const Kind& kind) {
  return runtime::served({*runtime::machine_named(kind.machine)}).available();
}

inline runtime::Launch launch_of(const std::string& name, const Kind& kind, int size) {
  return {.command = {"/proc/self/exe", "--member", name},
          .size = size,
          .environment = {{"TOMBOLO_DSM_TRANSPORT", kind.transport},
                          {"TOMBOLO_MACHINE", kind.machine},
                          {"TOMBOLO_DSM_PROTOCOL", kind.protocol}},
          .grace = std::chrono::seconds(30)};
}
inline Status ran(const runtime::Launch& launch) {
  runtime::Launcher launcher;
  TOMBOLO_TRY(runtime::Launcher::start(launch, launcher));
  return launcher.wait();
}

inline bool is_member(int argc, char** argv) {
  return argc == 3 && std::strcmp(argv[1], "--member") == 0;
}

// `most_seconds`: a process that takes longer is killed, and so the program ends.
template <class Body>
int run_member(Settings settings, Body&& body, unsigned most_seconds = 120) {
  alarm(most_seconds);
  std::unique_ptr<runtime::SocketExchange> exchange;
  MUST(runtime::join(exchange));
  MUST(read_options(settings));
  runtime::Collective all(*exchange);
  std::unique_ptr<ComputeServer> server;
  MUST(ComputeServer::open(all, {.settings = settings, .options = runtime::read_environment()},
                           server)
           .status());
  body(server->memory(), server->settings());
  MUST(server->close(all).status());
  return 0;
}

}  // namespace tombolo::dsm::testing
