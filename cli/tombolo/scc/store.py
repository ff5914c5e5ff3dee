# SPDX-License-Identifier: Apache-2.0
"""The measured values: one file of JSON lines for each setting and build of the native program.

The lines of a point are written together when it is done, the last of them with `kind` "done"; a
point without that line does not count. One that ended in a deadlock has a line of `kind` "deadlock".
"""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tombolo import files, paths, records
from tombolo.errors import UserError
from tombolo.scc import native
from tombolo.scc.native import Setting
from tombolo.scc.uses import Use

Key = tuple[str, str]  # experiment, point


def folder() -> Path:
    return paths.results() / "scc"


@dataclass
class Done:
    """A point that was measured to its end."""

    time: str
    commit: str | None
    chips: dict[str, str]  # name -> digest
    lines: list[dict]
    about: dict  # events, virtual_s, host_s
    build: str = ""  # the digest of the program

    @property
    def use(self) -> Use | None:
        """How busy the parts were; None where that was not asked for."""
        return self.about.get("use")


@dataclass
class Results:
    """The values in files; of a point that was measured twice, the later."""

    done: dict[Key, Done] = field(default_factory=dict)
    deadlocks: dict[Key, str] = field(default_factory=dict)  # the time of each

    def lines(self, experiment: str) -> list[dict]:
        """All values of an experiment."""
        chosen = (done for (name, _), done in self.done.items() if name == experiment)
        return [line for done in chosen for line in done.lines]

    def uses(self, experiment: str) -> dict[str, Use]:
        """How busy the parts were in the points of which that is known, by point."""
        return {point: done.use for (name, point), done in self.done.items() if name == experiment and done.use}

    def deadlocked(self, experiment: str) -> tuple[str, ...]:
        """The points of an experiment that ended in a deadlock."""
        return tuple(point for name, point in self.deadlocks if name == experiment)

    def keys(self) -> set[Key]:
        """The points that were measured, or ended in a deadlock."""
        return {*self.done, *self.deadlocks}

    def only(self, keys: set[Key]) -> "Results":
        """Those of these points."""
        done = {key: done for key, done in self.done.items() if key in keys}
        return Results(done, {key: time for key, time in self.deadlocks.items() if key in keys})

    def commits(self) -> set[str]:
        return {done.commit or "unknown" for done in self.done.values()}

    def builds(self) -> set[str]:
        return {done.build for done in self.done.values()}

    def chips(self) -> dict[str, set[str]]:
        """Name -> digests: more than one if the chip's parameters changed between measurements."""
        found: dict[str, set[str]] = {}
        for done in self.done.values():
            for name, digest in done.chips.items():
                found.setdefault(name, set()).add(digest)
        return found


class Store:
    """The file of one setting and one build of the program."""

    def __init__(self, program: Path, setting: Setting) -> None:
        self.path = folder() / f"{setting.label}-{native.digest(program)}.jsonl"
        self._commit = records.commit()

    def load(self) -> Results:
        return read([self.path] if self.path.is_file() else [])

    def begin(self) -> None:
        """Notes the host and the sources of the following points."""
        self._append([records.context()])

    def keep(self, point: native.Point, lines: list[dict], about: dict) -> None:
        """Appends a finished point in one write."""
        samples = [{"kind": "sample", **line, "point": point.name} for line in lines]
        done = {
            "kind": "done",
            "experiment": point.experiment,
            "point": point.name,
            "lines": len(lines),
            **self._stamp(),
            **{key: about[key] for key in ("events", "virtual_s", "host_s", "use") if key in about},
        }
        self._append([*samples, done])

    def deadlocked(self, point: native.Point) -> None:
        """Notes that a point ended in a deadlock."""
        self._append([{"kind": "deadlock", "experiment": point.experiment, "point": point.name, **self._stamp()}])

    def _stamp(self) -> dict:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        return {"time": now, "commit": self._commit}

    def _append(self, lines: list[dict]) -> None:
        files.folder(self.path.parent)
        files.append(self.path, "".join(json.dumps(line) + "\n" for line in lines), sync=True)


def newest(setting: Setting) -> Results:
    """The results of a setting over all builds of the program."""
    return read(sorted(folder().glob(f"{setting.label}-*.jsonl"), key=lambda p: p.stat().st_mtime))


def read(kept: list[Path]) -> Results:
    """The lines of the files; those that are no JSON, left by a crash, are passed over. A UserError for one
    that tells no number where it should."""
    results = Results()
    for path in kept:
        pending: dict[Key, list[dict]] = {}
        build = path.stem.rpartition("-")[2]
        for number, text in enumerate(_text(path).splitlines(), 1):
            record = native.parse(text) or {}
            try:
                _check(record)
            except (KeyError, ValueError, TypeError, AttributeError) as mistake:
                why = f"it has no {mistake}" if isinstance(mistake, KeyError) else mistake
                what = f"{paths.shown(path)}, line {number}: a record that this command cannot read: {why}"
                raise UserError(f"{what}; without the line, its point is measured again") from None
            _take(results, pending, record, build)
    return results


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError as mistake:
        raise UserError(f"{paths.shown(path)} cannot be read: {mistake.strerror}") from None


def _check(record: dict) -> None:
    """An exception where a record does not tell what `_take` and the report need."""
    kind = record.get("kind")
    if kind not in ("sample", "done", "deadlock"):
        return
    texts = ["experiment", "point"] + (["series", "unit"] if kind == "sample" else [])
    texts += [each for each in ("time", "chip", "chip_digest") if each in record]
    texts += [each for each in ("commit", "note") if record.get(each) is not None]
    for each in texts:
        if not isinstance(record[each], str):
            raise ValueError(f"{each} is {json.dumps(record[each])}, which is no text")
    if kind == "sample":
        _check_sample(record)
    if kind == "done":
        _check_done(record)


def _check_sample(record: dict) -> None:
    quartiles = [each for each in ("quartile1", "quartile3") if record.get(each) is not None]
    records.check_numbers(record, "value", *quartiles)
    if not isinstance(record["x"], str):
        records.check_numbers(record, "x")


def _check_done(record: dict) -> None:
    if type(record["lines"]) is not int or record["lines"] < 0:
        raise ValueError(f"lines is {json.dumps(record['lines'])}, which is no count")
    for figures in (record.get("use") or {}).values():
        records.check_numbers(figures, *figures)


def _take(results: Results, pending: dict[Key, list[dict]], record: dict, build: str) -> None:
    key = (record.get("experiment", ""), record.get("point", ""))
    match record.get("kind"):
        case "sample":
            pending.setdefault(key, []).append(record)
        case "done":
            count = record.get("lines", 0)
            lines = pending.pop(key, [])[-count:] if count else []
            chips = {line.get("chip", ""): line["chip_digest"] for line in lines if "chip_digest" in line}
            done = Done(record.get("time", ""), record.get("commit"), chips, lines, record, build)
            before = results.done.get(key)
            if before is None or before.time <= done.time:
                results.done[key] = done
            if results.deadlocks.get(key, done.time) < done.time:
                del results.deadlocks[key]
        case "deadlock":
            time = record.get("time", "")
            if key not in results.done or results.done[key].time <= time:
                results.done.pop(key, None)
                results.deadlocks[key] = time
