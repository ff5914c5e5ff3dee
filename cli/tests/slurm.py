# SPDX-License-Identifier: Apache-2.0
"""Slurm on this host alone: its daemons with a configuration of our own, for as long as a test runs."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun")
PATHS = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
STARTED_IN_S = 60

CONFIGURATION = """
ClusterName=one
FirstJobId={first_job}
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
SlurmctldPort={port}
SlurmdPort={next_port}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
AccountingStorageType=accounting_storage/none
ReturnToService=2
SwitchType=switch/none
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=16 RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
"""


def lack() -> str | None:
    """The reason why Slurm cannot be started here, if there is one."""
    missing = [name for name in PROGRAMS if shutil.which(name, path=PATHS) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    return None if os.geteuid() == 0 else "Slurm's daemons start processes of other users: not as root"


@contextmanager
def running(folder: Path) -> Iterator[dict[str, str]]:
    """The environment for `srun`."""
    for name in ("munge", "state", "spool"):
        (folder / name).mkdir(mode=0o700)
    host = os.uname().nodename.partition(".")[0]
    port = 20000 + os.getpid() % 10000
    configuration = folder / "slurm.conf"
    # A job that was killed leaves memory of MPICH in /dev/shm, named by its number, at which the
    # next of that number would hang.
    first_job = 1 + int(time.time()) % 60_000_000
    configuration.write_text(
        CONFIGURATION.format(host=host, folder=folder, port=port, next_port=port + 1, first_job=first_job)
    )
    environment = os.environ | {"SLURM_CONF": str(configuration), "PATH": PATHS}
    daemons: list[subprocess.Popen] = []
    try:
        daemons.append(start_munge(folder / "munge", environment))
        daemons.append(start(["slurmctld", "-D", "-c", "-f", configuration], environment))
        daemons.append(start(["slurmd", "-D", "-f", configuration, "-N", host], environment))
        wait_until_idle(environment, folder)
        yield environment
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
            try:
                daemon.wait(timeout=10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


def start(command: list, environment: dict[str, str]) -> subprocess.Popen:
    return subprocess.Popen(
        [str(word) for word in command], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def start_munge(folder: Path, environment: dict[str, str]) -> subprocess.Popen:
    key = folder / "key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o600)
    options = [
        f"--key-file={key}", f"--socket={folder}/socket", f"--pid-file={folder}/pid",
        f"--log-file={folder}/log", f"--seed-file={folder}/seed", "--num-threads=1",
    ]  # fmt: skip
    daemon = start(["munged", "--foreground", "--force", *options], environment)
    wait(lambda: (folder / "socket").exists(), "munged", folder)
    return daemon


def wait_until_idle(environment: dict[str, str], folder: Path) -> None:
    def idle() -> bool:
        told = subprocess.run(["sinfo", "-h", "-o", "%t"], env=environment, capture_output=True, text=True)
        return told.stdout.strip() == "idle"

    wait(idle, "slurmd", folder)


def wait(ready, name: str, folder: Path) -> None:
    end = time.monotonic() + STARTED_IN_S
    while not ready():
        if time.monotonic() > end:
            logs = "\n".join(log.read_text()[-1000:] for log in folder.glob("*log"))
            raise TimeoutError(f"{name} is not ready after {STARTED_IN_S} s:\n{logs}")
        time.sleep(0.1)
