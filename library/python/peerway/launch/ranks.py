"""One rank: its environment, how it is started, and how it ended."""

from __future__ import annotations

import ctypes
import os
import resource
import secrets
import signal
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from peerway.launch.places import Place

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LIMITS = resource.getrlimit(resource.RLIMIT_NOFILE)
_libc = ctypes.CDLL(None, use_errno=True)

Ending = tuple[int, bool]  # an exit status, or (True) the number of a signal


@dataclass
class Rank:
    """A rank that was started. Its process is reaped only at the very end, so that no other process gets its
    id.
    """

    number: int
    process: subprocess.Popen[bytes]
    host: str = ""  # the host's name as the user gave it, if there are several hosts
    ending: Ending | None = None

    @property
    def pid(self) -> int:
        """The process, and its process group."""
        return self.process.pid

    def look(self) -> bool:
        """Whether the process has ended; if so, `ending` says how."""
        if self.ending is None:
            result = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if result is not None:
                self.ending = (result.si_status, result.si_code != os.CLD_EXITED)
        return self.ending is not None

    def send(self, number: int) -> None:
        """Send a signal to the rank and to what it started in its process group."""
        os.killpg(self.pid, number)

    @property
    def code(self) -> int:
        """The exit code as a shell gives it: 128 plus the signal's number if a signal ended it."""
        assert self.ending is not None
        value, by_signal = self.ending
        return 128 + value if by_signal else value

    def describe(self) -> str:
        """Say how it ended, for messages."""
        assert self.ending is not None
        value, by_signal = self.ending
        how = (
            f"was killed by signal {value} ({signal_name(value)})"
            if by_signal
            else f"exited with status {value}"
        )
        where = f" on {self.host}" if self.host else ""
        return f"rank {self.number} (process {self.pid}{where}) {how}"


def signal_name(number: int) -> str:
    """Name the signal: SIGKILL."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return "real-time"


def adopt_orphans() -> None:
    """Make processes that a rank leaves behind children of this one, which can then end them."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def allow_descriptors(count: int) -> None:
    """Raise the limit on open descriptors of this process, if allowed; the ranks keep the old limit."""
    soft, hard = _LIMITS
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, hard) if hard >= 0 else count, hard))


def job_environment(base: Mapping[str, str], ranks: int) -> dict[str, str]:
    """The environment that all ranks share, with the address of rank 0 and the job's secret."""
    return {
        **base,
        "PEERWAY_SIZE": str(ranks),
        "PEERWAY_LOCAL_SIZE": str(ranks),
        "PEERWAY_RENDEZVOUS": f"unix:@peerway-{secrets.token_hex(8)}",
        "PEERWAY_SECRET": secrets.token_hex(16),
    }


def start(
    number: int,
    program: Sequence[str],
    shared: Mapping[str, str],
    place: Place,
    streams: tuple[int, Mapping[int, int]],
    watch: Callable[[int], None],
) -> Rank:
    """Start the rank in a process group of its own; `watch` is called with the group before the rank's
    program runs.

    `streams` is the rank's input as subprocess takes it, and its descriptors 1 and 2. A descriptor that is
    not given is the launcher's. Raises OSError if the program cannot be run.
    """
    environment = {**shared, "PEERWAY_RANK": str(number), "PEERWAY_LOCAL_RANK": str(number)}
    environment |= dict(place.settings)
    process = subprocess.Popen(
        [*place.through, *program],
        env=environment,
        stdin=streams[0],
        stdout=streams[1].get(1),
        stderr=streams[1].get(2),
        process_group=0,
        preexec_fn=_prepare(os.getpid(), place, watch),  # noqa: PLW1509  (the launcher has one thread)
    )
    return Rank(number, process, place.host)


def _prepare(launcher: int, place: Place, watch: Callable[[int], None]) -> Callable[[], None]:
    def prepare() -> None:
        # The launcher may be killed at any moment from here on.
        watch(os.getpid())
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != launcher:  # the launcher died before the kernel could note it as the parent
            os._exit(1)
        resource.setrlimit(resource.RLIMIT_NOFILE, _LIMITS)
        if place.cores:
            os.sched_setaffinity(0, place.cores)

    return prepare
