// SPDX-License-Identifier: Apache-2.0
// The command line of one_sided.c. To be included after bench/common.h.
#pragma once
#include <getopt.h>
#include <string.h>

// kUnmapped: as kCreate, by the hint that peers do not map the memory.
typedef enum { kAllocate, kCreate, kUnmapped, kShared, kFlavors } Flavor;
static const char* const kFlavorNames[] = {"allocate", "create", "unmapped", "shared"};

typedef struct {
  const char* pattern;
  int flavors[kFlavors];
  long long samples, warmup, batch;
  double budget_s;
  int json, pin, list, whole_budget;
} Options;

static inline void help(void) {
  printf(
      "usage: one_sided [options]\n"
      "  --rows REGEX     only rows whose name matches (extended regular expression)\n"
      "  --list           print the rows and stop\n"
      "  --flavor LIST    of allocate (default), create, unmapped, shared, or all; separated by "
      "commas\n"
      "  --samples N      samples of each rank and row at most (default 10000)\n"
      "  --budget-s S     seconds for a row, about (default 1; rows with a computing target do at\n"
      "                   least five samples of 0.2 s)\n"
      "  --warmup N       operations before the first sample, within a fifth of the budget\n"
      "                   (default 200)\n"
      "  --batch N        one sample is the time of N operations, divided by N (default 1): finer\n"
      "                   than the clock; for rows in which no rank waits for another\n"
      "  --whole-budget   go on when there are as many samples as asked for, and keep some of all\n"
      "  --pin            bind each rank to one CPU, in order of ranks\n"
      "  --json           one JSON object for each row instead of a table\n"
      "  --help           this text\n");
}

static inline void parse_flavors(Options* o, const char* text) {
  memset(o->flavors, 0, sizeof o->flavors);
  while (1) {
    size_t length = strcspn(text, ",");
    int known = 0;
    for (int f = 0; f < kFlavors; ++f)
      if ((strlen(kFlavorNames[f]) == length && memcmp(kFlavorNames[f], text, length) == 0) ||
          (length == 3 && memcmp(text, "all", 3) == 0))
        o->flavors[f] = known = 1;
    if (!known)
      reject("--flavor knows allocate, create, unmapped, shared, all; not '%.*s'", (int)length,
             text);
    if (text[length] == '\0') return;
    text += length + 1;
  }
}

static inline Options parse(int argc, char** argv, int rank) {
  Options o = {.pattern = "",
               .flavors = {1, 0, 0},
               .samples = 10000,
               .warmup = 200,
               .batch = 1,
               .budget_s = 1};
  static const struct option known[] = {{"rows", required_argument, NULL, 'r'},
                                        {"list", no_argument, NULL, 'l'},
                                        {"flavor", required_argument, NULL, 'f'},
                                        {"samples", required_argument, NULL, 's'},
                                        {"budget-s", required_argument, NULL, 'b'},
                                        {"warmup", required_argument, NULL, 'w'},
                                        {"batch", required_argument, NULL, 'n'},
                                        {"whole-budget", no_argument, NULL, 't'},
                                        {"pin", no_argument, NULL, 'p'},
                                        {"json", no_argument, NULL, 'j'},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};
  opterr = 0;
  int c;
  while ((c = getopt_long(argc, argv, ":", known, NULL)) != -1) {
    switch (c) {
      case 'r':
        o.pattern = optarg;
        break;
      case 'l':
        o.list = 1;
        break;
      case 'f':
        parse_flavors(&o, optarg);
        break;
      case 's':
        o.samples = (long long)number("samples", optarg, 1, 1e7, 1);
        break;
      case 'b':
        o.budget_s = number("budget-s", optarg, 0.001, 3600, 0);
        break;
      case 'w':
        o.warmup = (long long)number("warmup", optarg, 0, 1e7, 1);
        break;
      case 'n':
        o.batch = (long long)number("batch", optarg, 1, 1e6, 1);
        break;
      case 't':
        o.whole_budget = 1;
        break;
      case 'p':
        o.pin = 1;
        break;
      case 'j':
        o.json = 1;
        break;
      case 'h':
        if (rank == 0) help();
        MPI_Finalize();
        exit(0);
      case ':':
        reject("option %s lacks its value", argv[optind - 1]);
      default:
        reject("unknown option %s", argv[optind - 1]);
    }
  }
  if (optind < argc) reject("unexpected argument '%s'", argv[optind]);
  return o;
}
