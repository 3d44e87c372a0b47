"""Prints, as one line of JSON, which NICs PEERWAY_NIC names; or loads and opens one of them.

It is a program of its own, because a plugin can crash or block the process that loads it. Its argument is {}
(list the entries) or {"entry": ENTRY} (open that one).
"""

from __future__ import annotations

import json
import secrets
import sys
from typing import Any

ORIGIN = "PEERWAY_NIC"
PUTS_IN_ORDER, GETS_BEHIND_PUTS = 1, 2
KINDS = ("host", "CUDA", "HIP")


def entries() -> dict[str, Any]:
    """List the entries of the setting."""
    from peerway import Error, _core

    try:
        return {"nics": _core.nic_specs(_core.config_value("nic"), ORIGIN)}
    except Error as error:
        return {"error": str(error).removeprefix("peerway: ")}


def probe(entry: str) -> dict[str, Any]:
    """Load the plugin of an entry and open its NIC, as far as that goes."""
    from peerway import Error, _core

    report: dict[str, Any] = {"asked": entry}
    try:
        _core.nic_probe(entry, ORIGIN, secrets.randbits(63), report.__setitem__)
    except Error as error:
        return report | {"error": str(error).removeprefix("peerway: ")}
    guarantees, kinds = report.pop("guarantees"), report.pop("memory_kinds")
    return report | {
        "opened": True,
        "puts_in_order": bool(guarantees & PUTS_IN_ORDER),
        "gets_behind_puts": bool(guarantees & GETS_BEHIND_PUTS),
        "memory": [name for bit, name in enumerate(KINDS) if kinds >> bit & 1],
    }


if __name__ == "__main__":
    request = json.loads(sys.argv[1])
    json.dump(probe(request["entry"]) if request else entries(), sys.stdout)
