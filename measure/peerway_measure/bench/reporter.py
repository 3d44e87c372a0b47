"""The channel from the ranks of a benchmark to their session."""

from __future__ import annotations

import json
import os
from typing import Any


class Reporter:
    """The line to the session: standard output, of which a rank takes hold before anything else does. What is
    printed besides goes to standard error. Only rank 0 reports, and who cannot start.
    """

    def __init__(self) -> None:
        self._line = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
        os.dup2(2, 1)
        self.speaks = True

    def say(self, kind: str, **values: Any) -> None:
        """Sends one message."""
        if self.speaks:
            self._line.write(json.dumps({"kind": kind, **values}) + "\n")
