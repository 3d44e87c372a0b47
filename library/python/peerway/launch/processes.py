"""Find the processes that ranks left running, from /proc."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path


def parents() -> dict[int, int]:
    """Find the parent of every process that is alive (a zombie is not)."""
    result: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            text = (folder / "stat").read_text(errors="replace")
        except OSError:
            continue  # it ended meanwhile
        state, parent = text[text.rindex(")") + 2 :].split()[:2]
        if state not in "ZX":
            result[int(folder.name)] = int(parent)
    return result


def descendants(ancestor: int, without: set[int]) -> list[int]:
    """Find all live processes below `ancestor`, except `without` and what is below them."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    for process, parent in parents().items():
        children[parent].append(process)
    # A zombie parent is not listed, but its children have been given to the ancestor, which adopts orphans.
    result: list[int] = []
    waiting = [ancestor]
    while waiting:
        for process in children[waiting.pop()]:
            if process not in without:
                result.append(process)
                waiting.append(process)
    return result


def reap_orphans(known: set[int]) -> None:
    """Collect the exit statuses of adopted processes; those in `known` are left to their owners."""
    try:
        text = Path("/proc/self/task", str(os.getpid()), "children").read_text()
    except OSError:
        return  # without that list in the kernel, they stay zombies until the launcher ends
    for process in map(int, text.split()):
        if process not in known:
            try:
                os.waitpid(process, os.WNOHANG)
            except ChildProcessError:
                continue
