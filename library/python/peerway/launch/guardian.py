"""A small process that ends the ranks, and everything that they started, if the launcher is killed and cannot
do it.
"""

from __future__ import annotations

import contextlib
import os
import signal
from typing import NoReturn


class Guardian:
    """Watches the launcher through a pipe that only the launcher holds open."""

    def __init__(self) -> None:
        reading, self._writing = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            _guard(reading)
        os.close(reading)

    def watch(self, group: int) -> None:
        """From now on, the guardian ends this process group when the launcher ends."""
        os.write(self._writing, f"{group}\n".encode())

    def dismiss(self) -> None:
        """End the guardian: the launcher has ended all ranks itself."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._writing, b"done\n")
        os.close(self._writing)
        os.waitpid(self.process, 0)


def _guard(reading: int) -> NoReturn:
    try:
        os.setsid()  # so that signals of the terminal to the launcher's group do not reach this process
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        os.dup2(reading, 0)
        os.closerange(1, os.sysconf("SC_OPEN_MAX") if os.sysconf("SC_OPEN_MAX") < 1 << 16 else 1 << 16)
        text = b""
        while chunk := os.read(0, 65536):
            text += chunk
        lines = text.split()
        if b"done" not in lines:
            for line in lines:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(int(line), signal.SIGKILL)
    finally:
        os._exit(0)
