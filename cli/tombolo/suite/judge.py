# SPDX-License-Identifier: Apache-2.0
"""Sets the verdicts of a run against the stock MPI's and against the list of expected failures."""

import json
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from tombolo import files, paths
from tombolo.suite.runner import Setting, Verdict


@dataclass
class Summary:
    """One setting's row in the table."""

    setting: Setting
    tests: int = 0
    passed: int = 0
    expected: list[Verdict] = field(default_factory=list)
    unexpected: list[Verdict] = field(default_factory=list)
    as_stock: list[Verdict] = field(default_factory=list)  # fails under the stock MPI too
    skipped: list[Verdict] = field(default_factory=list)  # by the test itself, under stock too
    gained: list[Verdict] = field(default_factory=list)  # fails there, passes here
    served: int = 0
    forwarded: int = 0
    reasons: set[str] = field(default_factory=set)  # why windows went to the host MPI
    seconds: float = 0

    @property
    def share(self) -> float | None:
        """The share of the created windows that Tombolo served itself."""
        windows = self.served + self.forwarded
        return self.served / windows if windows else None


def expected_failures(path: Path | None = None) -> dict[str, str]:
    """Test -> the sentence of the MPI standard by which it may fail without coherence."""
    text = (path or paths.DATA / "conformance_stale.toml").read_text()
    return dict(tomllib.loads(text).get("expected", {}))


def quick_tests() -> set[str]:
    """The tests of `--slice quick`."""
    return set(tomllib.loads((paths.DATA / "conformance_quick.toml").read_text())["tests"])


def summarize(setting: Setting, verdicts: list[Verdict], stock: dict[str, bool], expected: dict[str, str]) -> Summary:
    """`stock`: test id -> whether it passes there. Expectations hold on `stale` alone, and no test
    is expected to crash. A lost update may well keep a program waiting for ever."""
    row = Summary(setting)
    for verdict in verdicts:
        row.tests += 1
        row.seconds += verdict.seconds
        row.served += verdict.served
        row.forwarded += verdict.forwarded
        row.reasons.update(verdict.reasons)
        if verdict.passed:
            row.passed += 1
            if stock.get(verdict.test) is False:
                row.gained.append(verdict)
        elif verdict.verdict == "skipped" and not stock.get(verdict.test, True):
            row.skipped.append(verdict)
        elif setting.machine == "stock" or not stock.get(verdict.test, True):
            row.as_stock.append(verdict)
        elif (
            setting.machine == "stale"
            and verdict.verdict in ("failed", "timeout")
            and (verdict.key in expected or verdict.test in expected)
        ):
            row.expected.append(verdict)
        else:
            row.unexpected.append(verdict)
    return row


class StockVerdicts:
    """The tests that the stock MPI passes, remembered beside the built suite."""

    def __init__(self, build: Path) -> None:
        self._path = build / "stock.json"
        self.passes: dict[str, bool] = {}
        try:
            told = json.loads(self._path.read_text())
        except (OSError, ValueError):
            return  # none yet, or damaged: the stock MPI is asked again
        if isinstance(told, dict):
            self.passes = {test: passes for test, passes in told.items() if isinstance(passes, bool)}

    def learn(self, verdict: Verdict) -> None:
        """One pass is enough: a busy host must not excuse us by making the stock MPI time out."""
        self.passes[verdict.test] = verdict.passed or self.passes.get(verdict.test, False)
        files.write(self._path, json.dumps(self.passes, indent=1))
