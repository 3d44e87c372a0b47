"""Ranks that a test starts one by one, so that it can stop, kill and question each of them.

A rank reports to the test with lines of JSON on its standard output.
"""

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

HANG = LIMIT  # seconds without a line from a rank, after which the test fails


class Ranks:
    """A job of `size` ranks of one program, which ends with the `with` block in any case."""

    def __init__(self, program: str, size: int, *arguments: object, **settings: str) -> None:
        self.secret = secrets.token_hex(16)
        self._shm_before = {path.name for path in Path("/dev/shm").iterdir()}
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
                {**os.environ, **self.job, **self._rank_variables(rank), **settings},
            )
            for rank in range(size)
        ]

    @staticmethod
    def _rank_variables(rank: int) -> dict[str, str]:
        return {"PEERWAY_RANK": str(rank), "PEERWAY_LOCAL_RANK": str(rank)}

    def read(self, rank: int) -> Any:
        """The next line of a rank. If the rank ends or hangs instead, the test fails with its standard
        error.
        """
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

    def send_line(self, rank: int, text: str = "go") -> None:
        """Write a line to the rank's standard input."""
        stdin = self.processes[rank].stdin
        assert stdin is not None
        stdin.write(text.encode() + b"\n")
        stdin.flush()

    def kill(self, rank: int) -> float:
        """Kill with SIGKILL; returns the time on the monotonic clock, which all processes of the host
        share.
        """
        moment = time.monotonic()
        self.processes[rank].send_signal(signal.SIGKILL)
        return moment

    def expect_all_told_of_a_kill(self, victim: int) -> None:
        """Kill a rank while all of them work in a plan: each other one must get the loss as its error."""
        assert self.read_all() == ["running"] * len(self.processes)
        self.kill(victim)
        others = [rank for rank in range(len(self.processes)) if rank != victim]
        for rank in others:
            kind, message, status = self.read(rank)
            assert (kind, status) == ("PeerLost", "peer_lost")
            assert f"rank {victim}" in message
        for rank in others:
            self.send_line(rank)
        self.end(victim)

    def errors(self, rank: int) -> str:
        """The standard error of a rank that has ended."""
        stream = self.processes[rank].stderr
        assert stream is not None
        return stream.read().decode(errors="replace")

    def end(self, *killed: int) -> None:
        """Wait for all ranks: those in `killed` must have been killed, the others succeed,
        and nothing is left behind.
        """
        for rank, process in enumerate(self.processes):
            try:
                status = process.wait(HANG)
            except subprocess.TimeoutExpired:
                raise AssertionError(f"rank {rank} does not end") from None
            expected = -signal.SIGKILL if rank in killed else 0
            assert status == expected, f"rank {rank} ended with {status}:\n{self.errors(rank)}"
        deadline = time.monotonic() + HANG
        while self._abandoned_files() and time.monotonic() < deadline:
            time.sleep(0.1)  # other jobs' new files are soon mapped; files of this job stay
        assert self._abandoned_files() == []
        assert running_with(self.secret) == []

    def _abandoned_files(self) -> list[str]:
        """Files of shared memory that no process uses."""
        names = {path.name for path in Path("/dev/shm").iterdir()} - self._shm_before
        new = [name for name in names if not name.startswith("peerway-trace-")]  # a trace may run in parallel
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
    """Whether a process still uses the file in /dev/shm, so that it belongs to another job."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):
                if f"/dev/shm/{name}" in (folder / "maps").read_text():
                    return True
    return not (Path("/dev/shm") / name).exists()  # it disappeared meanwhile


def running_with(secret: str) -> list[int]:
    """The processes with the job's secret in their environment."""
    processes = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):
                if f"PEERWAY_SECRET={secret}".encode() in (folder / "environ").read_bytes():
                    processes.append(int(folder.name))
    return processes
