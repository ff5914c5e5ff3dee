# SPDX-License-Identifier: Apache-2.0
"""The figures of a point's statistics that claims may be about, by kind of part and of the cores."""

KINDS = ("controller", "bank", "link", "interface", "register", "buffer")
ANY = "any"  # of all kinds that with the largest figure
CORES = "cores"
OF_PARTS = ("utilisation", "mean_wait_ns")  # of the busiest of a kind
SHARES = ("reading", "writing", "testing")  # of the cores' time: waits for loads, stores, registers
COUNTS = ("loads_that_left", "stores_that_left", "tests", "tests_failed")  # of all cores together
GOT = "registers_got"  # tests that did not fail
OF_CORES = (*SHARES, *COUNTS, GOT)

Use = dict[str, dict[str, float]]  # by KINDS and CORES, then by figure
