"""Keeps one rank on a host other than the launcher's: `python -m peerway.launch.keeper`, which ssh, srun or
another agent starts there.

It runs the rank as the launcher says (wire.py). When its standard input ends, for whatever reason, it ends
the rank with all processes that the rank started.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

from peerway.launch import ranks, wire
from peerway.launch.guardian import Guardian
from peerway.launch.places import Place, assign, read_host
from peerway.launch.processes import descendants

LAST_WORDS = 2.0  # seconds between SIGTERM and SIGKILL


class Keeper:
    """One thread that handles the commands, the rank's input, and the rank."""

    def __init__(self, job: dict[str, Any]) -> None:
        self._job = job
        self._commands = wire.Commands()
        self._input = b""  # input that the rank has not taken yet
        self._ends = False  # no more input will come
        self._heard = time.monotonic()
        self._guardian = Guardian()
        self._waking, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        os.set_blocking(writing, False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        ranks.adopt_orphans()

    def run(self) -> None:
        """Run the rank from its start to its end."""
        # Said before the start: the rank may already write, and this process be ended, before it returns.
        self._say("here")
        try:
            process = self._start()
        except OSError as error:
            self._say("failed", why=_why(self._job, error))
            self._guardian.dismiss()
            return
        rank = ranks.Rank(0, process)
        try:
            while not rank.look() and self._turn(rank):
                pass
        finally:
            self._clear()
            self._guardian.dismiss()
        rank.look()
        if rank.ending is not None:
            self._say("ended", value=rank.ending[0], by_signal=rank.ending[1])

    def _start(self) -> subprocess.Popen[bytes]:
        job = self._job
        os.chdir(job["folder"])
        place = _place(job)
        environment = {**os.environ, **job["environment"]}
        process = subprocess.Popen(
            job["program"],
            env=environment,
            stdin=subprocess.PIPE,
            process_group=0,
            preexec_fn=ranks._prepare(os.getpid(), place, self._guardian.watch),  # noqa: PLW1509
        )
        assert process.stdin is not None
        os.set_blocking(process.stdin.fileno(), False)
        return process

    def _turn(self, rank: ranks.Rank) -> bool:
        """Wait for the next event. Returns False if the rank must end."""
        poll = select.poll()
        poll.register(0, select.POLLIN)
        poll.register(self._waking, select.POLLIN)
        taker = rank.process.stdin
        if self._input and taker is not None:
            poll.register(taker.fileno(), select.POLLOUT)
        ready = dict(poll.poll(wire.ALIVE_S * 1e3))
        if self._waking in ready:
            woken = os.read(self._waking, 4096)
            if any(number != signal.SIGCHLD for number in woken):
                return False  # the process that started this one wants it to end
        if taker is not None and taker.fileno() in ready:
            self._pass_input(rank)
        if 0 in ready:
            chunk = os.read(0, wire.CHUNK)
            if not chunk:
                return False  # the launcher, or the connection to it, has ended
            self._heard = time.monotonic()
            for command in self._commands.feed(chunk):
                self._obey(rank, *command)
        return time.monotonic() - self._heard < wire.SILENCE_S

    def _obey(self, rank: ranks.Rank, name: str, argument: int, data: bytes) -> None:
        if name == "signal" and not rank.look():
            with contextlib.suppress(ProcessLookupError):
                rank.send(argument)
        elif name == "input":
            self._input += data
        elif name == "end":
            self._ends = True
            self._pass_input(rank)

    def _pass_input(self, rank: ranks.Rank) -> None:
        taker = rank.process.stdin
        if taker is None or taker.closed:
            return
        try:
            if self._input:
                self._input = self._input[os.write(taker.fileno(), self._input) :]
                if not self._input:
                    self._say("more")
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._input, self._ends = b"", True
        if self._ends and not self._input:
            rank.process.stdin = None
            taker.close()

    def _say(self, kind: str, **values: Any) -> None:
        with contextlib.suppress(OSError):
            wire.write_all(2, wire.note(self._job["token"], kind, **values))

    def _clear(self) -> None:
        """End the rank and everything that it left running, first by SIGTERM, then by SIGKILL."""
        for number, grace in ((signal.SIGTERM, LAST_WORDS), (signal.SIGKILL, LAST_WORDS)):
            until = time.monotonic() + grace
            while children := descendants(os.getpid(), {self._guardian.process}):
                for process in children:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(process, number)
                if time.monotonic() > until:
                    break
                time.sleep(0.02)


def _place(job: dict[str, Any]) -> Place:
    host = read_host(visible=job["environment"].get("CUDA_VISIBLE_DEVICES"))
    place = assign(job["local_ranks"], host)[job["local_rank"]]
    return place if job["bind"] == "auto" else Place()


def _why(job: dict[str, Any], error: OSError) -> str:
    if not Path(job["folder"]).is_dir():
        return f"there is no folder {job['folder']} there; start the job in one that all hosts have"
    return f"{job['program'][0]} cannot be run there: {error.strerror or error}"


def main() -> NoReturn:
    """Serve one launcher."""
    line = b""
    while not line.endswith(b"\n"):  # read no byte more, because commands follow
        if not (byte := os.read(0, 1)) or len(line) > wire.MOST_JSON_BYTES:
            sys.exit("peerway.launch.keeper is started by `peerway run --hosts`")
        line += byte
    Keeper(json.loads(line)).run()
    os._exit(0)


if __name__ == "__main__":
    main()
