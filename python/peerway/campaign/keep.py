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
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from peerway.campaign import applications
from peerway.campaign.journal import Journal
from peerway.printable import printable
from peerway.records import NODE_TYPE, ROUND, RUN, Record, RecordError

NODES = "CAMPAIGN_NODES"  # in the environment of a command: the nodes that it is given, with commas
TAKEN = 75  # somebody else measures this, or has
_NO_SSH = 255  # what ssh ends with when it did not reach the node
_LAST_LINES = 6
_NOTE, _MOST_NOTES = "note: ", 50


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
    end = _measure(journal, task)
    event = {"id": name, "seconds": round(time.monotonic() - began, 3)}
    # Noted before the lock is free, so that a runner sees the one when it sees the other.
    if end.why:
        also = {"unreached": True} if end.unreached else {}
        journal.note({"event": "failed", **event, "why": end.why, **also})
    else:
        journal.note({"event": "done", **event, **({"notes": end.notes} if end.notes else {})})
    for ending in ("out", "err", "lock"):
        (journal.running / f"{name}.{ending}").unlink(missing_ok=True)
    return 1 if end.why else 0


@dataclass(frozen=True)
class _End:
    """How a measurement ended. `why` there are no records, "" when they are on the disk; whether the node was
    not even reached; and what the command noted, of what it could not measure or not prove.
    """

    why: str = ""
    unreached: bool = False
    notes: list[str] = field(default_factory=list)


def _measure(journal: Journal, task: dict[str, Any]) -> _End:
    out, err = (journal.running / f"{task['id']}.{ending}" for ending in ("out", "err"))
    with out.open("wb") as output, err.open("wb") as errors:
        try:
            process = subprocess.Popen(
                task["argv"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
                env={**_with_this_peerway(), NODES: ",".join(task["nodes"])},
            )
        except OSError as error:
            return _End(f"{task['argv'][0]} could not be started: {error.strerror}", unreached=True)
        try:
            status = process.wait(task["limit_s"])
        except subprocess.TimeoutExpired:
            _end(process)
            return _End(f"it did not end within {task['limit_s']:g} s and was ended")
    lines = err.read_text(errors="replace").strip().splitlines()
    if status:
        said = " | ".join(lines[-_LAST_LINES:]) or "it said nothing"
        why = printable(f"its command ended with status {status}: {said}")[:2000]
        return _End(why, unreached=status == _NO_SSH and task["argv"][0] != "sh")
    notes = [printable(line.removeprefix(_NOTE))[:500] for line in lines if line.startswith(_NOTE)]
    return _End(_taken(journal, task, out), notes=list(dict.fromkeys(notes))[:_MOST_NOTES])


def _taken(journal: Journal, task: dict[str, Any], out: Path) -> str:
    """Bring the records of an output to the disk. Why there are none, if so."""
    try:
        found = [_stamped(record, task) for record in applications.read(out, task["argv"][-1])]
    except RecordError as error:
        return printable(f"its command printed something that is not a record: {error}")[:2000]
    if not found:
        return "its command printed no records; tests print them on standard output (--out -)"
    try:
        journal.put(task["id"], found)
    except OSError as error:
        return f"its records could not be written: {error.strerror}"
    return ""


def _with_this_peerway() -> dict[str, str]:
    """The environment, with this `peerway` on the PATH even if its virtual environment is not active."""
    here = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": os.pathsep.join([os.environ.get("PATH", os.defpath), here])}


def _stamped(record: Record, task: dict[str, Any]) -> Record:
    """With the node as the campaign knows it: a container's host name may be another at each start."""
    told = {
        NODE_TYPE: task["type"],
        ROUND: task["round"],
        "campaign": task["campaign"],
        RUN: record.run or task["id"],
    }
    return replace(record, host=_node_of(record.host, task["nodes"]), extra={**record.extra, **told})


def _node_of(host: str, nodes: Sequence[str]) -> str:
    """The node that calls itself so, with or without its domain. One that is alone has all records."""
    if len(nodes) == 1:
        return nodes[0]
    short = {node.rpartition("@")[2].partition(".")[0]: node for node in nodes}
    return short.get(host.partition(".")[0], host)


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
            return


if __name__ == "__main__":
    sys.exit(keep(Journal(Path(sys.argv[1])), json.loads(sys.argv[2])))
