"""Runs the steps of a script: prints what is done, how long it took and whether it worked, and keeps a log.

The wall-clock and CPU times of a script's steps are in out/times/SCRIPT.jsonl.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
BUILD = ROOT / "build" / "editable"
CORES = len(os.sched_getaffinity(0))
# For CMake, if ccache is installed: code is not compiled twice, even in a new clone, and even with the
# precompiled headers of cmake/Together.cmake.
CACHED = {
    "CMAKE_C_COMPILER_LAUNCHER": "ccache",
    "CMAKE_CXX_COMPILER_LAUNCHER": "ccache",
    "CCACHE_BASEDIR": str(ROOT),
    "CCACHE_NOHASHDIR": "1",
    "CCACHE_SLOPPINESS": "pch_defines,time_macros",
}
TIMES: list[dict[str, object]] = []  # of each step that has ended
RUNNING: set[int] = set()  # sessions of running steps
ENDED = threading.Event()  # set when no step may begin any more


class StepError(Exception):
    """A step failed; the message says which, and what to do."""


def say(text: str) -> None:
    """Print one line at once, so that it is in order with what child processes print."""
    print(text, flush=True)


def environment(**extra: str) -> dict[str, str]:
    """The environment of child processes, with the virtual environment's programs first on PATH."""
    env = dict(os.environ, **extra)
    env["PATH"] = f"{VENV / 'bin'}{os.pathsep}{env.get('PATH', os.defpath)}"
    env["VIRTUAL_ENV"] = str(VENV)
    env.setdefault("CMAKE_BUILD_PARALLEL_LEVEL", str(CORES))
    if shutil.which("ccache"):
        for name, value in CACHED.items():
            env.setdefault(name, value)
    # PEERWAY_BUILD_WHEELS is only for setup.py. If Python may not write bytecode, each of thousands of
    # processes compiles the package again.
    for name in ("PYTHONHOME", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PEERWAY_BUILD_WHEELS"):
        env.pop(name, None)
    return env


def run(
    title: str,
    command: Sequence[object],
    log: Path,
    env: dict[str, str] | None = None,
    limit_s: float = float("inf"),
) -> int:
    """Run `command` in the root folder with its output in `log`, and print one line with times. Returns its
    status.

    At the time limit, which only hanging commands reach, it gets SIGABRT, so that sanitizers and Python print
    where they are; then the rest of its session is killed.
    """
    if ENDED.is_set():
        raise KeyboardInterrupt
    log.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(word) for word in command],
            cwd=ROOT,
            env=env or environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        guard = threading.Timer(min(limit_s, threading.TIMEOUT_MAX), stop, [process.pid])
        guard.daemon = True
        guard.start()
        RUNNING.add(process.pid)
        try:
            _, ended, used = os.wait4(process.pid, 0)
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        finally:
            RUNNING.discard(process.pid)
            guard.cancel()
    status = process.returncode = os.waitstatus_to_exitcode(ended)
    wall, cpu = time.monotonic() - started, used.ru_utime + used.ru_stime
    TIMES.append({"step": title, "wall_s": round(wall, 1), "cpu_s": round(cpu, 1), "status": status})
    outcome = "" if status == 0 else f"  FAILED with status {status}"
    outcome += f": it hung, and was stopped after {limit_s:.0f} s" if wall > limit_s else ""
    say(f"  {title:<58} {wall:6.1f} s, {cpu:6.1f} s of CPU{outcome}")
    return status


def stop(session: int) -> None:
    """Abort a session of processes; its leader has 20 s to print where it is."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(session, signal.SIGABRT)
        time.sleep(20)
        os.killpg(session, signal.SIGKILL)


def end_all() -> None:
    """Kill the steps of other threads, and let no further step begin."""
    ENDED.set()
    for session in list(RUNNING):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(session, signal.SIGKILL)


def must(title: str, command: Sequence[object], log: Path, env: dict[str, str] | None = None) -> None:
    """Like run(), but a failure shows the end of the log and raises StepError."""
    if run(title, command, log, env) != 0:
        show_end(log)
        raise StepError(f"{title}: failed; the whole output is in {log.relative_to(ROOT)}")


def show_end(log: Path, lines: int = 40) -> None:
    """Print the last lines of a log, indented."""
    show_lines(log.name, log.read_text(errors="replace").splitlines(), lines)


def show_lines(title: str, lines: Sequence[str], most: int = 40) -> None:
    """Print a title and the last lines of a text, indented."""
    say(f"    {title}" + (f", the last {most} lines" if len(lines) > most else ""))
    for line in lines[-most:]:
        say(f"    | {line}")


def main(body: Callable[[], int]) -> None:
    """Run a script's main function; a failed step becomes one clear line and status 1."""
    script = Path(sys.argv[0])
    try:
        status = body()
    except StepError as error:
        print(f"{script.name}: {error}", file=sys.stderr)
        status = 1
    except KeyboardInterrupt:
        status = 130
    if TIMES:
        times = ROOT / "out" / "times" / f"{script.stem}.jsonl"
        times.parent.mkdir(parents=True, exist_ok=True)
        times.write_text("".join(json.dumps(step) + "\n" for step in TIMES))
    sys.exit(status)
