"""The keeper: a small process that runs one measurement and brings its records to the disk, also when whoever
started it is gone.

It holds a lock as long as it lives, so that no second one measures the same meanwhile. In Slurm it is the
job.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from peerway_common import disk_space
from peerway_common.printable import printable, shortened
from peerway_measure.campaign import applications
from peerway_measure.campaign.journal import Journal
from peerway_measure.campaign.plan import NODES
from peerway_measure.records import NODE_TYPE, OR_SKIP, ROUND, RUN, Record, RecordError, factor_text

TAKEN = 75  # somebody else measures this, or has
_NO_SSH = 255  # what ssh ends with when it did not reach the node
# What `peerway` says of a host on which it could start nothing.
_UNREACHED = re.compile(
    r"host \S+ cannot be reached|no rank can be started on host|no rank could be started on"
)
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
    """Run the measurement; the exit code says whether the records are on the disk."""
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
        journal.note({"event": "failed", **event, "why": end.why, "nodes": end.nodes, **also})
    else:
        journal.note({"event": "done", **event, **({"notes": end.notes} if end.notes else {})})
    for ending in ("out", "err", "job", "lock"):
        (journal.running / f"{name}.{ending}").unlink(missing_ok=True)
    return 1 if end.why else 0


@dataclass(frozen=True)
class _End:
    """How a measurement ended. `why` there are no records, "" when they are on the disk; whether a node was
    not even reached; on which of the nodes it failed, as far as that is known; and what the command noted, of
    what it could not measure or not prove.
    """

    why: str = ""
    unreached: bool = False
    nodes: Sequence[str] = ()
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
            why = f"{task['argv'][0]} could not be started: {error.strerror}"
            return _End(why, unreached=True, nodes=task["nodes"][:1])
        try:
            status = process.wait(task["limit_s"])
        except subprocess.TimeoutExpired:
            _end(process)
            why = f"it did not end within {task['limit_s']:g} s and was ended"
            return _End(why, nodes=named_alone(task["nodes"], ""))
    lines = err.read_text(errors="replace").strip().splitlines()
    if status:
        error_text = " | ".join(lines[-_LAST_LINES:]) or "it printed nothing"
        why = printable(f"its command ended with status {status}: {error_text}")[:2000]
        if status == _NO_SSH and task["argv"][0] != "sh":
            return _End(why, unreached=True, nodes=task["nodes"][:1])
        nodes = named_alone(task["nodes"], error_text)
        return _End(
            why, unreached=len(task["nodes"]) > 1 and bool(_UNREACHED.search(error_text)), nodes=nodes
        )
    notes = [printable(line.removeprefix(_NOTE))[:500] for line in lines if line.startswith(_NOTE)]
    why = _taken(journal, task, out)
    nodes = named_alone(task["nodes"], why)
    return _End(why, nodes=nodes, notes=list(dict.fromkeys(notes))[:_MOST_NOTES])


def named_alone(nodes: Sequence[str], text: str) -> Sequence[str]:
    """The one of these nodes that an error names, by its name or its host's; none if it names none or more.
    One that is alone is the one that failed.
    """
    if len(nodes) == 1:
        return nodes
    named = [node for node in nodes if re.search(rf"(?<![\w.-]){re.escape(_short(node))}(?![\w-])", text)]
    return named if len(named) == 1 else ()


def _taken(journal: Journal, task: dict[str, Any], out: Path) -> str:
    """Write the records in an output to the disk. Returns why there are none, if so."""
    try:
        measured = [_stamped(record, task) for record in applications.read(out, task["argv"][-1])]
    except RecordError as error:
        return f"its command printed something that is not a record: {_odd_line(out, str(error))}"
    if not measured:
        return "its command printed no records; tests print them on standard output (--out -)"
    try:
        journal.put(task["id"], measured)
    except OSError as error:
        return f"its records could not be written: {disk_space.why(journal.results, error)}"
    return ""


def _odd_line(out: Path, why: str) -> str:
    """What is wrong in an output, with the line itself: the file is gone when this is read, and the same
    mistake in other measurements is to read the same.
    """
    number, _, problem = why.removeprefix(f"{out}:").partition(": ")
    if not number.isdecimal():
        return shortened(why, 2000)
    with out.open(errors="replace") as file:
        line = next(islice(file, int(number) - 1, None), "")
    problem = shortened(problem.removesuffix(OR_SKIP), 2000)
    return f'line {number}, "{shortened(line.rstrip())}": {problem}'


def _with_this_peerway() -> dict[str, str]:
    """The environment, with this `peerway` on the PATH even if its virtual environment is not active."""
    folder = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": os.pathsep.join([os.environ.get("PATH", os.defpath), folder])}


def _stamped(record: Record, task: dict[str, Any]) -> Record:
    """Add the node's name in the campaign to each record, because a container's host name may differ at each
    start.
    """
    stamp = {
        NODE_TYPE: task["type"],
        ROUND: task["round"],
        "campaign": task["campaign"],
        RUN: record.run or task["id"],
    }
    # A record that knows a factor by itself, as those of `peerway storage` do, tells it in its own way.
    factors = {name: value for name, value in task["factors"].items() if name not in record.extra}
    return replace(
        record,
        host=_node_of(record.host, task["nodes"]),
        shape=" ".join([record.shape, *(factor_text(*factor) for factor in factors.items())]),
        extra={**record.extra, **factors, **stamp},
    )


def _node_of(host: str, nodes: Sequence[str]) -> str:
    """The node with this name, with or without its domain. A single node has all records."""
    if len(nodes) == 1:
        return nodes[0]
    short = {_short(node): node for node in nodes}
    return short.get(_short(host), host)


def _short(node: str) -> str:
    """The name without the user and the domain."""
    return node.rpartition("@")[2].partition(".")[0]


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
            return


if __name__ == "__main__":
    sys.exit(keep(Journal(Path(sys.argv[1])), json.loads(sys.argv[2])))
