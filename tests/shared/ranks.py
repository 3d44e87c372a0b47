"""Ranks that a test starts one by one, so that it can stop, kill and question each of them. A rank tells the
test what it found as lines of JSON on its standard output."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, Self

from launching import LIMIT, source_of
from rank_server import Rank

HANG = LIMIT  # s without a word from a rank: it hangs, and the test fails instead of never ending


class Ranks:
    """A job of `size` ranks of one program, ended with the `with` block whatever happened in it."""

    def __init__(self, program: str, size: int, *arguments: object, **settings: str) -> None:
        self.secret = secrets.token_hex(16)
        self._shared = {path.name for path in Path("/dev/shm").iterdir()}
        self._unread = [b""] * size
        self.job = {
            "PEERWAY_SIZE": str(size),
            "PEERWAY_LOCAL_SIZE": str(size),
            "PEERWAY_SECRET": self.secret,
            "PEERWAY_RENDEZVOUS": f"unix:@peerway-test-{secrets.token_hex(8)}",
        }
        self.processes = [
            Rank(
                [str(source_of(program)), *map(str, arguments)],
                {**os.environ, **self.job, **self._of(rank), **settings},
            )
            for rank in range(size)
        ]

    @staticmethod
    def _of(rank: int) -> dict[str, str]:
        return {"PEERWAY_RANK": str(rank), "PEERWAY_LOCAL_RANK": str(rank)}

    def read(self, rank: int) -> Any:
        """The next line of a rank. Fails with the rank's standard error when it ends or hangs instead."""
        process = self.processes[rank]
        assert process.stdout is not None
        while b"\n" not in self._unread[rank]:
            if not select.select([process.stdout], [], [], HANG)[0]:
                raise AssertionError(f"rank {rank} has said nothing for {HANG:.0f} s")
            got = os.read(process.stdout.fileno(), 1 << 16)
            if not got:
                raise AssertionError(
                    f"rank {rank} ended ({process.wait()}) without a word:\n{self.errors(rank)}"
                )
            self._unread[rank] += got
        line, _, self._unread[rank] = self._unread[rank].partition(b"\n")
        return json.loads(line)

    def read_all(self) -> list[Any]:
        """The next line of each rank."""
        return [self.read(rank) for rank in range(len(self.processes))]

    def tell(self, rank: int, word: str = "go") -> None:
        """Writes a line to the rank's standard input."""
        stdin = self.processes[rank].stdin
        assert stdin is not None
        stdin.write(word.encode() + b"\n")
        stdin.flush()

    def kill(self, rank: int) -> float:
        """SIGKILL; gives the moment on the monotonic clock, which all processes of the host share."""
        moment = time.monotonic()
        self.processes[rank].send_signal(signal.SIGKILL)
        return moment

    def errors(self, rank: int) -> str:
        """What an ended rank wrote to its standard error."""
        stream = self.processes[rank].stderr
        assert stream is not None
        return stream.read().decode(errors="replace")

    def end(self, *killed: int) -> None:
        """Waits for all ranks: those named must have been killed, the others end well; nothing is left of
        them."""
        for rank, process in enumerate(self.processes):
            try:
                status = process.wait(HANG)
            except subprocess.TimeoutExpired:
                raise AssertionError(f"rank {rank} does not end") from None
            expected = -signal.SIGKILL if rank in killed else 0
            assert status == expected, f"rank {rank} ended with {status}:\n{self.errors(rank)}"
        deadline = time.monotonic() + HANG
        while self._left() and time.monotonic() < deadline:
            time.sleep(0.1)  # what another job has made and not yet mapped; what is of this one stays
        assert self._left() == []
        assert running_with(self.secret) == []

    def _left(self) -> list[str]:
        """Files of shared memory that nobody uses."""
        names = {path.name for path in Path("/dev/shm").iterdir()} - self._shared
        new = [name for name in names if not name.startswith("peerway-trace-")]  # a trace beside this one
        marks = ["peerway", *(str(process.pid) for process in self.processes)]  # other programs come and go
        return [name for name in new if any(mark in name for mark in marks) and not mapped(name)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                assert stream is not None
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


def mapped(name: str) -> bool:
    """Whether a process still uses the file of /dev/shm: then it is of another job."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):
                if f"/dev/shm/{name}" in (folder / "maps").read_text():
                    return True
    return not (Path("/dev/shm") / name).exists()  # gone meanwhile


def running_with(secret: str) -> list[int]:
    """Processes that have the job's secret in their environment."""
    processes = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):
                if f"PEERWAY_SECRET={secret}".encode() in (folder / "environ").read_bytes():
                    processes.append(int(folder.name))
    return processes
