// SPDX-License-Identifier: Apache-2.0
// Purpose: files of parameters: those of the project are read, wrong ones are refused with the
// values allowed.
#include "backends/scc/parameters.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "backends/scc/job.h"

namespace tombolo::scc {
namespace {

namespace fs = std::filesystem;

class ParametersTest : public ::testing::Test {
 protected:
  ParametersTest()
      : folder_(fs::path(::testing::TempDir()) / ("chips." + std::to_string(getpid()))) {
    fs::create_directories(folder_);
    fs::copy_file(fs::path(TOMBOLO_CHIPS_FOLDER) / "scc.toml", folder_ / "scc.toml",
                  fs::copy_options::overwrite_existing);
  }
  ~ParametersTest() override { fs::remove_all(folder_); }

  // Reads a file of this text; returns the objection to it.
  std::string refusal(const std::string& text) {
    const fs::path path = folder_ / "tried.toml";
    std::ofstream(path) << text;
    Parameters parameters{};
    const Status status = read_parameters(path.string(), &parameters);
    EXPECT_EQ(status.code(), Code::bad_configuration) << text;
    EXPECT_NE(status.message().find("tried.toml"), std::string::npos) << status.message();
    return status.message();
  }
  std::string refusal_of(const std::string& lines) {
    return refusal("name = \"x\"\ntitle = \"x\"\nbase = \"scc\"\n" + lines);
  }
  static void expect_has(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }

  fs::path folder_;
};

TEST_F(ParametersTest, AllChipsOfTheProjectAreRead) {
  int chips = 0;
  for (const auto& entry : fs::directory_iterator(TOMBOLO_CHIPS_FOLDER)) {
    Parameters parameters{};
    const Status status = find_parameters(entry.path().stem().string(), &parameters);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(parameters.name, entry.path().stem().string());
    const Status fits = Job::fits(parameters, {.processes = parameters.cores()});
    EXPECT_TRUE(fits.ok()) << fits.message();
    ++chips;
  }
  EXPECT_GE(chips, 11);
}

TEST_F(ParametersTest, ABaseGivesWhatAFileLeavesOut) {
  Parameters scc{};
  Parameters repaired{};
  ASSERT_TRUE(find_parameters("scc", &scc).ok());
  ASSERT_TRUE(find_parameters("scc-repaired", &repaired).ok());
  EXPECT_EQ(scc.cores(), 48u);
  EXPECT_EQ(repaired.cores(), 48u);
  EXPECT_TRUE(scc.errata.mpbt_wt_reads_uncached);
  EXPECT_FALSE(repaired.errata.mpbt_wt_reads_uncached);
  EXPECT_NE(digest(scc), digest(repaired));
}

TEST_F(ParametersTest, WrongFilesAreRefused) {
  expect_has(refusal("name = "), "line 1");
  expect_has(refusal("title = \"x\"\n"), "name");
  expect_has(refusal("name = \"x\"\ntitle = \"x\"\n"), "is missing");
  expect_has(refusal("name = \"x\"\ntitle = \"x\"\nbase = \"nothing\"\n"), "nothing.toml");
  expect_has(refusal("name = \"x\"\ntitle = \"x\"\nbase = \"tried\"\n"), "circle");
  expect_has(refusal_of("[core]\nload_cycles = { value = 1, source = \"s\" }\n"), "no parameter");
  expect_has(refusal_of("[core]\nload_core_cycles = 1\n"), "source");
  expect_has(refusal_of("[core]\nload_core_cycles = { value = 1 }\n"), "source");
  expect_has(refusal_of("[core]\nload_core_cycles = { value = -1, source = \"s\" }\n"), "0.5");
  expect_has(refusal_of("[core]\nload_core_cycles = { value = 0.3, source = \"s\" }\n"), "0.5");
  expect_has(refusal_of("[errata]\nmpbt_wt_reads_uncached = { value = 1, source = \"s\" }\n"),
             "true or false");
  for (const char* value : {"\"banks\"", "1"})
    expect_has(refusal_of(fmt::format("[layout]\nmemory_model = {{ value = {}, source = \"s\" }}\n",
                                      value)),
               "one of \"banked\", \"plain\"");
  expect_has(refusal_of("[layout]\nbank_interleave_bytes = { value = -1, source = \"s\" }\n"),
             "from 0 to");
  expect_has(refusal_of("[clocks]\ncore_megahertz = { value = 531, source = \"s\" }\n"), "tick");
  expect_has(refusal_of("[caches]\nl1_bytes = { value = 16000, source = \"s\" }\n"), "sets");
  expect_has(refusal_of("[layout]\ncontrollers = { value = [[9, 0]], source = \"s\" }\n"),
             "not on the mesh");
  expect_has(refusal_of("[layout]\nmpb_lut_entry = { value = 210, source = \"s\" }\n"),
             "lookup table");
  expect_has(refusal_of("[caches]\nways = { value = 3, source = \"s\" }\n"
                        "l1_bytes = { value = 12288, source = \"s\" }\n"
                        "l2_bytes = { value = 196608, source = \"s\" }\n"),
             "power of two");
  expect_has(refusal_of("[path]\nmpb_core_cycles = { value = 5, source = \"s\" }\n"), "L2");
  expect_has(refusal_of("[software]\ncopy_word_core_cycles = { value = 0, source = \"s\" }\n"),
             "the load");
  expect_has(refusal_of("[layout]\nmpb_bytes_per_tile = { value = 8200, source = \"s\" }\n"),
             "whole lines");
  expect_has(refusal_of("[layout]\ncontroller_megabytes = { value = 4096, source = \"s\" }\n"),
             "controller_megabytes");
}

TEST_F(ParametersTest, AnUnknownChipIsNamedWithThoseThereAre) {
  Parameters parameters{};
  expect_has(find_parameters("sccc", &parameters).message(), "mesh-8x8");
  expect_has(find_parameters("./nowhere.toml", &parameters).message(), "nowhere.toml");
}

TEST_F(ParametersTest, JobsThatDoNotFitAreRefused) {
  Parameters scc{};
  ASSERT_TRUE(find_parameters("scc", &scc).ok());
  const auto why = [&](const JobShape& shape) {
    const Status status = Job::fits(scc, shape);
    EXPECT_EQ(status.code(), Code::bad_configuration);
    return status.message();
  };
  expect_has(why({.processes = 49}), "48 cores");
  expect_has(why({.processes = 2, .cores = {simulator::CoreId(0), simulator::CoreId(0)}}), "twice");
  expect_has(why({.processes = 48, .sync_bytes = std::size_t{4} << 20}), "shared memory");
  expect_has(why({.processes = 2, .data_bytes = std::uint64_t{65} << 20}), "public pages");
  JobShape shape{.processes = 2};
  shape.placement.own = MemoryType::wt;
  expect_has(why(shape), "guaranteed_commit");
}

}  // namespace
}  // namespace tombolo::scc
