# SPDX-License-Identifier: Apache-2.0
"""Starts a job with a time limit and leaves none of its processes behind."""

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tombolo.launch import JOB_MARK, Job

GRACE_SECONDS = 2


@dataclass(frozen=True)
class Outcome:
    status: int | None  # None: the time limit passed
    stdout: str
    stderr: str
    seconds: float


def run(job: Job, limit: float, folder: Path | None = None) -> Outcome:
    """Runs to the end or to the limit. Files instead of pipes: an orphan cannot hold us up."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.monotonic()
        process = subprocess.Popen(
            job.argv,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=job.env,
            cwd=folder,
            start_new_session=True,
        )
        try:
            status: int | None = process.wait(limit)
        except subprocess.TimeoutExpired:
            status = None
        except BaseException:
            end(process, job)
            raise
        seconds = time.monotonic() - start
        if status != 0:
            end(process, job)
        return Outcome(status, _text(out), _text(err), seconds)


def end(process: subprocess.Popen, job: Job) -> None:
    """Asks the launcher to stop, then kills every process that carries the job's mark."""
    process.terminate()
    try:
        process.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    deadline = time.monotonic() + GRACE_SECONDS
    while (left := marked(job.mark)) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def marked(mark: str) -> list[int]:
    """Processes whose environment holds the mark of a job."""
    wanted = f"{JOB_MARK}={mark}".encode()
    pids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    pids.append(int(entry.name))
            except OSError:
                continue
    return pids


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
