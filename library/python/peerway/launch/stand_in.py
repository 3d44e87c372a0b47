"""Stands for a rank on another host: a process that the launcher treats as the rank itself.

It passes the launcher's signals to the rank, prints the rank's output, and ends as the rank does. It reaches
the host by an agent: a command such as ssh, which is given a host and a command line. The agent is the only
connection. So if the stand-in or the agent ends, the rank ends as well (keeper.py).
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import secrets
import select
import shlex
import signal
import socket
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from peerway.launch import wire
from peerway_common.ignored_signals import told_to_ignore

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
TRIES = 5  # the number of tries if an agent cannot connect: sshd refuses some of many connections at once
REFUSED = 255  # ssh's exit status if it could not connect
LAST_LINES = 4
KEEPER = "peerway.launch.keeper"
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)

# Variables about a host or a session, which are not true on another host.
OF_THIS_HOST = ("HOSTNAME", "HOST", "PWD", "OLDPWD", "SHLVL", "_", "DISPLAY", "XAUTHORITY", "TMPDIR", "MAIL")
OF_THIS_SESSION = (
    "SSH_",
    "XDG_RUNTIME_",
    "XDG_SESSION_",
    "DBUS_",
    "SLURM",
    "PMI",
    "OMPI_",
    "LS_COLORS",
    "KUBERNETES_",
)


@dataclass(frozen=True)
class Far:
    """A host, how it is reached, and which of its ranks this stand-in is for."""

    host: str
    agent: tuple[str, ...]
    local_rank: int
    local_ranks: int
    bind: str


def agent_command(host: str, agent: Sequence[str], module: str) -> list[str]:
    """The command line with which the agent runs a module on the host. All users can read it, so it has
    nothing secret of the job.

    The agent joins the words behind the host into one line for a shell there, as ssh does. Only srun executes
    them as they are.
    """
    words = [sys.executable, "-m", module]
    is_srun = Path(agent[0]).name == "srun"
    return [*agent, host, *(words if is_srun else map(shlex.quote, words))]


def agent_environment() -> dict[str, str]:
    """The environment of the agent, without the secret, which the agent might show or pass on."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PEERWAY_")}


def carried(environment: dict[str, str]) -> dict[str, str]:
    """The variables that the rank gets from here, in addition to those of its host."""
    return {
        name: value
        for name, value in environment.items()
        if name not in OF_THIS_HOST and not name.startswith(OF_THIS_SESSION)
    }


class Lost(Exception):
    """The rank could not be started, or the connection to it ended."""

    def __init__(self, text: str, again: bool = False) -> None:
        super().__init__(text)
        self.again = again


class StandIn:
    """One connection. A single thread waits for signals, for input, and for notes from the keeper."""

    def __init__(self, far: Far, program: list[str]) -> None:
        self._far = far
        self._token = secrets.token_hex(16)
        self._notes = wire.Notes(self._token)
        self._chatter = b""  # the agent's output before the keeper has started
        self._there = False
        self._ending: tuple[int, bool] | None = None
        self._feeding = not os.path.samestat(os.fstat(0), Path(os.devnull).stat())
        self._job = asdict(far) | {
            "token": self._token,
            "program": program,
            "folder": str(Path.cwd()),
            "environment": carried(dict(os.environ)),
        }

    def run(self, woken: socket.socket) -> tuple[int, bool]:
        """How the rank ended: its status, or (True) a signal. Raises Lost."""
        with subprocess.Popen(
            agent_command(self._far.host, self._far.agent, KEEPER),
            env=agent_environment(),
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # the launcher's signals are for this process, not for the agent
            preexec_fn=die_with(os.getpid()),  # noqa: PLW1509
        ) as agent:
            assert agent.stdin is not None
            assert agent.stderr is not None
            self._to = agent.stdin.fileno()
            self._tell(json.dumps(self._job).encode() + b"\n")
            if not self._feeding:
                self._tell(wire.command("end"))
            while self._turn(agent.stderr.fileno(), woken):
                pass
            with contextlib.suppress(OSError):
                agent.stdin.close()
            status = agent.wait()
        if self._ending is None:
            raise self._lost(status)
        return self._ending

    def _tell(self, text: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):  # the end of the agent is noticed on its standard error
            wire.write_all(self._to, text)

    def _turn(self, errors: int, woken: socket.socket) -> bool:
        poll = select.poll()
        for source in (errors, woken.fileno(), *((0,) if self._feeding and self._there else ())):
            poll.register(source, select.POLLIN)
        ready = dict(poll.poll(wire.ALIVE_S * 1e3))
        if not ready:
            self._tell(wire.command("alive"))
        if woken.fileno() in ready:
            for number in woken.recv(4096):
                if not self._there and number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                    _die_by(number)  # no keeper has started yet that could pass the signal on
                self._tell(wire.command("signal", number))
        if 0 in ready:
            self._feed()
        if errors not in ready:
            return True
        chunk = os.read(errors, 1 << 16)
        for piece in self._notes.feed(chunk) if chunk else [self._notes.finish()]:
            self._show(piece) if isinstance(piece, bytes) else self._take(piece)
        return bool(chunk)

    def _feed(self) -> None:
        """Pass on a chunk of the input, and wait until the rank has taken it."""
        try:
            chunk = os.read(0, wire.CHUNK)
        except OSError:  # this process is in the background of its terminal
            chunk = b""
        self._tell(wire.command("input", len(chunk), chunk) if chunk else wire.command("end"))
        self._feeding = False

    def _show(self, text: bytes) -> None:
        if self._there:
            with contextlib.suppress(OSError):
                wire.write_all(2, text)
        else:
            self._chatter += text

    def _take(self, note: dict[str, Any]) -> None:
        match note["kind"]:
            case "here":
                self._there = True
            case "more":
                self._feeding = True
            case "failed":
                raise Lost(f"host {self._far.host}: {note['why']}")
            case "ended":
                self._ending = (note["value"], note["by_signal"])

    def _lost(self, status: int) -> Lost:
        agent, host = self._far.agent[0], self._far.host
        if self._there:
            return Lost(
                f"the connection to host {host} has ended ({agent}, status {status}), and the rank with it"
            )
        lines = self._chatter.decode(errors="replace").strip().splitlines()[-LAST_LINES:]
        output = "\n  ".join(lines) or "it said nothing"
        text = f"no rank could be started on host {host}: {agent} ended with status {status}:\n  {output}"
        return Lost(text, again=status == REFUSED)


def die_with(parent: int) -> Callable[[], None]:
    """What a child does first, so that it ends when its parent does."""

    def prepare() -> None:
        # SIGTERM, because an agent may have to end something.
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return prepare


def _die_by(number: int) -> NoReturn:
    """End by the signal that ended the rank; any core file is on the rank's host."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.set_wakeup_fd(-1)
    with contextlib.suppress(OSError):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)


def _attempts(far: Far, program: list[str], woken: socket.socket) -> tuple[int, bool]:
    for attempt in range(1, TRIES + 1):
        try:
            return StandIn(far, program).run(woken)
        except Lost as lost:
            if not lost.again or attempt == TRIES:
                raise
            time.sleep(secrets.randbelow(100) / 200 * attempt)
    raise AssertionError


def main() -> NoReturn:
    """Stand in for the rank that the first argument (Far, as JSON) and the others, its program, describe."""
    values = json.loads(sys.argv[1])
    far = Far(**values | {"agent": tuple(values["agent"])})
    reading, writing = socket.socketpair()
    for end in (reading, writing):
        end.setblocking(False)
    for number in PASSED_ON:
        if not told_to_ignore(number):
            signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    try:
        value, by_signal = _attempts(far, sys.argv[2:], reading)
    except (Lost, OSError) as error:
        sys.stderr.write(f"peerway: {error}\n")
        sys.exit(REFUSED)
    if by_signal:
        _die_by(value)
    os._exit(value)


if __name__ == "__main__":
    main()
