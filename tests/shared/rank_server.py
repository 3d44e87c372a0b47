"""Starts ranks quickly: one process imports NumPy, which takes 0.25 s of CPU, and forks itself for each rank.

A forked rank is like `python PROGRAM ARGUMENT...`: it has its own environment, its own addresses, the program
as `__main__`, and the interpreter's normal shutdown. Only its /proc/PID/environ and cmdline are the server's.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import json
import mmap
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

LARGEST = 1 << 18  # bytes of a request


class Rank:
    """A forked rank, with the part of subprocess.Popen's interface that the tests use."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        stdin, self._to = os.pipe()
        self._out, stdout = os.pipe()
        self._err, stderr = os.pipe()
        self._status, status = os.pipe()
        theirs = [stdin, stdout, stderr, status]
        request = json.dumps([list(command), dict(environment), str(Path.cwd())]).encode()
        assert len(request) < LARGEST
        socket.send_fds(_server()[1], [request], theirs)
        for descriptor in theirs:
            os.close(descriptor)
        self.stdin = os.fdopen(self._to, "wb")
        self.stdout = os.fdopen(self._out, "rb", buffering=0)
        self.stderr = os.fdopen(self._err, "rb")
        self._status_pipe = os.fdopen(self._status, "rb", buffering=0)
        self.pid = int(self._status_pipe.readline())
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._status_pipe], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"rank {self.pid}", timeout or 0)
            self.returncode = int(self._status_pipe.readline())
            self._status_pipe.close()
        return self.returncode

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@functools.cache
def _server() -> tuple[subprocess.Popen[bytes], socket.socket]:
    """This process's server and the socket to it, started at the first call."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PEERWAY_")}
    environment |= {
        "PYTHONPATH": str(Path(__file__).parent),
        "OPENBLAS_NUM_THREADS": "1",
    }  # threads do not fork
    command = [sys.executable, "-c", f"import rank_server; rank_server.serve({there.fileno()})"]
    process = subprocess.Popen(command, pass_fds=[there.fileno()], env=environment)
    there.close()
    return process, here


def stop() -> None:
    """End the server, if there is one."""
    if _server.cache_info().currsize:
        process, connection = _server()
        connection.close()
        process.wait()
        _server.cache_clear()


# ---- the server


def serve(descriptor: int) -> None:
    """Fork a rank for each request, and report its process id and exit status,
    until the tests close the socket.
    """
    import numpy as np

    import peerway

    assert callable(np.random.default_rng)  # loads lazy parts, and so does the next line
    assert callable(peerway.Context)
    requests = socket.socket(fileno=descriptor)
    ended, signalled = os.pipe()
    os.set_blocking(ended, False)
    os.set_blocking(signalled, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # from a terminal; the tests end the server themselves
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(signalled)
    gc.freeze()
    ranks: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([requests, ended], [], [])
        if ended in ready:
            os.read(ended, 1 << 12)
            tell_ends(ranks)
        if requests in ready:
            request, theirs, _, _ = socket.recv_fds(requests, LARGEST, 4)
            if not request:
                return
            status = theirs.pop()
            process = os.fork()
            if process == 0:
                become(*json.loads(request), theirs)
            for end in theirs:
                os.close(end)
            ranks[process] = status
            os.write(status, b"%d\n" % process)


def tell_ends(ranks: dict[int, int]) -> None:
    """Report the ranks that have ended."""
    while ranks:
        process, wait_status = os.waitpid(-1, os.WNOHANG)
        if process == 0:
            return
        status = ranks.pop(process)
        with contextlib.suppress(BrokenPipeError):
            os.write(status, b"%d\n" % os.waitstatus_to_exitcode(wait_status))
        os.close(status)


def become(command: list[str], environment: dict[str, str], folder: str, descriptors: list[int]) -> None:
    """Turn this process into `python COMMAND...`."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
    os.closerange(3, 4096)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, mode, closefd=False) for n, mode in enumerate("rww"))
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    if library := os.environ.pop("RANK_LIBRARY", ""):  # instead of Peerway's own
        from peerway.launch.preload import preload

        first = preload(Path(library), os.environ)
        os.execve(sys.executable, [sys.executable, *command], {**os.environ, **first})
    program, sys.argv = command[0], command
    # No two ranks may have their memory at the same addresses: a wrong address must not work by chance.
    sys.rank_server_padding = mmap.mmap(-1, mmap.PAGESIZE * (1 + secrets.randbelow(1 << 16)))  # type: ignore[attr-defined]
    main = sys.modules["__main__"].__dict__
    main.clear()
    main |= {"__name__": "__main__", "__file__": program, "__builtins__": __builtins__}
    sys.path[0] = str(Path(program).parent)
    ctypes.pythonapi.Py_Exit(run(Path(program), main))


def run(program: Path, main: dict[str, object]) -> int:
    """Run the program; returns the exit status."""
    try:
        exec(compile(program.read_bytes(), program, "exec"), main)
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
            return 1
        return end.code or 0
    except KeyboardInterrupt:
        traceback.print_exc()
        sys.stderr.flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0
