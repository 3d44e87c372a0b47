"""A program that holds a virtual cluster cleans up whole, however many signals come meanwhile."""

from __future__ import annotations

import signal
import subprocess
import sys
from itertools import product
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import sys
from pathlib import Path
from peerway_measure.rehearse.cluster.ending import end_at_first_signal, wait_for_end
end_at_first_signal()
try:
    print("up", flush=True)
    wait_for_end()
except KeyboardInterrupt:
    print("stopped", flush=True)
    sys.stdin.readline()
finally:
    sys.stdin.readline()
    for each in Path(sys.argv[1]).iterdir():
        each.unlink()
"""
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.mark.parametrize(("first", "second"), list(product(ENDINGS, ENDINGS)))
def test_a_second_signal_does_not_end_the_cleaning_up(
    tmp_path: Path, first: signal.Signals, second: signal.Signals
) -> None:
    (tmp_path / "left").write_text("")
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(first)
        assert process.stdout.readline() == "stopped\n"
        for _ in range(2):  # while it says that it ends, and while it cleans up
            process.send_signal(second)
            process.stdin.write("\n")
            process.stdin.flush()
    assert process.returncode == 0
    assert list(tmp_path.iterdir()) == []


DROPPED = """
import os, signal
from peerway_measure.rehearse.cluster.ending import end_at_first_signal, wait_for_end
end_at_first_signal()
os.register_at_fork(before=lambda: os.kill(os.getpid(), signal.SIGTERM))
if os.fork() == 0:
    os._exit(0)
try:
    wait_for_end()
except KeyboardInterrupt:
    print("stopped")
"""


def test_a_signal_during_a_fork_ends_the_program() -> None:
    """Python ignores what a signal's handler raises in a callback around a fork."""
    ended = subprocess.run([sys.executable, "-c", DROPPED], capture_output=True, text=True, check=False)
    assert ended.stdout == "stopped\n"
    assert "Exception ignored" in ended.stderr
