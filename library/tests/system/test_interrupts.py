"""Ctrl-C ends every wait of a Python program, with KeyboardInterrupt and at once; what was waited for stays
usable, and the others of an interrupted collective are told."""

from __future__ import annotations

import select
import signal
import time
from pathlib import Path

from ranks import Ranks

PATIENCE = 300.0  # seconds: waits last 600 s; one that ends only between its slices ends after 0.02 s


def interrupt(ranks: Ranks) -> str:
    """Send SIGINT into the wait that rank 0 names; it must end. Returns the wait's name."""
    name = ranks.read(0)
    if not isinstance(name, str):
        return ""
    time.sleep(0.05)  # into the wait
    ranks.processes[0].send_signal(signal.SIGINT)
    stdout = ranks.processes[0].stdout
    assert stdout is not None
    assert select.select([stdout], [], [], PATIENCE)[0], f"{name}: SIGINT does not end it"
    answer = ranks.read(0)
    assert answer["raised"] == "KeyboardInterrupt", (name, answer)
    assert answer["seconds"] < PATIENCE, (name, answer)
    return name


def test_sigint_ends_every_wait() -> None:
    with Ranks("interrupts.py", 2) as ranks:
        names = []
        while (name := interrupt(ranks)) != "another thread waits on":
            names.append(name)
        assert len(names) == 9, names
        assert ranks.read(0) is True  # the other thread still waits
        assert interrupt(ranks) == "barrier"
        again = ranks.read(0)
        assert again["raised"] == "Interrupted"
        ranks.send_line(1)
        other = ranks.read(1)
        assert other["raised"] == "Interrupted"
        assert "rank 0 was interrupted in a collective" in other["message"]
        ranks.send_line(0)
        ranks.end()


def wait_for_stop(pid: int) -> None:
    """Wait until all threads of the process are stopped."""
    deadline = time.monotonic() + PATIENCE
    while True:
        states = [
            stat.read_text().rpartition(")")[2].split()[0]
            for stat in Path(f"/proc/{pid}/task").glob("*/stat")
        ]
        if set(states) <= {"T"}:
            return
        assert time.monotonic() < deadline, states
        time.sleep(0.005)


LINGER = 2.0  # seconds for which rank 0 waits for the others' goodbyes


def test_sigint_ends_every_wait_for_a_rank_that_is_stopped() -> None:
    names: list[str] = []
    with Ranks("interrupts_absent.py", 2, PEERWAY_PATHS="staged", PEERWAY_TIMEOUT="600") as ranks:
        first, second = ranks.processes
        while (line := ranks.read(1)) != "end":
            assert line == "stop me"
            second.send_signal(signal.SIGSTOP)
            wait_for_stop(second.pid)
            ranks.send_line(0)
            name = ranks.read(0)
            names.append(name)
            assert first.stdout is not None
            if name == "close of a context":  # which waits for no rank
                assert ranks.read(0)["raised"] == "nothing"
            else:
                time.sleep(0.1)  # into the wait
                began = time.monotonic()
                first.send_signal(signal.SIGINT)
                assert select.select([first.stdout], [], [], PATIENCE)[0], f"{name}: SIGINT does not end it"
                answer = ranks.read(0)
                assert answer["raised"] == "KeyboardInterrupt", (name, answer)
                assert name != "close of a team" or answer["at"] - began < LINGER / 3
                print(f"{name}: {1000 * (answer['at'] - began):.1f} ms")
            second.send_signal(signal.SIGCONT)
            for rank in (1, 0):
                ranks.send_line(rank)
        assert ranks.read(0) == "end"
        ranks.end()
    assert len(names) == 10, names
