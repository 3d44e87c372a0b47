"""The keeper: a small process that runs one measurement and brings its records to the disk, also when whoever
started it is gone.

It holds a lock as long as it lives, so that no second one measures the same meanwhile. In Slurm it is the
job.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from peerway import records
from peerway.campaign.journal import Journal
from peerway.printable import printable
from peerway.records import NODE_TYPE, ROUND, RUN, Record, RecordError

TAKEN = 75  # somebody else measures this, or has
_LAST_LINES = 6


def forked(journal: Journal, task: dict[str, Any]) -> int:
    """The process of a keeper that outlives this one, and shares nothing with it but memory's first content.
    Raises OSError.
    """
    if pid := os.fork():
        return pid
    status = 1
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))  # the runner's lock is among them
        Path("/proc/self/comm").write_text("peerway-keeper")  # as `ps` and `top` show it
        status = keep(journal, task)
    finally:
        os._exit(status)


def keep(journal: Journal, task: dict[str, Any]) -> int:
    """Measure, and say by the status whether the records are on the disk."""
    name = task["id"]
    lock = (journal.running / f"{name}.lock").open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return TAKEN
    if journal.result(name).exists():
        return TAKEN
    began = time.monotonic()  # a clock that jumps does not touch it
    why = _measure(journal, task)
    seconds = round(time.monotonic() - began, 3)
    if why:  # noted before the lock is free, so that a runner sees the one when it sees the other
        journal.note({"event": "failed", "id": name, "why": why, "seconds": seconds})
    else:
        journal.note({"event": "done", "id": name, "seconds": seconds})
    for end in ("out", "err", "lock"):
        (journal.running / f"{name}.{end}").unlink(missing_ok=True)
    return 1 if why else 0


def _measure(journal: Journal, task: dict[str, Any]) -> str:
    """Why there are no records; "" when they are on the disk."""
    out, err = (journal.running / f"{task['id']}.{end}" for end in ("out", "err"))
    with out.open("wb") as output, err.open("wb") as errors:
        try:
            process = subprocess.Popen(
                task["argv"], stdin=subprocess.DEVNULL, stdout=output, stderr=errors, start_new_session=True
            )
        except OSError as error:
            return f"{task['argv'][0]} could not be started: {error.strerror}"
        try:
            status = process.wait(task["limit_s"])
        except subprocess.TimeoutExpired:
            _end(process)
            return f"it did not end within {task['limit_s']:g} s and was ended"
    said = " | ".join(err.read_text(errors="replace").strip().splitlines()[-_LAST_LINES:])
    if status:
        return printable(f"its command ended with status {status}: {said or 'it said nothing'}")[:2000]
    try:
        found = [_stamped(record, task) for record in records.read(out)]
    except RecordError as error:
        return printable(f"its command printed something that is not a record: {error}")[:2000]
    if not found:
        return "its command printed no records; tests print them on standard output (--out -)"
    try:
        journal.put(task["id"], found)
    except OSError as error:
        return f"its records could not be written: {error.strerror}"
    return ""


def _stamped(record: Record, task: dict[str, Any]) -> Record:
    """With the node as the campaign knows it: a container's host name may be another at each start."""
    told = {
        NODE_TYPE: task["type"],
        ROUND: task["round"],
        "campaign": task["campaign"],
        RUN: record.run or task["id"],
    }
    return replace(record, host=task["node"], extra={**record.extra, **told})


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
            return


if __name__ == "__main__":
    sys.exit(keep(Journal(Path(sys.argv[1])), json.loads(sys.argv[2])))
