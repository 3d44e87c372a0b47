"""Ctrl-C ends every wait of a Python program, with KeyboardInterrupt and at once; what was waited for stays
usable, and the others of an interrupted collective are told."""

from __future__ import annotations

import select
import signal
import time

from ranks import Ranks

PATIENCE = 30.0  # s: the waits themselves last 600 s, and one that is ended by its slices ends after 0.02 s


def interrupt(ranks: Ranks) -> str:
    """Send SIGINT into the wait that rank 0 says it is in; demand that it ends it. Gives the wait's name."""
    name = ranks.read(0)
    if not isinstance(name, str):
        return ""
    time.sleep(0.05)  # into the wait
    ranks.processes[0].send_signal(signal.SIGINT)
    stdout = ranks.processes[0].stdout
    assert stdout is not None
    assert select.select([stdout], [], [], PATIENCE)[0], f"{name}: SIGINT does not end it"
    found = ranks.read(0)
    assert found["raised"] == "KeyboardInterrupt", (name, found)
    assert found["seconds"] < PATIENCE, (name, found)
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
        ranks.tell(1)
        other = ranks.read(1)
        assert other["raised"] == "Interrupted"
        assert "rank 0 was interrupted in a collective" in other["message"]
        ranks.tell(0)
        ranks.end()
