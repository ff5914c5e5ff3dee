# SPDX-License-Identifier: Apache-2.0
"""Tunings of the protocols of virtual shared memory: by the benchmark and by a variable each is switched off."""

import json
import subprocess

from dsm_pthreads_test import compiled
from dsm_pthreads_test import run as run_pthreads
from dsm_test import compile_c, run
from tombolo import dsm_bench, dsm_pthreads
from tombolo.app import made
from tombolo.dsm_bench import Contestant
from tombolo.errors import UserError
from typer.testing import CliRunner

__all__ = ["compile_c"]  # a fixture


def test_the_window_without_tunings_has_columns_of_its_own(monkeypatch, tmp_path):
    monkeypatch.setenv("TOMBOLO_RESULTS", str(tmp_path))
    entries = [Contestant("pthreads"), Contestant("map"), Contestant("window")]
    monkeypatch.setattr(dsm_bench, "contestants", lambda machines: entries)
    environments, really_run = [], subprocess.run

    def ended(argv, **options):
        if "barrier" not in argv:  # another program than the kernel's
            return really_run(argv, **options)
        environments.append(options["env"])
        return subprocess.CompletedProcess(argv, 0, json.dumps({"seconds": 1.0}), "")

    monkeypatch.setattr(dsm_bench, "compiled", lambda kind: tmp_path / kind)
    monkeypatch.setattr(dsm_bench.subprocess, "run", ended)
    out = tmp_path / "lines"
    words = ["--quick", "--without", "read-ahead", "--without", "own-pages", "--json", str(out)]
    result = CliRunner().invoke(made(), ["bench", "dsm", "--rows", "barrier", *words])
    assert result.exit_code == 0, result.exception
    assert "read-ahead, own-pages" in " ".join(result.stdout.split())
    assert [each.get("TOMBOLO_DSM_WITHOUT") for each in environments] == [None] * 3 + ["read-ahead,own-pages"]
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["without"] for line in lines] == [None] * 3 + [["read-ahead", "own-pages"]]
    assert [line["goal"] is None for line in lines] == [True, False, False, True]


def test_tunings_that_can_be_switched_off_are_listed_and_no_others_taken():
    text = "".join(CliRunner().invoke(made(), ["bench", "dsm", "--help"]).stdout.split())
    names = ("read-ahead", "own-pages", "cleared-pages", "longer-leave", "small-changes", "open-pages",
             "more-open-pages", "sorted-notices", "handed-over-changes")  # fmt: skip
    assert all(name in text for name in names), text
    result = CliRunner().invoke(made(), ["bench", "dsm", "--without", "read_ahead"])
    assert isinstance(result.exception, UserError)
    assert "'read_ahead' is not a value of TOMBOLO_DSM_WITHOUT; choose of read-ahead," in str(result.exception)


STREAM = r"""
#include <stdio.h>
#include <tombolo/dsm.h>

int main(void) {
  tombolo_dsm_init();
  const volatile double* const numbers = tombolo_dsm_malloc(256 * 4096);
  double sum = 0;
  if (tombolo_dsm_thread() == 1)
    for (int i = 0; i < 256; ++i) sum += numbers[512 * i];
  tombolo_dsm_barrier_wait();
  tombolo_dsm_finalize();
  return sum != 0;
}
"""


def test_a_tuning_that_is_switched_off_does_nothing_for_the_program(compile_c):
    stream = compile_c("stream", STREAM)

    def faults(**more):
        done = run("-n", 2, "--transport", "window", stream, TOMBOLO_STATS="json", **more)
        assert done.returncode == 0, done.stderr
        counts = [json.loads(line.split(" ", 2)[2]) for line in done.stderr.splitlines()]
        return max(each["dsm_read_faults"] for each in counts)

    assert faults() < 100
    assert faults(TOMBOLO_DSM_WITHOUT="small-changes,read-ahead") >= 256


def test_a_tuning_that_is_switched_off_does_nothing_for_a_program_of_pthreads():
    program = compiled("spans_check")

    def fetches(**more):
        settings = dsm_pthreads.environment(transport="window", stats="json") | more
        done = run_pthreads([program, 2, 200], settings)
        assert done.returncode == 0, done.stderr
        told = [line.split(" ", 2)[2] for line in done.stderr.splitlines() if line.startswith("tombolo: stats ")]
        return sum(json.loads(line)["dsm_fetches"] for line in told)

    assert fetches(TOMBOLO_DSM_WITHOUT="small-changes") > fetches() + 100
