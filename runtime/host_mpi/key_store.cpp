// SPDX-License-Identifier: Apache-2.0
#include "runtime/host_mpi/key_store.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tombolo::runtime {
namespace {

// The answer to a line; empty if there is none.
std::string ask(int socket, std::string_view line) {
  if (send(socket, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
    return {};
  std::string answer;
  for (char c = 0; answer.size() < 4096 && read(socket, &c, 1) == 1; answer += c)
    if (c == '\n') return answer;
  return {};
}

// The text of a field of an answer: "cmd=my_kvsname rc=0 kvsname=kvs_1".
std::string field(const std::string& answer, std::string_view name) {
  const std::string before = fmt::format(" {}=", name);
  const std::size_t found = answer.find(before);
  if (found == std::string::npos) return {};
  const std::size_t start = found + before.size();
  return answer.substr(start, answer.find_first_of(" \n", start) - start);
}

}  // namespace

// The launcher answers the MPI's own greeting later as if there had been none.
KeyStore KeyStore::behind(int socket) {
  KeyStore store;
  if (ask(socket, "cmd=init pmi_version=1 pmi_subversion=1\n").empty()) return store;
  store.socket_ = socket;
  store.name_ = field(ask(socket, "cmd=get_my_kvsname\n"), "kvsname");
  return store;
}

bool KeyStore::put(std::string_view key) const {
  return field(ask(socket_, fmt::format("cmd=put kvsname={} key={} value=1\n", name_, key)),
               "rc") == "0";
}

bool KeyStore::has(std::string_view key) const {
  const std::string answer = ask(socket_, fmt::format("cmd=get kvsname={} key={}\n", name_, key));
  return field(answer, "rc") == "0" && field(answer, "value") == "1";
}

}  // namespace tombolo::runtime
