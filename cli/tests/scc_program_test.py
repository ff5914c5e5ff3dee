# SPDX-License-Identifier: Apache-2.0
"""The program `tombolo-scc` itself: its lines, and its refusals."""

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tombolo import paths
from tombolo.scc import chips, native

PROGRAM = (paths.built() or Path("nowhere")) / "experiments" / native.NAME
pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="not built: make scc")


def run(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=120, env=native.environment())


def lines(*arguments: str) -> list[dict]:
    ended = run(*arguments)
    assert ended.returncode == 0, ended.stderr
    return [json.loads(line) for line in ended.stdout.splitlines()]


def test_list_counts_the_points_that_plan_names() -> None:
    listed = {each["experiment"]: each for each in lines("list")}
    assert {"calibration", "gats", "dht"} <= set(listed)
    for name in ("calibration", "dht"):
        for count, more in (("points", []), ("quick_points", ["--quick"])):
            planned = lines("plan", name, *more)
            assert listed[name][count] == len(planned)
            assert all(p["cost"] > 0 and p["memory_bytes"] > 0 for p in planned)


def test_a_point_ends_with_its_cost_after_its_rows() -> None:
    *rows, done = lines("run", "calibration", "--quick", "--point", "instructions")
    assert done["point_done"] == "instructions" and done["events"] > 0
    values = [each for each in rows if "series" in each]
    assert [(v["series"], v["x"], v["unit"]) for v in values] == [("instruction", "CL1INVMB", "cycles")]
    assert all(set(native.LINE_FIELDS) <= set(v) for v in values)
    assert values[0]["chip"] == "scc" and values[0]["chip_digest"]


def test_the_seed_decides_and_the_order_of_points_does_not() -> None:
    def values(*arguments: str) -> list[float]:
        return [e["value"] for e in lines("run", "passive-target", "--quick", *arguments) if "value" in e]

    point = ["--point", "mixed-mcs-wp-4"]
    one = values(*point, "--seed", "7")
    assert one == values(*point, "--seed", "7") != values(*point, "--seed", "8")
    other = ["--point", "shared-gbh-2"]
    assert values(*other, *point, "--seed", "7")[-1:] == one


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "gast", "--point", "x"], "gast"),
        (["plan", "gast"], "gast"),
        (["run", "calibration", "--point", "tile-99"], 'has no point "tile-99"; see tombolo-scc plan'),
        (["run", "calibration"], "--point is required"),
        (["plan", "calibration", "--chip", "no-such-chip"], "no-such-chip"),
        (["plan", "calibration", "--speed"], "--speed"),
        ([], "subcommand"),
    ],
)
def test_a_callers_mistake_is_named_and_has_its_status(arguments: list[str], says: str) -> None:
    ended = run(*arguments)
    assert ended.returncode == 2, ended.stdout
    assert says in ended.stderr
    assert not ended.stdout


def test_a_chip_without_room_for_a_point_is_refused_by_its_name(tmp_path: Path) -> None:
    small = tmp_path / "small.toml"
    text = (chips.folder() / "scc.toml").read_text()
    small.write_text(
        text.replace("mesh_rows = { value = 4", "mesh_rows = { value = 2")
        .replace("[[0, 0], [5, 0], [0, 2], [5, 2]]", "[[0, 0], [5, 0]]")
        .replace('name = "scc"', 'name = "small"')
    )
    ended = run("run", "dht", "--quick", "--chip", str(small), "--point", "mcs-wp-47-32")
    assert ended.returncode == 2
    assert "dht mcs-wp-47-32" in ended.stderr and "24" in ended.stderr


def test_an_interrupt_ends_a_long_point() -> None:
    process = subprocess.Popen(
        [PROGRAM, "run", "ft", "--point", "scosco-A"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=native.environment(),
    )  # fmt: skip
    time.sleep(1)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1, said
    assert "ft scosco-A" in said


def test_statistics_change_no_value_and_tell_each_simulation() -> None:
    point = ("gats-registers", "--quick", "--point", "targets-4")
    plain, told = lines("run", *point), lines("run", *point, "--statistics")
    (found,) = (each for each in told if "statistics" in each)
    values = [[each for each in run if "series" in each] for run in (plain, told)]
    assert values[0] == values[1] != []
    assert (found["statistics"], found["columns"], found["rows"], len(found["cores"])) == ("targets-4", 6, 4, 5)
    kinds = {each["part"] for each in found["parts"]}
    assert kinds == {"controller", "bank", "link", "interface", "register"}  # no messages
    assert all(each["served"] > 0 and 0 < each["utilisation"] <= 1 for each in found["parts"])
    for core in found["cores"]:
        assert 0 < core["reading"] + core["writing"] + core["testing"] <= 1
    several = lines("run", "calibration", "--quick", "--point", "instructions", "--point", "flush-l1", "--statistics")
    counted = [each["statistics"] for each in several if "statistics" in each]
    assert counted.count("flush-l1") == 6 and set(counted) == {"instructions", "flush-l1"}
