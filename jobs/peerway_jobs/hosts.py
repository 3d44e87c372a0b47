"""Expands Slurm's lists of nodes."""

from __future__ import annotations

import re


def expand_hosts(text: str) -> set[str]:
    """The names in a list such as "cpu[01-03,7],big"; each name may have one pair of brackets."""
    hosts: set[str] = set()
    for host in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text):
        name, bracket, rest = host.partition("[")
        if not bracket:
            hosts.add(name)
            continue
        inside, _, tail = rest.partition("]")
        for span in inside.split(","):
            first, _, last = span.partition("-")
            if first.isdigit() and (last or first).isdigit() and int(last or first) - int(first) < 1 << 16:
                hosts.update(
                    f"{name}{number:0{len(first)}d}{tail}"
                    for number in range(int(first), int(last or first) + 1)
                )
    return hosts
