"""Chooses where rank 0 of a job on several hosts will listen, and holds that port for it.

The other ranks are told the port before rank 0 listens there, so no other process may take it until then. A
socket on rank 0's host holds it as long as the job runs, because each team of the job listens there. Only
sockets of the same user that ask to share the port (SO_REUSEPORT) can be bound to it, as rank 0's is. The
socket that holds the port never listens, so all connections are rank 0's. If rank 0 is on another host, its
agent runs `python -m peerway.launch.rendezvous` there, which holds the port until its standard input ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shlex
import socket
import subprocess
import tempfile
import time
from typing import IO, TYPE_CHECKING

from peerway.launch import wire
from peerway.launch.addresses import own_addresses
from peerway.launch.stand_in import agent_command, agent_environment, die_with

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ANSWER_S = 60  # how long a host may take to report its addresses
LAST_WORDS = 2.0  # seconds in which the agent may end


class NoRendezvous(Exception):
    """Rank 0's host cannot be reached; the message says why."""


@contextlib.contextmanager
def held_here() -> Iterator[str]:
    """The addresses at which rank 0 will listen on this host. Its port is held while the block runs."""
    with _held_port() as holder:
        yield _text(own_addresses(), holder.getsockname()[1])


@contextlib.contextmanager
def held_at(host: str, agent_words: Sequence[str]) -> Iterator[str]:
    """The same on another host, reached by an agent. Raises NoRendezvous."""
    words = agent_command(host, agent_words, "peerway.launch.rendezvous")
    with tempfile.TemporaryFile() as errors:
        try:
            agent = subprocess.Popen(
                words,
                env=agent_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,  # the launcher's signals are for this process, not for the agent
                preexec_fn=die_with(os.getpid()),  # noqa: PLW1509
            )
        except OSError as error:
            why = f"{words[0]} cannot be run: {error.strerror or error}"
            raise NoRendezvous(f"host {host} cannot be reached: {why}") from error
        with agent:
            try:
                yield _answer(host, words, agent, errors)
            finally:
                _end(agent)


def _answer(host: str, words: list[str], agent: subprocess.Popen[bytes], errors: IO[bytes]) -> str:
    assert agent.stdout is not None
    text = b""
    until = time.monotonic() + ANSWER_S
    while True:
        if not select.select([agent.stdout], [], [], max(0.0, until - time.monotonic()))[0]:
            why = f"{shlex.join(words)} has not answered for {ANSWER_S} s"
            raise NoRendezvous(f"host {host} cannot be reached: {why}")
        chunk = os.read(agent.stdout.fileno(), wire.CHUNK)
        text += chunk
        for line in text.splitlines(keepends=True):  # the host's shell may have said something before
            with contextlib.suppress(ValueError, TypeError):
                return _text(**json.loads(line if line.endswith(b"\n") else b""))
        if not chunk:
            break
    _end(agent)
    status = agent.wait()
    errors.seek(0)
    said = errors.read().strip() or text.strip() or b"it said nothing"
    last = "\n  ".join(said.decode(errors="replace").splitlines()[-4:])
    raise NoRendezvous(
        f"no rank can be started on host {host}: {shlex.join(words)} ended with status {status}:\n  {last}"
    )


def _end(agent: subprocess.Popen[bytes]) -> None:
    """Let it end in good order: Slurm, for one, keeps the exit code of each step."""
    assert agent.stdin is not None
    agent.stdin.close()
    try:
        agent.wait(LAST_WORDS)
    except subprocess.TimeoutExpired:
        agent.kill()


def _text(addresses: list[str], port: int) -> str:
    """The addresses as PEERWAY_RENDEZVOUS has them."""
    return ",".join(
        f"tcp:[{address}]:{port}" if ":" in address else f"tcp:{address}:{port}" for address in addresses
    )


def _held_port() -> socket.socket:
    """A socket that holds a free port at all addresses of this host."""
    with contextlib.suppress(OSError):  # this host has no IPv6
        return _bound(socket.AF_INET6)
    return _bound(socket.AF_INET)


def _bound(family: socket.AddressFamily) -> socket.socket:
    holder = socket.socket(family, socket.SOCK_STREAM)
    try:
        if family == socket.AF_INET6:
            holder.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)  # IPv4 as well
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holder.bind(("", 0))
    except OSError:
        holder.close()
        raise
    return holder


def main() -> None:
    """Hold a port of this host, say which, and wait until the launcher needs it no more."""
    with _held_port() as holder:
        result = {"addresses": own_addresses(), "port": holder.getsockname()[1]}
        wire.write_all(1, json.dumps(result).encode() + b"\n")
        while os.read(0, wire.CHUNK):
            pass


if __name__ == "__main__":
    main()
