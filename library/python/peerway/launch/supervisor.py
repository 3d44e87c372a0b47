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
from typing import TYPE_CHECKING

from peerway.launch import ranks
from peerway.launch.first_failure import ENDING, End, asked_for, first_failure
from peerway.launch.guardian import Guardian
from peerway.launch.input import Input
from peerway.launch.output import Output, names
from peerway.launch.processes import descendants, reap_orphans
from peerway.launch.tracebacks import lost_ranks
from peerway_common.ignored_signals import told_to_ignore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from peerway.launch.places import Place
    from peerway.launch.ranks import Rank

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
LAST_WORDS = 2.0  # seconds between SIGTERM and SIGKILL
AT_ONCE = 0.5  # seconds in which ranks that learn of a loss end; at most half of the grace
QUOTED = 12  # how many lines of the rank that failed first are shown


@dataclass(frozen=True)
class Job:
    """A program to be run as several ranks; `places[r]` is where rank r runs."""

    program: Sequence[str]
    places: Sequence[Place]
    prefix: bool = False
    grace: float = 5.0  # seconds for the other ranks to end when one has died
    tracebacks: bool = False  # also show tracebacks that an interrupt caused
    release: Callable[[], None] = lambda: None  # called when all ranks have ended


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
            return supervisor.conclude()
    finally:
        supervisor.clear()
        guardian.dismiss()


class Supervisor:
    """The state of one job. One thread, one loop, one selector whose data are the functions to call."""

    def __init__(self, job: Job, guardian: Guardian) -> None:
        self._job, self._guardian = job, guardian
        self._selector = selectors.DefaultSelector()
        self._ranks: list[Rank] = []
        self._output = Output(self._selector, job.prefix, job.tracebacks)
        self._unwatched: list[Rank] = []
        self._input: Input | None = None
        self._passed: list[int] = []
        self._ended_by_us: set[int] = set()
        self._next: tuple[float, int] | None = None  # when the remaining ranks get the next signal, and which
        self._impatient = False  # the user asked twice for the end
        self._ends: list[tuple[Rank, End]] = []  # in the order of time
        self._announced: int | None = None
        self._announces: float | None = None  # when the first failure is announced, unless all have ended
        self._at_once = min(AT_ONCE, job.grace / 2)

    # ---- signals ----

    @contextlib.contextmanager
    def signals(self) -> Iterator[None]:
        """Make signals arrive as bytes in a socket of the loop, so that none is lost and none interrupts."""
        reading, writing = socket.socketpair()
        for end in (reading, writing):
            end.setblocking(False)
        caught = [number for number in PASSED_ON if not told_to_ignore(number)]
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
                self._impatient = True
                continue
            self._passed.append(number)
            self._output.interrupted |= number in ENDING
            self._send(number)

    def _send(self, number: int) -> None:
        for rank in self._running():
            rank.send(number)

    # ---- start ----

    def start(self) -> None:
        """Start all ranks."""
        shared = ranks.job_environment(os.environ, len(self._job.places))
        ranks.allow_descriptors(4 * len(self._job.places) + 64)
        for number, place in enumerate(self._job.places):
            terminal = number == 0 and os.isatty(0)
            stdin = subprocess.DEVNULL if number else subprocess.PIPE if terminal else 0
            streams = self._output.connect(number)
            try:
                rank = ranks.start(
                    number, self._job.program, shared, place, (stdin, streams), self._guardian.watch
                )
            finally:
                for descriptor in set(streams.values()):
                    os.close(descriptor)
            self._ranks.append(rank)
            self._watch(rank)
            if rank.process.stdin is not None:
                signal.signal(
                    signal.SIGTTIN, signal.SIG_IGN
                )  # for a rank in the background, reading must be an error instead of stopping it
                self._input = Input(self._selector, 0, os.dup(rank.process.stdin.fileno()))
                rank.process.stdin.close()

    def _watch(self, rank: Rank) -> None:
        """Learn of the ends of ranks in the order in which they end, which SIGCHLD does not show."""
        try:
            watched = os.pidfd_open(rank.pid)
        except OSError:  # Linux before 5.3: ranks that end between two looks are noted by their numbers
            self._unwatched.append(rank)
            return

        def ended() -> None:
            self._selector.unregister(watched)
            os.close(watched)
            self._note_end(rank)

        self._selector.register(watched, selectors.EVENT_READ, ended)

    # ---- follow ----

    def follow(self) -> None:
        """Serve until every rank has ended and all its output is passed on."""
        self._look()
        while self._running():
            self._turn()
        if self._input is not None:
            self._input.close()
        self._job.release()
        self.clear()  # processes that the ranks left running hold their streams open
        self._impatient = False
        until = time.monotonic() + LAST_WORDS
        while self._output.unfinished and not self._impatient and time.monotonic() < until:
            self._turn(until)
            if self._output.pending:  # the reader of the launcher's own streams may take its time
                until = time.monotonic() + LAST_WORDS
        self._output.finish()

    def _turn(self, until: float | None = None) -> None:
        moments = (until, self._next and self._next[0], self._announces, self._output.due())
        wake_at = min((moment for moment in moments if moment), default=None)
        timeout = None if wake_at is None else max(0.0, wake_at - time.monotonic())
        for key, _ in self._selector.select(timeout):
            # An earlier call of this turn may have removed it.
            if self._selector.get_map().get(key.fileobj) is key:
                call: Callable[[], None] = key.data
                call()
        self._announce()
        if self._next is not None and time.monotonic() >= self._next[0]:
            number = self._next[1]
            self._next = None if number == signal.SIGKILL else (time.monotonic() + LAST_WORDS, signal.SIGKILL)
            self._ended_by_us |= {rank.number for rank in self._running()}
            self._send(number)
        self._output.advance(time.monotonic())

    def _running(self) -> list[Rank]:
        return [rank for rank in self._ranks if rank.ending is None]

    def _look(self) -> None:
        for rank in self._unwatched:
            self._note_end(rank)
        reap_orphans({rank.pid for rank in self._ranks} | {self._guardian.process})

    def _note_end(self, rank: Rank) -> None:
        if rank.ending is not None or not rank.look():
            return
        assert rank.ending is not None
        if rank.number == 0 and self._input is not None:
            self._input.close()
        self._output.drain(rank.number)
        last = self._output.last_lines(rank.number, QUOTED)
        passed_signal = next(
            (number for number in self._passed if number in ENDING or rank.ending == (number, True)), 0
        )
        ended = rank.number in self._ended_by_us
        self._ends.append((rank, End(rank.number, *rank.ending, ended, passed_signal, lost_ranks(last))))
        if rank.code:
            now = time.monotonic()
            self._announces = self._announces or now + self._at_once
            self._next = self._next or (now + self._job.grace, signal.SIGTERM)

    def _announce(self) -> None:
        """Say which rank failed if the others may still run for long. The summary comes when they
        have ended.
        """
        if self._announces is None or time.monotonic() < self._announces:
            return
        self._announces = None
        running = {rank.number for rank in self._running()}
        first = first_failure([end for _, end in self._ends])
        if first is None or self._announced is not None or not running or first.lost & running:
            return
        self._announced = first.rank
        self._output.show_all_of(first.rank)
        how = self._ranks[first.rank].describe()
        seconds = max(0.0, self._next[0] - time.monotonic()) if self._next else 0.0
        rest = f"{names(running)}, still running, will be ended in {seconds:.1f} s"
        self._output.say(f"{how}; {rest}")

    # ---- end ----

    def conclude(self) -> int:
        """Say how the job ended; return its exit code: that of the first rank that failed, or 0."""
        ends = [end for _, end in self._ends]
        first, wanted = first_failure(ends), asked_for(ends)
        if first is not None:
            self._summarise(first, [end for end in ends if end.code and end is not first])
        elif wanted in ENDING:
            omitted = self._output.left_out
            whose = f"; {names(omitted)} left tracebacks, which --tracebacks shows" if omitted else ""
            forced = {end.rank for end in ends if end.ended}
            killed = f"; {names(forced)} did not end in time and had to be ended" if forced else ""
            self._output.say(f"interrupted by {ranks.signal_name(wanted)}{killed}{whose}")
        errors = self._output.errors()
        for error in errors:
            self._output.say(error)
        while self._output.pending and not self._impatient:
            self._turn()
        return first.code if first else 128 + wanted if wanted else 1 if errors else 0

    def _summarise(self, first: End, others: list[End]) -> None:
        if len(self._ranks) == 1 and not first.by_signal:
            return  # as in a shell, the program itself says why it fails
        alone = [end.rank for end in others if end.own and not end.lost]
        if self._announced == first.rank and self._output.said_last:
            if alone:
                self._output.say("; ".join(f"{self._ranks[rank].describe()} after that" for rank in alone))
            return
        text = self._ranks[first.rank].describe()
        caused = [end.rank for end in others if end.rank not in alone]
        if caused:
            text += f"; {names(caused)} ended because of it"
        for rank in alone:
            text += f"; {self._ranks[rank].describe()} after that"
        quoted = self._output.last_lines(first.rank, QUOTED) if len(self._ranks) > 1 else []
        above = self._output.stands_above(first.rank)
        if quoted:
            text += f"; the last lines of rank {first.rank}{' are above' if above else ':'}"
        self._output.say(text)
        for line in [] if above else quoted:
            self._output.quote(first.rank, line)

    def clear(self) -> None:
        """End everything that is left of the job, first by SIGTERM, then by SIGKILL; reap the ranks."""
        for number, grace in ((signal.SIGTERM, LAST_WORDS), (signal.SIGKILL, LAST_WORDS)):
            until = time.monotonic() + grace
            children = descendants(os.getpid(), {self._guardian.process})
            for process in children:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(process, number)
            while children and time.monotonic() < until:
                time.sleep(0.01)
                children = descendants(os.getpid(), {self._guardian.process})
        for rank in self._ranks:
            rank.process.wait()
