"""The channel from the ranks of a benchmark to their session."""

from __future__ import annotations

import json
import os
from typing import Any


class Reporter:
    """The line to the session: standard output, which a rank takes over before anything else can print. Other
    output goes to standard error.

    Rank 0 reports, and any rank that cannot start.
    """

    def __init__(self) -> None:
        self._line = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
        os.dup2(2, 1)
        self.speaks = True

    def say(self, kind: str, **values: Any) -> None:
        """Send one message."""
        if self.speaks:
            self._line.write(json.dumps({"kind": kind, **values}) + "\n")
