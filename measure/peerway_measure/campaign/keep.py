"""The keeper: a small process that makes one measurement and writes its records to the disk, even if the
process that started it is gone.

It holds the measurement's lock as long as it lives, so that no second keeper makes the same measurement. With
Slurm, the keeper is the job.
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

TAKEN = 75  # exit status: another keeper makes this measurement, or has made it
_NO_SSH = 255  # the exit status of ssh if it did not reach the node
# Errors of `peerway` about a host on which it could not start a rank.
_UNREACHED = re.compile(
    r"host \S+ cannot be reached|no rank can be started on host|no rank could be started on"
)
_LAST_LINES = 6  # of a command's errors, in the reason of its failure
_NOTE, _MOST_NOTES = "note: ", 50


def forked(journal: Journal, task: dict[str, Any]) -> int:
    """Fork a keeper that outlives this process and shares no file or session with it. Returns its process id.
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
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))  # including the runner's lock
        Path("/proc/self/comm").write_text("peerway-keeper")  # its name in `ps` and `top`
        status = keep(journal, task)
    finally:
        os._exit(status)


def keep(journal: Journal, task: dict[str, Any]) -> int:
    """Make the measurement. Returns the exit status: 0 if the records are on the disk, 1 if not, TAKEN if
    another keeper makes it or has made it.
    """
    name = task["id"]
    lock = (journal.running / f"{name}.lock").open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return TAKEN
    if journal.result(name).exists():
        return TAKEN
    began = time.monotonic()  # a clock that is not set
    end = _measure(journal, task)
    event = {"id": name, "seconds": round(time.monotonic() - began, 3)}
    # Noted before the lock is released, so that a runner that finds the lock free also finds the event.
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
    """How a measurement ended.

    `why` is the reason why there are no records, "" if they are on the disk. `unreached`: a node could not
    even be reached. `nodes` are the nodes on which it failed; empty if that is not known. `notes` are the
    command's notes about what it could not measure or verify.
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
    why = _store_records(journal, task, out)
    nodes = named_alone(task["nodes"], why)
    return _End(why, nodes=nodes, notes=list(dict.fromkeys(notes))[:_MOST_NOTES])


def named_alone(nodes: Sequence[str], text: str) -> Sequence[str]:
    """The node that an error names, by its own name or its host's. Empty if the error names none of these
    nodes or several. If there is only one node, it is the one that failed.
    """
    if len(nodes) == 1:
        return nodes
    named = [node for node in nodes if re.search(rf"(?<![\w.-]){re.escape(_short(node))}(?![\w-])", text)]
    return named if len(named) == 1 else ()


def _store_records(journal: Journal, task: dict[str, Any], out: Path) -> str:
    """Write the records in an output to the disk. Returns why there are none; "" if they were written."""
    try:
        measured = [_stamped(record, task) for record in applications.read(out, task["argv"][-1])]
    except RecordError as error:
        return f"its command printed something that is not a record: {_with_its_line(out, str(error))}"
    if not measured:
        return "its command printed no records; tests print them on standard output (--out -)"
    try:
        journal.put(task["id"], measured)
    except OSError as error:
        return f"its records could not be written: {disk_space.why(journal.results, error)}"
    return ""


def _with_its_line(out: Path, why: str) -> str:
    """The error about an output, with the text of the line that is wrong.

    The file will be gone when somebody reads the error. The file's name is left out, so that the same mistake
    in other measurements has the same text.
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
    """A copy of the record with the measurement's data.

    The host is replaced by the node's name in the campaign, because a container's host name may differ at
    each start.
    """
    stamp = {
        NODE_TYPE: task["type"],
        ROUND: task["round"],
        "campaign": task["campaign"],
        RUN: record.run or task["id"],
    }
    # Some records already have a factor in `extra`, such as those of `peerway storage`; they keep it.
    factors = {name: value for name, value in task["factors"].items() if name not in record.extra}
    return replace(
        record,
        host=_node_of(record.host, task["nodes"]),
        shape=" ".join([record.shape, *(factor_text(*factor) for factor in factors.items())]),
        extra={**record.extra, **factors, **stamp},
    )


def _node_of(host: str, nodes: Sequence[str]) -> str:
    """The node whose name the host has, with or without its domain; `host` itself if there is none. With a
    single node, that node.
    """
    if len(nodes) == 1:
        return nodes[0]
    short = {_short(node): node for node in nodes}
    return short.get(_short(host), host)


def _short(node: str) -> str:
    """The name of a node without its user and domain."""
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
