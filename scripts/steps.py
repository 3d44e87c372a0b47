"""Running the steps of a script: say what is done, how long it took and whether it worked; keep the log.

The times of all steps of a script, by the clock and of the CPUs, are in out/times/SCRIPT.jsonl.
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
# For CMake and ccache, where that is installed: what was compiled before is not compiled again, also in a new
# clone, and with the precompiled headers of cmake/Together.cmake.
CACHED = {
    "CMAKE_C_COMPILER_LAUNCHER": "ccache",
    "CMAKE_CXX_COMPILER_LAUNCHER": "ccache",
    "CCACHE_BASEDIR": str(ROOT),
    "CCACHE_NOHASHDIR": "1",
    "CCACHE_SLOPPINESS": "pch_defines,time_macros",
}
TIMES: list[dict[str, object]] = []  # of each step that has ended
RUNNING: set[int] = set()  # the sessions of steps that have not
ENDED = threading.Event()  # no step begins any more


class StepError(Exception):
    """A step failed; the message says which, and what to do."""


def say(text: str) -> None:
    """Print one line at once, so that it is in order with what child processes print."""
    print(text, flush=True)


def environment(**extra: str) -> dict[str, str]:
    """Give the environment of child processes, with the virtual environment's programs first."""
    env = dict(os.environ, **extra)
    env["PATH"] = f"{VENV / 'bin'}{os.pathsep}{env.get('PATH', os.defpath)}"
    env["VIRTUAL_ENV"] = str(VENV)
    env.setdefault("CMAKE_BUILD_PARALLEL_LEVEL", str(CORES))
    if shutil.which("ccache"):
        for name, value in CACHED.items():
            env.setdefault(name, value)
    # PEERWAY_BUILD_WHEELS is for setup.py alone. Where Python may keep no bytecode, each of thousands of
    # processes compiles the package anew.
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
    """Run `command` in the root folder, output in `log`, print one line with times. Returns its status.

    Past the limit, which is for what hangs, it gets SIGABRT, so that sanitizers and Python print where they
    are, and what is left of its session is killed.
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
    """End a session of processes; its leader may say first where it is."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(session, signal.SIGABRT)
        time.sleep(20)
        os.killpg(session, signal.SIGKILL)


def end_all() -> None:
    """Kill the steps that other threads are running, and let them begin no more."""
    ENDED.set()
    for session in list(RUNNING):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(session, signal.SIGKILL)


def must(title: str, command: Sequence[object], log: Path, env: dict[str, str] | None = None) -> None:
    """As run(), but a failure shows the end of the log and ends the script."""
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
