#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stands in for `tombolo-scc`: prints the answers of the JSON file $FAKE_SCC.

The file maps an experiment to its points; a point has `name`, and may have `cost`, `memory_bytes`,
`lines` (series, x, value, unit and more), `on` (others, by the name of the chip, where it does nothing
else), `statistics` (the lines of its simulations) and `does`: crash, garbage, odd, refuse, fail, deadlock,
hang, unfinished.
Each run of a point leaves its name in the file's neighbour `ran`.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

SPEC = Path(os.environ["FAKE_SCC"])


def say(record: dict) -> None:
    print(json.dumps(record), flush=True)


def refuse(sentence: str) -> None:
    print(f"tombolo-scc: {sentence}", file=sys.stderr)
    sys.exit(2)


def options(arguments: list[str]) -> dict[str, str]:
    given = {}
    for place, each in enumerate(arguments):
        if each in ("--point", "--chip", "--seed"):
            given[each] = arguments[place + 1]
    chip = given.get("--chip")
    text = Path(chip).read_text() if chip and Path(chip).exists() else ""
    if chip and not ("cores" in text or "base" in text):
        refuse(f"{chip}: [layout] cores is missing")
    return given


def run(experiment: str, point: dict, seed: int, chip: str) -> None:
    with (SPEC.parent / "ran").open("a") as ran:
        ran.write(f"{experiment} {point['name']}\n")
    does = "" if chip in point.get("on", {}) else point.get("does", "")
    say({"progress": 0.5})
    for line in point.get("on", {}).get(chip, point.get("lines", [])):
        say({"experiment": experiment, "point": point["name"], "seed": seed, "chip": "scc",
             "chip_digest": "c0ffee", **line})  # fmt: skip
    if does == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if does == "garbage":
        print("assertion: what is this?", flush=True)
    if does == "odd":
        say({"progress": "half"})
    if does == "deadlock":
        wait = "deadlock: 2 of 4 cores wait for ever:\n  core 1 since 3 us\n  core 2 since 4 us"
        print(f"tombolo-scc: {experiment} {point['name']}: {wait}", file=sys.stderr)
        sys.exit(1)
    if does == "refuse":
        refuse("the chip has too few cores")
    if does == "fail":
        print("tombolo-scc: no space left on device", file=sys.stderr)
        sys.exit(1)
    if does == "hang":
        (SPEC.parent / "hangs").write_text(str(os.getpid()))
        time.sleep(60)
    if "--statistics" in sys.argv:
        for line in point.get("statistics", []):
            say({"statistics": point["name"], "experiment": experiment, **line})
    if does != "unfinished":
        say({"point_done": point["name"], "events": 7, "virtual_s": 0.1, "host_s": 0.2})


def main() -> None:
    experiments = json.loads(SPEC.read_text())
    verb, *arguments = sys.argv[1:]
    if verb == "list":
        for name, points in experiments.items():
            say({"experiment": name, "title": f"{name}!", "points": len(points), "quick_points": 1})
    elif verb == "plan":
        options(arguments)
        for point in experiments[arguments[0]]:
            say({"experiment": arguments[0], "point": point["name"], "cost": point.get("cost", 1.0),
                 "memory_bytes": point.get("memory_bytes", 1 << 20)})  # fmt: skip
    elif verb == "run":
        given = options(arguments)
        wanted = next(p for p in experiments[arguments[0]] if p["name"] == given["--point"])
        run(arguments[0], wanted, int(given["--seed"]), Path(given.get("--chip", "scc")).stem)
    else:
        refuse(f"there is no command '{verb}'")


main()
