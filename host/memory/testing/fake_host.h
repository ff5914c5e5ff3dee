// SPDX-License-Identifier: Apache-2.0
// Purpose: a tree of files that tests put in place of /proc and /sys.
// Thread safety: none of its own.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace tombolo::host::testing {

class FakeHost {
 public:
  FakeHost() {
    char name[] = "/tmp/tombolo-test-host-XXXXXX";
    root_ = mkdtemp(name);
  }
  ~FakeHost() { std::filesystem::remove_all(root_); }
  FakeHost(const FakeHost&) = delete;
  FakeHost& operator=(const FakeHost&) = delete;
  void file(const std::string& name, const std::string& text) {
    const std::filesystem::path path = root_ + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  // A limit and the use of it, in the second version.
  void group(const std::string& path, const std::string& most, const std::string& used) {
    file("sys/fs/cgroup" + path + "/memory.max", most + "\n");
    file("sys/fs/cgroup" + path + "/memory.current", used + "\n");
    file("sys/fs/cgroup" + path + "/memory.stat", "active_file 0\ninactive_file 0\n");
  }
  void remove(const std::string& name) { std::filesystem::remove(root_ + "/" + name); }
  const std::string& root() const { return root_; }

 private:
  std::string root_;
};

}  // namespace tombolo::host::testing
