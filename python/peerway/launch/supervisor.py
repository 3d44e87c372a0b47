"""Runs a job: starts its ranks, passes signals to them, and leaves nothing of the job running."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from peerway.launch import ranks
from peerway.launch.guardian import Guardian
from peerway.launch.processes import descendants, reap_orphans
from peerway.launch.ranks import Streams
from peerway.launch.streams import Input, Output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from peerway.launch.places import Place
    from peerway.launch.ranks import Rank

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
LAST_WORDS = 2.0  # seconds between SIGTERM and SIGKILL


@dataclass(frozen=True)
class Job:
    """A program to be run as several ranks, `places[r]` being where rank r runs."""

    program: Sequence[str]
    places: Sequence[Place]
    prefix: bool = False
    grace: float = 5.0  # seconds that the others have when a rank has died


def run(job: Job) -> int:
    """Return the exit code of the first rank that failed (128 and the number for a signal), or 0.

    Raises OSError when the program cannot be run.
    """
    ranks.adopt_orphans()
    guardian = Guardian()
    supervisor = Supervisor(job, guardian)
    try:
        with supervisor.signals():
            supervisor.start()
            supervisor.follow()
            return supervisor.code
    finally:
        supervisor.clear()
        guardian.dismiss()


class Supervisor:
    """The state of one job. One thread, one loop, one selector whose data are the functions to call."""

    def __init__(self, job: Job, guardian: Guardian) -> None:
        self._job, self._guardian = job, guardian
        self._selector = selectors.DefaultSelector()
        self._ranks: list[Rank] = []
        self._outputs = 0
        self._input: Input | None = None
        self._passed: set[int] = set()
        self._next: tuple[float, int] | None = None  # when which signal ends what still runs
        self.code = 0

    # ---- signals ----

    @contextlib.contextmanager
    def signals(self) -> Iterator[None]:
        """Make signals arrive as bytes in a socket of the loop: none is lost and none interrupts."""
        reading, writing = socket.socketpair()
        for end in (reading, writing):
            end.setblocking(False)
        # What the launcher was told to ignore (nohup), its ranks ignore as well.
        caught = [number for number in PASSED_ON if signal.getsignal(number) != signal.SIG_IGN]
        before = {number: signal.signal(number, lambda *_: None) for number in (*caught, signal.SIGCHLD)}
        waking = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
        self._selector.register(reading, selectors.EVENT_READ, lambda: self._signalled(reading.recv(4096)))
        try:
            yield
        finally:
            signal.set_wakeup_fd(waking)
            for number, handler in before.items():
                signal.signal(number, handler)
            self._selector.unregister(reading)
            reading.close()
            writing.close()

    def _signalled(self, numbers: bytes) -> None:
        for number in numbers:
            if number == signal.SIGCHLD:
                self._look()
                continue
            if number in (signal.SIGINT, signal.SIGTERM) and number in self._passed:
                self._next = (time.monotonic(), signal.SIGTERM)  # asked twice: the grace is over
                continue
            self._passed.add(number)
            self._send(number)

    def _send(self, number: int) -> None:
        for rank in self._running():
            rank.send(number)

    # ---- start ----

    def start(self) -> None:
        """Start all ranks."""
        shared = ranks.job_environment(os.environ, len(self._job.places))
        for number, place in enumerate(self._job.places):
            terminal = number == 0 and os.isatty(0)
            stdin = subprocess.DEVNULL if number else subprocess.PIPE if terminal else 0
            output = subprocess.PIPE if self._job.prefix else None
            streams = Streams(stdin, output)
            rank = ranks.start(number, self._job.program, shared, place, streams, self._guardian.watch)
            self._ranks.append(rank)
            for stream, target in ((rank.process.stdout, 1), (rank.process.stderr, 2)):
                if stream is not None:
                    self._forward(stream, Output(stream.fileno(), target, number))
            if rank.process.stdin is not None:
                signal.signal(
                    signal.SIGTTIN, signal.SIG_IGN
                )  # in the background, reading is an error, not a stop
                self._input = Input(self._selector, 0, os.dup(rank.process.stdin.fileno()))
                rank.process.stdin.close()

    def _forward(self, stream: IO[bytes], output: Output) -> None:
        def pump() -> None:
            if not output.pump():
                self._selector.unregister(output.source)
                self._outputs -= 1
                stream.close()

        self._outputs += 1
        self._selector.register(output.source, selectors.EVENT_READ, pump)

    # ---- follow ----

    def follow(self) -> None:
        """Serve until every rank has ended and all that they wrote is passed on."""
        self._look()
        while self._running():
            self._turn()
        if self._input is not None:
            self._input.close()
        self.clear()  # what the ranks left running holds their streams open
        until = time.monotonic() + LAST_WORDS
        while self._outputs and time.monotonic() < until:
            self._turn(until)

    def _turn(self, until: float | None = None) -> None:
        wake_at = min((moment for moment in (until, self._next and self._next[0]) if moment), default=None)
        timeout = None if wake_at is None else max(0.0, wake_at - time.monotonic())
        for key, _ in self._selector.select(timeout):
            call: Callable[[], None] = key.data
            call()
        if self._next is not None and time.monotonic() >= self._next[0]:
            number = self._next[1]
            self._next = None if number == signal.SIGKILL else (time.monotonic() + LAST_WORDS, signal.SIGKILL)
            self._send(number)

    def _running(self) -> list[Rank]:
        return [rank for rank in self._ranks if rank.ending is None]

    def _look(self) -> None:
        for rank in self._running():
            if rank.look():
                self._ended(rank)
        reap_orphans({rank.pid for rank in self._ranks} | {self._guardian.process})

    def _ended(self, rank: Rank) -> None:
        if rank.number == 0 and self._input is not None:
            self._input.close()
        if rank.code == 0 or self.code:
            return
        self.code = rank.code
        others = len(self._running())
        if others and self._next is None:
            self._next = (time.monotonic() + self._job.grace, signal.SIGTERM)
        asked = rank.ending is not None and rank.ending[1] and rank.ending[0] in self._passed
        if not asked and (others or (rank.ending and rank.ending[1])):
            what = f"; the {others} still running will be ended in {self._job.grace:g} s" if others else ""
            say(rank.describe() + what)

    # ---- end ----

    def clear(self) -> None:
        """End all that is left of the job, first kindly, then not; reap the ranks."""
        for number, patience in ((signal.SIGTERM, LAST_WORDS), (signal.SIGKILL, LAST_WORDS)):
            until = time.monotonic() + patience
            left = descendants(os.getpid(), {self._guardian.process})
            for process in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(process, number)
            while left and time.monotonic() < until:
                time.sleep(0.01)
                left = descendants(os.getpid(), {self._guardian.process})
        for rank in self._ranks:
            rank.process.wait()


def say(text: str) -> None:
    """Tell the user on standard error."""
    with contextlib.suppress(OSError):
        os.write(2, f"peerway: {text}\n".encode())
