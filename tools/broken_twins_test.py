# SPDX-License-Identifier: Apache-2.0
import collections
import contextlib
import os
import pathlib
import subprocess
import threading
import time
import types

import broken_twins
import family_twins
import pytest
import syntax_tree
import system_twins
from clang import cindex

# Names of members, whose types are unknown as in a template, and of functions.
BEFORE = """
void pass_kills_on(), publish_all(), wrote_to(int), advance(...), write_letter(...), TOMBOLO_CHECK(bool, ...), use(int);
struct Status {} renew(int), body();
struct Guard { Guard(int); };
namespace detail { using ::write_letter; }
template <class Some, bool copies_views>
struct Part {
  Some barrier_, cell_, core_, layout_, mutex, open, protocol_, store_, transport_;
  bool peers_too_, stopped;
  int bytes, longest_ns, n, ns, place, short_wait_ns, slot, split_, told;
  Status some() {
"""
BEHIND = "}\n};\n"


def twins_of(operator, statements):
    """The statements with each cut."""
    text = BEFORE + statements + BEHIND
    (tree,) = syntax_tree.trees({"some.h": text}).values()
    twins = [text[:start] + new + text[end:] for start, end, new in sorted({*operator(tree)})]
    return [twin.removeprefix(BEFORE).removesuffix(BEHIND) for twin in twins]


@pytest.mark.parametrize(
    ("text", "twin"),
    [
        ("    pass_kills_on();\n", "    (void)0;\n"),
        ("    if (stopped) open.call->ask_kill();\n", "    if (stopped) (void)0;\n"),
        ("    for (;;)\n      advance(open);\n", "    for (;;)\n      (void)0;\n"),
        ("    [this] { cell_.close(); }();\n", "    [this] { (void)0; }();\n"),
    ],
)
def test_a_step_is_left_out(text, twin):
    assert twins_of(family_twins.KINDS["told"], text) == [twin]


@pytest.mark.parametrize(
    "text", ["struct Other { void advance(int); };\n", "// advance(open);\n", 'use("advance()");\n']
)
def test_declarations_comments_and_literals_are_no_steps(text):
    assert twins_of(family_twins.KINDS["told"], text) == []


def test_a_call_that_gives_a_value_leaves_one():
    step = system_twins.KINDS["step"]
    assert twins_of(step, "return stopped ? store_.invalidate(n) : transport_.complete();\n") == [
        "return stopped ? Status() : transport_.complete();\n",
        "return stopped ? store_.invalidate(n) : Status();\n",
    ]
    assert twins_of(system_twins.KINDS["unrenewed"], "while (renew(n)) renew(1);\n") == [
        "while (true) renew(1);\n",
        "while (renew(n)) (void)0;\n",
    ]


def test_an_announcement_comes_too_early():
    text = "    detail::write_letter(core_, n);\n    place += n;\n    core_.store(place, n);\n"
    assert twins_of(family_twins.KINDS["order"], text) == [
        "    place += n;\n    core_.store(place, n);\n    detail::write_letter(core_, n);\n"
    ]
    text = "  core_.refresh(place, bytes);\n  if constexpr (copies_views) (void)core_.read(place).ok();\n"
    assert twins_of(family_twins.KINDS["order"], text) == [
        "  if constexpr (copies_views) (void)core_.read(place).ok();\n  core_.refresh(place, bytes);\n"
    ]


@pytest.mark.parametrize(
    ("text", "twin"),
    [
        ("core_.drain();  // first\nmutex.release();\n", "mutex.release();  // first\ncore_.drain();\n"),
        ("core_.drain();\n{ use(n); }\nbarrier_.arrive_and_wait();\n",
         "{ use(n); }\nbarrier_.arrive_and_wait();\ncore_.drain();\n"),
        ("if (stopped) core_.publish(n);\ncore_.refresh(n);\n", "core_.refresh(n);\nif (stopped) core_.publish(n);\n"),
        ("Status status = body();\nmutex.release();\n", "mutex.release();\nStatus status = body();\n"),
        ("auto status = core_.write(n);\nif (n != 0) wrote_to(n);\n",
         "if (n != 0) wrote_to(n);\nauto status = core_.write(n);\n"),
    ],
)  # fmt: skip
def test_a_statement_comes_behind_the_one_that_announces_it(text, twin):
    assert twins_of(system_twins.KINDS["swap"], text) == [twin]
    assert twins_of(system_twins.KINDS["swap"], text.replace("\n", "\nuse(n);\n", 1)) == []


def test_a_statement_is_explained_by_what_it_comes_before():
    early = system_twins.KINDS["early"]
    assert twins_of(early, "// Before that.\nuse(1);\nuse(2);\n") == ["// Before that.\nuse(2); use(1);\n"]
    assert twins_of(early, "// Behind that.\nuse(1);\nuse(2);\n") == []


@pytest.mark.parametrize(
    ("text", "twin"),
    [
        ("if (stopped && !program_reads_peers_) use(n);\n", "if (stopped) use(n);\n"),
        ("use(peers_too_ || stopped);\n", "use(stopped);\n"),
        ("if (!peers_too_) use(n);\n", "if (true) use(n);\n"),
    ],
)
def test_a_condition_goes_with_its_operator(text, twin):
    declared = "bool program_reads_peers_ = false;\n"
    assert twins_of(system_twins.KINDS["condition"], declared + text) == [declared + twin]


def test_a_guard_is_left_out():
    assert twins_of(system_twins.KINDS["guard"], "const Guard guard(n);\nconst Some other(n);\n") == [
        "(void)0;\nconst Some other(n);\n"
    ]


def test_bounds_of_loops_and_costs_are_not_moved():
    text = (
        "  if (slot < split_) return {};\n  for (int i = 0; i < n; ++i) use(i);\n"
        "  if (told >= layout_.ring_bytes / 4) use(n);\n  std::vector<int> none;\n"
    )
    assert twins_of(family_twins.KINDS["edge"], text) == [text.replace("slot < split_", "slot <= split_")]
    text = "for (;;) use(slot > split_);\n"
    assert twins_of(family_twins.KINDS["edge"], text) == [text.replace(">", ">=")]


def test_a_check_is_left_out_with_its_sentence():
    text = 'TOMBOLO_CHECK(stopped,\n  "write: a channel (this one) was written before");\n'
    assert twins_of(family_twins.KINDS["check"], text) == ["(void)0;\n"]
    own = 'TOMBOLO_CHECK(n == 1,\n              "family: {} parts", n);\n'
    assert twins_of(family_twins.KINDS["check"], own) == []


def test_a_call_that_is_only_asked_for_is_no_twin():
    text = "if constexpr (requires { protocol_.tell(); }) return protocol_.tell();\n"
    assert twins_of(system_twins.KINDS["call"], text) == [
        "if constexpr (requires { protocol_.tell(); }) return Status();\n"
    ]
    text = "if constexpr (requires { store_.invalidate(n); }) store_.invalidate(n);\n"
    assert twins_of(system_twins.KINDS["step"], text) == [
        "if constexpr (requires { store_.invalidate(n); }) (void)0;\n"
    ]


def test_the_bound_of_a_short_wait_is_not_moved():
    assert twins_of(system_twins.KINDS["bound"], "  n = ns < short_wait_ns ? 8 : 1;\n") == []
    assert twins_of(system_twins.KINDS["bound"], "  n = ns < longest_ns ? 8 : 1;\n") == [
        "  n = ns <= longest_ns ? 8 : 1;\n"
    ]


def test_a_range_of_words_is_not_cut_short():
    short = system_twins.KINDS["off by one"]
    assert twins_of(short, "core_.publish(place, bytes);\n") == ["core_.publish(place, bytes - 1);\n"]
    assert twins_of(short, "core_.publish(place, sizeof n);\ncore_.refresh(place, (n - 1) * sizeof(long));\n") == []


# Lines of instructions that libclang has no headers of; names in .cpp files that are one file here.
NOT_UNDERSTOOD = {"host/flush/flush_x86.h", "host/flush/flush_arm.h", "windows/elements/combine.cpp"}


def test_libclang_understands_the_sources():
    unit = syntax_tree.parsed(broken_twins.texts_of(["sync", "windows", "dsm", *broken_twins.MACHINES, "svp"]))
    errors = [d for d in unit.diagnostics if d.severity >= cindex.Diagnostic.Error]
    files = {d.location.file.name.removeprefix(f"{syntax_tree.ROOT}/") for d in errors if d.location.file}
    assert {file for file in files if not file.startswith("/")} <= NOT_UNDERSTOOD, [str(d) for d in errors]


def test_twins_of_families_are_of_all_kinds_and_of_judged_files():
    twins = broken_twins.find_twins(["svp"])
    kinds = {twin.kind for twin in twins}
    assert {"told", "order", "edge", "check", "removal", "off by one"} <= kinds
    for twin in twins:
        text = (broken_twins.ROOT / twin.path).read_text()
        assert text[twin.start : twin.end] != twin.replacement, twin.name
        assert not {"api", "language", "mpi", "testing", "broken"} & set(twin.path.split("/")), twin.name
    assert len(twins) == len(set(twins))


def test_kinds_of_families_are_theirs_alone():
    others = broken_twins.find_twins(["sync", "windows"])
    assert not {twin.kind for twin in others} & {"told", "order", "edge", "check"}


PROGRAM = pathlib.Path("windows/some_test.cpp")


class Bench(broken_twins.Bench):
    """Runs no program: `fails(tree, only, left_out)` says how a run ends."""

    def __init__(self, fails):
        self.options = types.SimpleNamespace(attempts=3)
        self.tests, self.unchanged = [PROGRAM], "unchanged"
        self.caught, self.passes, self.asking = collections.Counter(), set(), threading.Lock()
        self.seconds = collections.defaultdict(float)
        self.fails, self.runs = fails, []

    def concerns(self, changed, test):
        return True

    def run_test(self, tree, test, only="", left_out=()):
        self.runs.append((tree, only, *left_out))
        return self.fails(tree, only, left_out)


FAILURE = broken_twins.Failure("A.B", only="A.B")


def test_a_catch_is_repeated_and_the_unchanged_tree_tried_as_often():
    bench = Bench(lambda tree, only, left_out: FAILURE if tree == "twin" else None)
    assert bench.run_tests("twin", {"windows/a.h"}) == "A.B"
    tried = [("twin", ""), ("twin", "A.B"), ("unchanged", ""), *[("unchanged", "A.B")] * 4]
    assert bench.runs == tried
    assert bench.run_tests("twin", {"windows/a.h"}) == "A.B"
    assert bench.runs == tried + tried[:2], "the unchanged tree is known"


def test_a_failure_that_does_not_come_again_catches_nothing():
    bench = Bench(lambda tree, only, left_out: None if only or left_out else FAILURE)
    assert bench.run_tests("twin", {"windows/a.h"}) == ""
    assert bench.runs == [("twin", ""), *[("twin", "A.B")] * 3, ("twin", "", "A.B")]


def test_a_failure_behind_one_that_does_not_come_again_is_seen():
    other = broken_twins.Failure("C.D", only="C.D")

    def fails(tree, only, left_out):
        if tree == "unchanged" or only == "A.B":
            return None
        return other if only or left_out else FAILURE

    bench = Bench(fails)
    assert bench.run_tests("twin", {"windows/a.h"}) == "C.D"
    assert [run for run in bench.runs if run[0] == "twin"][-2:] == [("twin", "", "A.B"), ("twin", "C.D")]


def test_tests_that_find_soon_come_first():
    bench = Bench(lambda *_: None)
    names = ["dear", "cheap", "never", "page", "recorded"]
    bench.tests = [pathlib.Path(f"dsm/protocol/{name}_test.cpp") for name in names]
    bench.tests.append(pathlib.Path("backends/stale/cache_test.cpp"))

    def order(changed):
        return [test.stem.removesuffix("_test") for test in bench.in_order({changed})]

    assert order("dsm/protocol/page.h") == ["page", "recorded", "dear", "cheap", "never", "cache"]
    assert order("backends/stale/stale.h")[0] == "cache"
    for name, caught, seconds in (("dear", 3, 90), ("cheap", 1, 10), ("never", 0, 5), ("page", 0, 7), ("cache", 0, 1)):
        folder = "backends/stale" if name == "cache" else "dsm/protocol"
        test = pathlib.Path(f"{folder}/{name}_test.cpp")
        bench.caught[test], bench.seconds[test] = caught, seconds
    assert order("dsm/protocol/page.h") == ["page", "cheap", "dear", "recorded", "cache", "never"]


@pytest.mark.parametrize("only", ["A.B", ""])
def test_a_failure_that_cannot_be_left_out_ends_the_search(only):
    failure = broken_twins.Failure("some", only=only)
    bench: Bench = Bench(lambda tree, only, left_out: failure if len(bench.runs) in (1, 5) else None)
    assert bench.run_tests("twin", {"windows/a.h"}) == ""
    assert len(bench.runs) == (8 if only else 4)


def test_tests_are_left_out_by_a_filter():
    assert broken_twins.tests_but([], "A.*:B.*") == "A.*:B.*"
    assert broken_twins.tests_but(["A.b", "B.c/0"], "A.*:B.*") == "A.*:B.*-A.b:B.c/0"


def test_a_program_without_an_end_need_not_be_run_again():
    endless = broken_twins.Failure("no end", endless=True)
    bench = Bench(lambda tree, only, left_out: endless if tree == "twin" else None)
    assert bench.run_tests("twin", {"windows/a.h"}) == "no end"
    assert [run for run in bench.runs if run[0] == "twin"] == [("twin", "")]


def test_a_twin_is_not_judged_by_a_test_that_fails_by_luck(tmp_path):
    def fails(tree, only, left_out):
        return FAILURE if tree is not bench.unchanged or len(bench.runs) == 6 else None

    bench = Bench(fails)
    (tmp_path / "a.h").write_text("drain();")
    twin = broken_twins.Twin("removal", "a.h", 1, 0, 8, "drain();", "(void)0;")
    outcome = bench.try_twin(types.SimpleNamespace(folder=tmp_path), twin)
    assert outcome.not_judged == "the unchanged tree fails A.B now and then"
    assert (outcome.caught_by, (tmp_path / "a.h").read_text()) == ("", "drain();")
    assert len(bench.runs) == 7, "the run that failed is repeated"
    assert (PROGRAM, "A.B") not in bench.passes


def test_a_test_that_always_fails_concludes_nothing():
    bench = Bench(lambda tree, only, left_out: FAILURE)
    with pytest.raises(RuntimeError, match="the unchanged tree fails A.B; nothing can be concluded"):
        bench.run_tests("twin", {"windows/a.h"})
    assert [run[0] for run in bench.runs].count("unchanged") == 1 + 3


@pytest.mark.parametrize(
    ("ends", "status", "said"),
    [("c", 0, "1 twins, 1 caught (100 %), 0 survived"),
     ("ccn", 0, "3 twins, 2 caught (67 %), 0 survived, 1 not judged"),
     ("csn", 1, "3 twins, 1 caught (33 %), 1 survived, 1 not judged"),
     ("cn", 0, "2 twins, 1 caught (50 %), 0 survived, 1 not judged"),
     ("cnn", 2, "3 twins, 1 caught (33 %), 0 survived, 2 not judged"),
     ("snn", 1, "3 twins, 0 caught (0 %), 1 survived, 2 not judged"),
     ("n", 2, "1 twins, 0 caught (0 %), 0 survived, 1 not judged")],
)  # fmt: skip
def test_twins_that_are_not_judged_are_counted(capsys, ends, status, said):
    twin = broken_twins.Twin("removal", "a.h", 1, 0, 8, "drain();", "(void)0;")
    outcomes = [broken_twins.Outcome(twin, "A.B" if end == "c" else "", 0.0, "luck" if end == "n" else "")
                for end in ends]  # fmt: skip
    assert broken_twins.exit_status(outcomes) == status
    broken_twins.print_rate("all", outcomes)
    assert capsys.readouterr().out == f"all: {said}\n"
    broken_twins.report(outcomes[-1], [])
    assert capsys.readouterr().out.startswith({"c": "caught ", "s": "SURVIVED ", "n": "not judged "}[ends[-1]])


@pytest.mark.parametrize("end", ["wait", "exit 3"])
def test_children_of_a_program_end_with_it(tmp_path, end):
    said = tmp_path / "child"
    script = f"sleep 1000 >/dev/null & echo $! > {said}; {end}"
    if end == "wait":
        with pytest.raises(subprocess.TimeoutExpired):
            broken_twins.run_to_end(["sh", "-c", script], 1)
    else:
        assert broken_twins.run_to_end(["sh", "-c", script], 60) == (3, "")
    child = int(said.read_text())
    for _ in range(600):
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            return
        state = pathlib.Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()[0]
        if state == "Z":  # of a parent that looks rarely
            return
        time.sleep(0.1)
    raise AssertionError("the child runs on")


def twins_reported_to(path, monkeypatch, outcomes):
    monkeypatch.setattr("sys.argv", ["broken_twins.py", "--json", str(path)])
    monkeypatch.setattr(broken_twins, "find_twins", lambda _: [])
    monkeypatch.setattr(broken_twins, "run_all", lambda *_: outcomes())
    return broken_twins.main()


def test_lines_replace_those_of_before_when_all_twins_have_been_tried(tmp_path, monkeypatch, capsys):
    path = tmp_path / "twins.jsonl"
    path.write_text("of before")
    twin = broken_twins.Twin("removal", "a.h", 1, 0, 4, "b();", "")

    def stopped(error):
        yield broken_twins.Outcome(twin, "a_test", 1.0)
        raise error

    for error in (KeyboardInterrupt(), RuntimeError("no twins today")):
        with contextlib.suppress(KeyboardInterrupt):
            assert twins_reported_to(path, monkeypatch, lambda e=error: stopped(e)) == 2
        assert path.read_text() == "of before" and [each.name for each in tmp_path.iterdir()] == [path.name]
    assert twins_reported_to(path, monkeypatch, lambda: iter([broken_twins.Outcome(twin, "a_test", 1.0)])) == 0
    assert '"caught_by": "a_test"' in path.read_text()
    capsys.readouterr()
    assert twins_reported_to(tmp_path, monkeypatch, lambda: pytest.fail("twins are tried")) == 2
    assert capsys.readouterr().err == f"broken_twins: {tmp_path} cannot be written: Is a directory\n"
