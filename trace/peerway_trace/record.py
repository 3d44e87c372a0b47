"""Runs a command so that its processes record, and makes a trace from their rings."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from peerway import _core
from peerway.launch.mpi import MpiError, find_launcher
from peerway.launch.preload import preload
from peerway_common.printable import shell_word
from peerway_trace import cuda, job_file, memory, pressure
from peerway_trace.collect import collect
from peerway_trace.control import Window, kept
from peerway_trace.store import Trace


class RecordError(Exception):
    """The command cannot be traced; the message says why."""


@dataclass(frozen=True)
class Request:
    """What to record, and how."""

    command: list[str]
    folder: Path
    level: str
    events: int  # the number of events that a thread keeps
    preload: Path | None = None  # the library that records MPI's calls
    ranks: str = ""  # the ranks that record, separated by commas; "": all
    region: str = ""  # the name of the regions in which events are recorded; "": everywhere
    window: Window = field(default_factory=Window)
    rings: Path | None = None  # the folder of the rings meanwhile, if it is not that of the trace


def record(request: Request) -> tuple[int, Trace]:
    """Run the command to its end; return its exit code as shells give it, and the trace. Raises
    RecordError.
    """
    folder = request.folder.resolve()
    with contextlib.ExitStack() as stack:
        ring_folder = _new_folder(folder)
        variables = _variables(request, ring_folder)
        if request.rings is not None:
            variables["PEERWAY_TRACE_MEMORY"] = str(_in_memory(stack, ring_folder, request.rings))
        return _record(request, folder, ring_folder, variables)


def _variables(request: Request, ring_folder: Path) -> dict[str, str]:
    """The environment variables that the processes of the command read."""
    variables = {
        "PEERWAY_TRACE_DIR": str(ring_folder),
        "PEERWAY_TRACE_MEMORY": "",
        "PEERWAY_TRACE_LEVEL": request.level,
        "PEERWAY_TRACE_EVENTS": str(request.events),
    }
    if request.ranks:
        variables["PEERWAY_TRACE_RANKS"] = request.ranks
    if request.region:
        variables["PEERWAY_TRACE_REGION"] = request.region
    variables |= cuda.variables(os.environ)
    if request.preload is not None:
        variables |= preload(request.preload, os.environ)
    return variables


def _record(
    request: Request, folder: Path, ring_folder: Path, variables: dict[str, str]
) -> tuple[int, Trace]:
    command = _exported(request.command, list(variables))
    first = _core.trace_clock()
    began = time.time()
    meter = pressure.Meter()
    try:
        with kept(ring_folder, request.window):
            status = _run(command, {**os.environ, **variables})
    except RecordError:
        job_file.remove(ring_folder)
        folder.rmdir()  # possible only if it is empty
        raise
    host, waited = socket.gethostname(), meter.share()
    about = {
        "command": request.command,
        "level": request.level,
        "ranks": request.ranks,  # the ranks that were to record; "": all
        "began": datetime.fromtimestamp(began, UTC).isoformat(timespec="milliseconds"),
        "seconds": time.time() - began,
        "status": status,
        "cpus": {host: len(os.sched_getaffinity(0))},  # the CPUs of other hosts are not known
        "cpu_waits": {host: waited} if waited is not None else {},
    }
    readings = {host: [first, _core.trace_clock()]}
    try:
        job_file.write(ring_folder, about, readings)
        trace = collect(folder, about, readings)
    except ModuleNotFoundError as error:
        raise RecordError(
            f"the events are in {_settled(ring_folder)}, but {error.name}, which makes the trace, is not "
            f"installed: `pip install peerway-trace` here, or where you copy {folder} to, then "
            f"`peerway trace collect {shell_word(folder)}`"
        ) from error
    except OSError as error:
        raise RecordError(
            f"the trace cannot be written: {error.strerror or error}; the events are in "
            f"{_settled(ring_folder)}. Make room, then run `peerway trace collect {shell_word(folder)}`"
        ) from error
    job_file.remove(ring_folder)
    return status, trace


def _settled(ring_folder: Path) -> Path:
    """Where the rings are until they are collected; they are still in memory only if the disk is full."""
    try:
        memory.settle(ring_folder)
    except OSError:
        return memory.target(ring_folder) or ring_folder
    return ring_folder


def _exported(command: list[str], names: list[str]) -> list[str]:
    """Make an Open MPI's mpirun pass the variables on, also to other hosts; other launchers do it by
    default.
    """
    if not Path(command[0]).name.startswith(("mpirun", "mpiexec")):
        return command
    try:
        if find_launcher(command[0]).kind != "openmpi":
            return command
    except MpiError:  # the command itself will report it
        return command
    return [command[0], *(word for name in names for word in ("-x", name)), *command[1:]]


def _new_folder(folder: Path) -> Path:
    """Make the folder of a trace and that of its rings; a folder with files is left as it is. Raises
    RecordError.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise RecordError(f"{folder} is not empty; name another folder with -o, or remove it")
        (folder / "rings").mkdir()
    except OSError as error:
        raise RecordError(
            f"cannot make the folder {error.filename or folder}: {error.strerror}; name another with -o"
        ) from error
    return folder / "rings"


def _in_memory(stack: contextlib.ExitStack, ring_folder: Path, base: Path) -> Path:
    """The folder in memory for the rings while the command runs. Raises RecordError."""
    try:
        return stack.enter_context(memory.held(ring_folder, base))
    except OSError as error:
        job_file.remove(ring_folder)
        ring_folder.parent.rmdir()
        raise RecordError(
            f"cannot make a folder in {base}: {error.strerror}; name another with --rings"
        ) from error


def _run(command: Sequence[str], environment: dict[str, str]) -> int:
    """Run a command. Signals that would end this process are left to the command, because its trace must be
    saved.
    """
    previous = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    program: subprocess.Popen[bytes] | None = None

    def hand_on(number: int, _frame: object) -> None:
        # A Ctrl-C also reaches the command, which is in the same process group.
        if program is not None and number != signal.SIGINT:
            program.send_signal(number)

    try:
        for number in previous:
            signal.signal(number, hand_on)
        try:
            program = subprocess.Popen(list(command), env=environment)
        except OSError as error:
            raise RecordError(f"{command[0]} cannot be run: {error.strerror}") from error
        status = program.wait()
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    return status if status >= 0 else 128 - status
