"""Expands ranges of nodes, as Slurm writes them."""

from __future__ import annotations

import re

from peerway_common.printable import printable


def expand(pattern: str) -> list[str]:
    """ "node[01-03,7]" -> node01, node02, node03, node7."""
    match = re.fullmatch(r"([^\[\]]*)\[([\d,-]+)\]([^\[\]]*)", pattern)
    if not match:
        if "[" in pattern[1:]:
            raise _no_range(pattern)
        return [pattern]  # such as the address [::1]
    names = []
    for part in match[2].split(","):
        low, _, high = part.partition("-")
        if not low.isdecimal() or (high and not high.isdecimal()) or int(high or low) - int(low) >= 100_000:
            raise _no_range(pattern)
        names += [
            f"{match[1]}{number:0{len(low)}}{match[3]}" for number in range(int(low), int(high or low) + 1)
        ]
    return names


def _no_range(pattern: str) -> ValueError:
    return ValueError(f"'{printable(pattern)}' is not a range of nodes; write for example node[01-16]")
