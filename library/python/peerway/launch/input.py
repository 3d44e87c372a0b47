"""The terminal's input for rank 0."""

from __future__ import annotations

import contextlib
import os
import selectors


class Input:
    """The terminal's input for rank 0, which cannot read it itself because it is not in the foreground
    group.
    """

    def __init__(self, selector: selectors.BaseSelector, terminal: int, target: int) -> None:
        self._selector, self._terminal, self._target = selector, terminal, target
        self._held = b""
        os.set_blocking(target, False)
        selector.register(terminal, selectors.EVENT_READ, self.read)

    def read(self) -> None:
        """Read what was typed, and wait until rank 0 can take it."""
        try:
            self._held = os.read(self._terminal, 1 << 16)
        except OSError:  # the launcher is in the background
            self._held = b""
        self._selector.unregister(self._terminal)
        if not self._held:
            self.close()
            return
        self._selector.register(self._target, selectors.EVENT_WRITE, self.write)

    def write(self) -> None:
        """Pass on what was typed, and wait for more."""
        try:
            self._held = self._held[os.write(self._target, self._held) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self.close()
            return
        if not self._held:
            self._selector.unregister(self._target)
            self._selector.register(self._terminal, selectors.EVENT_READ, self.read)

    def close(self) -> None:
        """Let rank 0 see the end of its input."""
        if self._target < 0:
            return
        for descriptor in (self._terminal, self._target):
            with contextlib.suppress(KeyError):
                self._selector.unregister(descriptor)
        os.close(self._target)
        self._target = -1
