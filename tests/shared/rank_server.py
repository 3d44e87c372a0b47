"""Starts Python programs quickly: a server imports what they need, and forks itself for each of them.

Ranks need NumPy, which takes 0.25 s of CPU; of `peerway cc` for a short program, a third is imports, and of
most other commands nearly all.
A forked program is like `python PROGRAM ARGUMENT...`: it has its own environment, its own addresses, the
program as `__main__`, and the interpreter's normal shutdown. Only its /proc/PID/environ and cmdline are the
server's.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import mmap
import os
import pkgutil
import secrets
import select
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

LARGEST = 1 << 18  # bytes of a request


# What a server imports, by the kind of its programs; the attributes load lazy parts of their modules.
IMPORTS = {
    "ranks": ("numpy.random.default_rng", "peerway.Context"),
    "compilers": (
        "peerway_common.cli.main", "peerway_xacc.cli.command", "peerway_xacc.driver.run",
        "peerway_xacc.fortran.driver.run", "clang.cindex.conf.lib",
    ),
    "commands": (
        "peerway_common.cli.main", "peerway.cli.run.command", "peerway_measure.cli.bench.command",
        "peerway_measure.cli.campaign.command", "peerway_measure.campaign.run.Runner",
        "peerway_measure.cli.storage.command", "peerway_measure.storage.session",
        "peerway_measure.storage.table", "peerway_trace.cli.record.command", "peerway_trace.tables",
    ),
}  # fmt: skip


class Rank:
    """A forked rank, with the part of subprocess.Popen's interface that the tests use."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], kind: str = "ranks", folder: str = ""
    ) -> None:
        stdin, self._to = os.pipe()
        self._out, stdout = os.pipe()
        self._err, stderr = os.pipe()
        self._status, status = os.pipe()
        theirs = [stdin, stdout, stderr, status]
        words = [os.fspath(word) for word in command]  # as subprocess takes paths, too
        variables = {name: os.fspath(value) for name, value in environment.items()}
        request = json.dumps([words, variables, folder or str(Path.cwd())]).encode()
        assert len(request) < LARGEST
        socket.send_fds(_server(kind)[1], [request], theirs)
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

    def completed(self, timeout: float) -> tuple[int, str, str]:
        """Its status, output and errors, once it has ended."""
        self.stdin.close()
        with self.stdout, self.stderr, ThreadPoolExecutor(max_workers=2) as pool:
            texts = [pool.submit(stream.read) for stream in (self.stdout, self.stderr)]
            try:
                status = self.wait(timeout)
            finally:
                self.kill()
            out, errors = (text.result().decode() for text in texts)
        return status, out, errors


_SERVERS: dict[str, tuple[subprocess.Popen[bytes], socket.socket]] = {}


def _server(kind: str) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """This process's server of a kind and the socket to it, started at the first call."""
    if kind in _SERVERS:
        return _SERVERS[kind]
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PEERWAY_")}
    environment |= {
        "PYTHONPATH": str(Path(__file__).parent),
        "OPENBLAS_NUM_THREADS": "1",
    }  # threads do not fork
    command = [sys.executable, "-c", f"import rank_server; rank_server.serve({there.fileno()}, {kind!r})"]
    process = subprocess.Popen(command, pass_fds=[there.fileno()], env=environment)
    there.close()
    _SERVERS[kind] = process, here
    return _SERVERS[kind]


def stop() -> None:
    """End the servers."""
    for process, connection in _SERVERS.values():
        connection.close()
        process.wait()
    _SERVERS.clear()


# ---- the server


def serve(descriptor: int, kind: str) -> None:
    """Fork a program for each request, and report its process id and exit status,
    until the tests close the socket.
    """
    for name in IMPORTS[kind]:
        pkgutil.resolve_name(name)
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
        ready, _, _ = select.select([descriptor, ended], [], [])
        if ended in ready:
            os.read(ended, 1 << 12)
            tell_ends(ranks)
        if descriptor in ready:
            request, theirs, _, _ = socket.recv_fds(requests, LARGEST, 4)
            if not request:
                return
            status = theirs.pop()
            process = os.fork()
            if process == 0:
                command, environment, folder = json.loads(request)
                become(command, environment, folder, theirs)
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
    sys.stdin, sys.stdout = (os.fdopen(n, mode, closefd=False) for n, mode in enumerate("rw"))
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
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
