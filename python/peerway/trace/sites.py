"""Places in programs that called: an address in a file becomes a function and a line, where binutils and the
program's debug information are there.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

PLACE = re.compile(r"(0x[0-9a-f]+) in (.+)")


def resolve(names: list[str]) -> None:
    """Replace the places among names by what they are: "main at ring.c:12", else "program+0x1189"."""
    of_file: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for index, name in enumerate(names):
        if match := PLACE.fullmatch(name):
            of_file[match[2]].append((index, match[1]))
    for file, places in of_file.items():
        found = _ask(file, [address for _, address in places])
        for (index, address), text in zip(places, found, strict=True):
            names[index] = text or f"{Path(file).name}+{address}"


def _ask(file: str, addresses: list[str]) -> list[str]:
    """Ask addr2line; an empty text for what it does not know."""
    unknown = [""] * len(addresses)
    if shutil.which("addr2line") is None or not Path(file).is_file():
        return unknown
    words = ["addr2line", "-C", "-f", "-e", file]
    done = subprocess.run(words, input="\n".join(addresses), capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    if len(lines) != 2 * len(addresses):
        return unknown
    return [_text(function, line) for function, line in zip(lines[::2], lines[1::2], strict=True)]


def _text(function: str, line: str) -> str:
    path, _, number = line.partition(" ")[0].rpartition(":")
    if not number.isdigit() or function == "??":
        return function if function != "??" else ""
    return f"{function} at {Path(path).name}:{number}"
