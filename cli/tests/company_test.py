# SPDX-License-Identifier: Apache-2.0
"""Windows where some processes have no Tombolo: the MPI serves those that they are in, and no process
waits for them; all other windows are ours. Each run has a time limit: one that hangs fails.
"""

import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest
from tombolo import compile, libraries, mpis, paths, processes, stats
from tombolo.launch import Choice, Job, job

ROOT = Path(__file__).parents[2]
REASON = "processes without Tombolo, or of a program started apart"
MPIS = ("mpich", "openmpi", "openmpi-apt")
SPAWNS = ("mpich", "openmpi", "openmpi-apt")  # the distribution's MPICH spawns nothing
WITHOUT = ["env", "-u", "LD_PRELOAD"]
LIMIT = 60
WINDOWS = 2  # that each process makes of each communicator
# UCX's addresses do not fit into the name of a port where it has many ways.
SHORT_NAMES = {"UCX_TLS": "tcp,self"}


def need(key: str) -> mpis.Mpi:
    mpi = mpis.find(key)
    if mpi is None or mpi.mpicc is None:
        pytest.skip(f"{key} is not installed here: {mpis.hint(key)}")
    if libraries.find(mpi.kind) is None:
        pytest.skip("the libraries are not built: make native")
    return mpi


def program(key: str) -> str:
    options = [f"-I{ROOT}"]
    source = ROOT / "mpi" / "faults" / "company.c"
    return str(compile.compiled(need(key), source, paths.home() / "build/faults", options))


def prepare(
    key: str, command: list[str], ranks: int = 2, ours: bool = True, machine: str = "coherent", **extra: str
) -> Job:
    choice = Choice(machine, stats="json") if ours else None
    made = job(need(key), ranks, command, choice, yields=True, extra=extra)
    if need(key).kind == "openmpi" and "--oversubscribe" not in made.argv:
        made.argv.insert(1, "--oversubscribe")
    return made


def passes(made: Job) -> stats.Stats:
    outcome = processes.run(made, LIMIT)
    told = f"{made.argv}\n{outcome.stdout}\n{outcome.stderr}"
    assert outcome.status == 0, told
    return stats.total(outcome.stderr)


def with_tombolo(key: str) -> list[str]:
    """In front of a program whose launcher has not been told of it."""
    return ["env", f"LD_PRELOAD={libraries.need(need(key).kind)}", "TOMBOLO_STATS=json"]


def only(key: str, ranks: str) -> list[str]:
    """The command of all ranks, in front of a program: those of `ranks` have Tombolo."""
    variable = "PMI_RANK" if need(key).kind == "mpich" else "OMPI_COMM_WORLD_RANK"
    choose = f'case ${variable} in [{ranks}]) exec "$0" "$@";; esac; exec {" ".join(WITHOUT)} "$0" "$@"'
    return ["sh", "-c", choose]


# --- One world -----------------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", ["0", "1", "2", "12", "02"])
@pytest.mark.parametrize("key", MPIS)
def test_of_ranks_with_tombolo_and_without_those_that_have_it_share_windows_of_ours(key, ranks):
    told = passes(prepare(key, [*only(key, ranks), program(key), "world"], ranks=3))
    each = len(ranks) * WINDOWS
    assert (told.served, told.forwarded, told.reasons) == (2 * each, each, (REASON,)), told


@pytest.mark.parametrize("key", MPIS)
def test_of_ranks_that_all_have_it_all_windows_are_ours(key):
    told = passes(prepare(key, [program(key), "world"], ranks=3))
    assert (told.served, told.forwarded) == (3 * 3 * WINDOWS, 0), told


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("key", MPIS)
def test_two_programs_of_one_start_one_of_which_has_tombolo(key, first):
    made = prepare(key, [], ranks=0, ours=False)
    start = made.argv[: made.argv.index("-n")]
    parts = [["-n", "1", *with_tombolo(key), program(key), "world"], ["-n", "2", program(key), "world"]]
    one, other = parts if first else reversed(parts)
    told = passes(Job([*start, *one, ":", *other], made.env, made.mark))
    assert (told.served, told.forwarded) == (2 * WINDOWS, WINDOWS), told


# mpiexec of MPICH that is reached by a port, and another launcher of it.
OTHERS = {"port": ["mpiexec", "-pmi-port"], "gforker": ["mpiexec.gforker"]}
# As under a launcher that is not known (MPICH), or with the other ranks on other hosts (Open MPI).
UNKNOWN = ["env", "-u", "MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE=1"]


def by(launcher: list[str], made: Job) -> Job:
    """Started by another launcher of the same MPI."""
    first, *options = launcher
    return Job([str(Path(made.argv[0]).parent / first), *options, *made.argv[1:]], made.env, made.mark)


@pytest.mark.parametrize("ranks", ["0", "1", "12", "012"])
@pytest.mark.parametrize("launcher", OTHERS)
def test_ranks_of_other_launchers_are_known_as_well(launcher, ranks):
    named = {"port": "PMI_ID", "gforker": "PMI_RANK"}[launcher]
    command = [word.replace("PMI_RANK", named) for word in only("mpich", ranks)]
    told = passes(by(OTHERS[launcher], prepare("mpich", [*command, program("mpich"), "world"], ranks=3)))
    each = len(ranks) * WINDOWS
    expected = (2 * each, each, (REASON,)) if len(ranks) < 3 else (3 * each, 0, ())
    assert (told.served, told.forwarded, told.reasons) == expected, told


@pytest.mark.parametrize("key", MPIS)
def test_of_a_launcher_that_is_not_known_all_windows_are_ours(key):
    told = passes(prepare(key, [*UNKNOWN, program(key), "world"], ranks=3))
    assert (told.served, told.forwarded) == (3 * 3 * WINDOWS, 0), told


def told_before(made: Job, text: str) -> str:
    """The line with that text on stderr, after which the job is ended; all of stderr where there is none."""
    started = subprocess.Popen(made.argv, env=made.env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    limit = threading.Timer(LIMIT, started.kill)
    limit.start()
    try:
        said = ""
        for line in started.stderr:
            if text in line:
                return line
            said += line
        return f"status {started.poll()}; {said}"
    finally:
        limit.cancel()
        processes.end(started, made)
        started.stderr.close()


@pytest.mark.parametrize("key, ranks", [*((key, "02") for key in MPIS), ("mpich", "2")])
def test_there_processes_without_tombolo_are_named_by_a_rank_that_waits_for_them(key, ranks):
    told = told_before(prepare(key, [*UNKNOWN, *only(key, ranks), program(key), "world"], ranks=3), "still waits for")
    named = {"02": "rank 1", "2": "ranks 0, 1"}[ranks]
    assert f"rank {ranks[0]}: MPI_Win_allocate: still waits for {named} of 3 processes" in told, told


@pytest.mark.parametrize("key", MPIS)
def test_there_a_process_that_is_late_is_named_and_the_program_goes_on(key):
    variable = "PMI_RANK" if need(key).kind == "mpich" else "OMPI_COMM_WORLD_RANK"
    late = ["sh", "-c", f'export LATE=$(( {variable} == 1 ? 13 : 0 )); exec "$0" "$@"']
    outcome = processes.run(prepare(key, [*UNKNOWN, *late, program(key), "world"], ranks=3), LIMIT)
    assert outcome.status == 0, outcome
    assert outcome.stderr.count("still waits for rank 1 of 3 processes") == 1, outcome.stderr
    told = stats.total(outcome.stderr)
    assert (told.served, told.forwarded) == (3 * 3 * WINDOWS, 0), told


# --- Spawned processes ---------------------------------------------------------------------------


def spawn(key: str, place: str, around: list[str], way: str = "spawn", often: int = 1) -> list[str]:
    return [program(key), way, place, str(often), *around, program(key), place]


@pytest.mark.parametrize("place", ["first", "last"])
@pytest.mark.parametrize("way", ["spawn", "multiple"])
@pytest.mark.parametrize("key", SPAWNS)
def test_spawned_processes_get_tombolo_and_share_windows_with_their_parents(key, way, place):
    told = passes(prepare(key, spawn(key, place, [], way)))
    assert (told.served, told.forwarded) == (4 * 4 * WINDOWS, 0), told


@pytest.mark.parametrize("key", SPAWNS)
def test_processes_that_are_spawned_later_share_windows_as_well(key):
    told = passes(prepare(key, spawn(key, "last", [], often=2)))
    assert (told.served, told.forwarded) == ((2 + 2 + 2 + 2) * 4 * WINDOWS, 0), told


@pytest.mark.parametrize("key", SPAWNS)
def test_three_parents_spawn_again_and_again(key):
    """The first and the last in turn. MPICH's intercommunicator of 3 and 2 may lose a message to any source."""
    for _ in range(8 if key == "mpich" else 1):
        told = passes(prepare(key, spawn(key, "last", [], often=2), ranks=3))
        assert (told.served, told.forwarded) == (2 * (3 * 4 + 2 * 4) * WINDOWS, 0), told


def test_a_spawn_that_waits_for_another_one_of_as_many_children_says_so(tmp_path):
    """The first child of all starts late."""
    late = ["sh", "-c", f'mkdir {tmp_path}/first 2>/dev/null && sleep 13; exec "$0" "$@"']
    outcome = processes.run(prepare("mpich", spawn("mpich", "last", late, "alone")), LIMIT)
    assert outcome.status == 0, outcome
    assert outcome.stderr.count("waits for another spawn of as many children") == 1, outcome.stderr
    told = stats.total(outcome.stderr)
    assert (told.served, told.forwarded) == ((2 + 2 * 2) * 4 * WINDOWS, 0), told


@pytest.mark.parametrize("key", ["openmpi", "openmpi-apt"])
def test_spawned_processes_run_on_the_machine_of_their_parents(key):
    made = prepare(key, spawn(key, "last", []), machine="flushed")
    outcome = processes.run(made, LIMIT)
    assert outcome.status == 0, outcome.stderr
    assert outcome.stderr.count('"machine":"flushed"') == 4, outcome.stderr


@pytest.mark.parametrize("preload", [True, False])
@pytest.mark.parametrize("name", ["env", "PMIX_ENVAR"])
@pytest.mark.parametrize("key", ["openmpi", "openmpi-apt"])
def test_the_environment_that_a_program_gives_its_children_holds(key, name, preload):
    """So does a line for LD_PRELOAD, by which they have no Tombolo."""
    if key == "openmpi-apt" and name != "env":
        pytest.skip("Open MPI 4 does not know the key")
    value = "COMPANY=here\n" + ("MY_LD_PRELOAD=" if preload else "LD_PRELOAD=")
    outcome = processes.run(prepare(key, spawn(key, "last", []), INFO_KEY=name, INFO_VALUE=value), LIMIT)
    assert outcome.status == 0, outcome.stderr
    assert outcome.stdout.count("COMPANY is here") == 2, outcome
    told = stats.total(outcome.stderr)
    expected = (4 * 4 * WINDOWS, 0) if preload else (2 * 2 * WINDOWS, 2 * 2 * WINDOWS)
    assert (told.served, told.forwarded) == expected, told


@pytest.mark.parametrize("key", ["openmpi"])
def test_settings_that_find_no_room_in_the_environment_of_children_are_named(key):
    outcome = processes.run(prepare(key, spawn(key, "last", []), TOMBOLO_POOL="/" + 300 * "p"), LIMIT)
    assert outcome.status == 0, outcome.stderr
    assert outcome.stderr.count("the children do not get TOMBOLO_POOL,") == 1, outcome.stderr
    assert stats.total(outcome.stderr).served == 4 * 4 * WINDOWS, outcome.stderr


def test_a_preloaded_library_that_leaves_no_room_for_the_parents_name_is_told_of(tmp_path):
    folder = tmp_path / ("p" * (235 - len(str(tmp_path)) - 4))
    folder.mkdir()
    (folder / "t.so").symlink_to(libraries.need(need("openmpi").kind))
    ours = ["env", f"LD_PRELOAD={folder / 't.so'}", "TOMBOLO_STATS=json"]
    outcome = processes.run(prepare("openmpi", [*ours, *spawn("openmpi", "last", [])], ours=False), LIMIT)
    assert outcome.status == 0, outcome
    assert outcome.stderr.count("windows with the children become the MPI's,") == 1, outcome.stderr
    assert "TOMBOLO_SPAWNED_BY" not in outcome.stderr, outcome.stderr
    told = stats.total(outcome.stderr)
    assert (told.served, told.forwarded) == (2 * 2 * WINDOWS, 2 * 2 * WINDOWS), told


@pytest.mark.parametrize("place", ["first", "last"])
@pytest.mark.parametrize("key", SPAWNS)
def test_windows_with_spawned_processes_without_tombolo_are_the_mpis(key, place):
    """Those of each side alone are ours where it has Tombolo."""
    told = passes(prepare(key, spawn(key, place, WITHOUT)))
    ours = 2 * 2 * WINDOWS
    assert (told.served, told.forwarded, told.reasons) == (ours, ours, (REASON,)), told


@pytest.mark.parametrize("place", ["first", "last"])
@pytest.mark.parametrize("key", SPAWNS)
def test_windows_with_parents_without_tombolo_are_the_mpis(key, place):
    told = passes(prepare(key, spawn(key, place, with_tombolo(key)), ours=False))
    ours = 2 * 2 * WINDOWS
    assert (told.served, told.forwarded, told.reasons) == (ours, ours, (REASON,)), told


@pytest.mark.parametrize("ranks", ["0", "1"])
@pytest.mark.parametrize("key", SPAWNS)
def test_parents_of_which_one_has_tombolo_spawn_processes(key, ranks):
    """The last rank is the root. Its children get Tombolo from it, or from the launcher, but for Open MPI 5's."""
    told = passes(prepare(key, [*only(key, ranks), *spawn(key, "last", [])]))
    children = 0 if key == "openmpi" and ranks == "0" else 2
    assert told.served == children * 2 * WINDOWS, told
    assert told.forwarded == (4 + 2 * children) * WINDOWS, told


@pytest.mark.parametrize("first", [True, False])
def test_a_spawn_of_parents_that_no_launcher_names_waits_for_none_without_tombolo(first):
    """They are taken to have it all, which a window may rely on, but not a program that makes none."""
    made = prepare("mpich", [], ranks=0, ours=False)
    plain = ["-n", "1", *UNKNOWN, *spawn("mpich", "apart", WITHOUT)]
    ours = ["-n", "1", *with_tombolo("mpich"), *plain[2:]]
    parts = [*ours, ":", *plain] if first else [*plain, ":", *ours]
    passes(Job([*made.argv[: made.argv.index("-n")], *parts], made.env, made.mark))


@pytest.mark.parametrize("launcher", ["port", "gforker", "unknown"])
def test_windows_with_spawned_processes_are_the_mpis_where_no_launcher_names_their_parents(launcher):
    around = UNKNOWN if launcher == "unknown" else []
    made = prepare("mpich", [*around, *spawn("mpich", "last", around)])
    told = passes(made if around else by(OTHERS[launcher], made))
    have_it = 2 if launcher == "gforker" else 4  # it hands no variables on
    assert (told.served, told.forwarded) == (have_it * 2 * WINDOWS, have_it * 2 * WINDOWS), told


# --- Ports and sockets ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ompi_server(tmp_path_factory):
    """Open MPI 4's server of ports, by which programs of two starts meet: options for mpirun."""
    server = shutil.which("ompi-server")
    if server is None:
        pytest.skip("Open MPI 4's ompi-server is not installed here")
    uri = tmp_path_factory.mktemp("server") / "uri"
    command = [server, "--no-daemonize", "-r", str(uri)]
    started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + LIMIT
        while not (uri.exists() and uri.read_text().endswith("\n")) and time.monotonic() < deadline:
            time.sleep(0.05)
        yield ["--ompi-server", f"file:{uri}"]
    finally:
        started.terminate()
        started.wait()


@pytest.mark.parametrize("server", [True, False])
@pytest.mark.parametrize("client", [True, False])
@pytest.mark.parametrize("key", ["mpich", "openmpi-apt"])
def test_windows_of_programs_that_meet_by_a_port_are_the_mpis(key, server, client, tmp_path, request):
    """Those of each program alone are ours where it has Tombolo. The wheel of Open MPI 5 has no server for two
    starts: it lacks prun, and its mpirun dies by a signal where it is given a server (--dvm)."""
    name = str(tmp_path / "port")
    sides = {"server": server, "client": client}
    jobs = [prepare(key, [program(key), "port", side, name], ours=ours, **SHORT_NAMES) for side, ours in sides.items()]
    if key == "openmpi-apt":
        for each in jobs:
            each.argv[1:1] = request.getfixturevalue("ompi_server")
            each.env["OMPI_MCA_osc"] = "pt2pt"  # the others make no window of two starts
    started = [
        subprocess.Popen(each.argv, env=each.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for each in jobs
    ]
    try:
        outputs = [process.communicate(timeout=LIMIT) for process in started]
    finally:
        for process in started:
            process.kill()
    assert [process.returncode for process in started] == [0, 0], outputs
    for (side, ours), (_, told) in zip(sides.items(), outputs, strict=True):
        counts = stats.total(told)
        windows = 2 * 2 * WINDOWS if ours else 0
        assert (counts.served, counts.forwarded) == (windows, windows), (side, counts)


@pytest.mark.parametrize("server", ["YES", "NO"])
@pytest.mark.parametrize("client", ["YES", "NO"])
@pytest.mark.parametrize("key", ["openmpi", "openmpi-apt"])
def test_windows_of_children_of_two_spawns_that_meet_by_a_port_are_the_mpis(key, server, client, tmp_path):
    """By the server of the one mpirun."""
    made = prepare(key, [program(key), "children", str(tmp_path / "port"), server, client], ranks=1)
    if key == "openmpi-apt":
        made.env["OMPI_MCA_osc"] = "pt2pt"
    told = passes(made)
    windows = [server, client].count("YES") * 2 * 2 * WINDOWS
    assert (told.served, told.forwarded) == (windows, windows), told


@pytest.mark.parametrize("ranks", ["0", "1", "01"])
@pytest.mark.parametrize(
    "key, way",
    [("mpich", "join"), ("openmpi", "join"), *((key, "within") for key in MPIS)],
)
def test_windows_of_ranks_that_meet_by_a_socket_or_a_port_as_well(key, way, ranks):
    """They are of one world, so that it is known which have Tombolo."""
    told = passes(prepare(key, [*only(key, ranks), program(key), way], **SHORT_NAMES))
    all_have = len(ranks) == 2
    expected = (2 * 4 * WINDOWS, 0) if all_have else (WINDOWS, 3 * WINDOWS)
    assert (told.served, told.forwarded) == expected, told


# --- The library of another MPI ------------------------------------------------------------------


@pytest.mark.parametrize("way", ["session", "world"])
@pytest.mark.parametrize("key", ["mpich", "openmpi"])
def test_a_library_for_another_mpi_is_named(key, way):
    """In front of the host's call, which would take the handles of its own kind for others."""
    other = "openmpi" if need(key).kind == "mpich" else "mpich"
    preload = f"LD_PRELOAD={libraries.need(need(other).kind)}"
    outcome = processes.run(prepare(key, ["env", preload, program(key), way], ranks=1, ours=False), LIMIT)
    assert outcome.status == 1 and "preload the library built for it" in outcome.stderr, outcome
