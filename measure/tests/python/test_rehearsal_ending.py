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
import os, signal, sys
from pathlib import Path
from peerway_measure.rehearse.cluster.ending import end_at_first_signal
end_at_first_signal()
try:
    print("up", flush=True)
    signal.pause()
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
