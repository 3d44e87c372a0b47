"""How a call ended, as the programs of the tests print it."""

from __future__ import annotations

from collections.abc import Callable

import peerway

FINE = ["fine", ""]


def outcome(call: Callable[[], object]) -> list[str]:
    """The name of what a call raised and its message; "fine" when nothing."""
    try:
        call()
    except peerway.Error as error:
        return [type(error).__name__, str(error)]
    return FINE
