"""Turns call sites into text: an address in a file becomes a function and a line, if binutils and the
program's debug information are installed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

PLACE = re.compile(r"(0x[0-9a-f]+) in (.+)")
LINE = re.compile(r"(?P<path>.*):(?P<number>\d+|\?)( \(discriminator \d+\))?")  # the output of addr2line
# Peerway's inline functions between the program and the recorded functions.
OURS = re.compile(r"(^|/)peerway/([a-z_]+/)*[a-z_]+\.hpp$")


def resolve(names: list[str]) -> None:
    """Replace the call sites among names by text: "main at ring.c:12", or otherwise "program+0x1189"."""
    of_file: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for index, name in enumerate(names):
        if match := PLACE.fullmatch(name):
            of_file[match[2]].append((index, match[1]))
    for file, places in of_file.items():
        result = _ask(file, [address for _, address in places])
        for (index, address), text in zip(places, result, strict=True):
            names[index] = f"{Path(file).name}+{address}" if text is None else text


def _ask(file: str, addresses: list[str]) -> list[str | None]:
    """Ask addr2line. None for an unknown address, and "" if it knows only inline functions of Peerway."""
    unknown: list[str | None] = [None] * len(addresses)
    if shutil.which("addr2line") is None or not Path(file).is_file():
        return unknown
    words = ["addr2line", "-C", "-f", "-i", "-a", "-e", file]
    done = subprocess.run(words, input="\n".join(addresses), capture_output=True, text=True, check=False)
    # For each address: itself, then function and line of each inline call around it, innermost first.
    answers: list[list[str]] = []
    for line in done.stdout.splitlines():
        if re.fullmatch("0x[0-9a-f]+", line):
            answers.append([])
        elif answers:
            answers[-1].append(line)
    if len(answers) != len(addresses):
        return unknown
    return [_text(list(zip(answer[::2], answer[1::2], strict=False))) for answer in answers]


def _text(calls: list[tuple[str, str]]) -> str | None:
    for function, line in calls:
        place = LINE.fullmatch(line)
        if place and OURS.search(place["path"]):
            continue
        if function == "??":
            return None
        if not place or not place["number"].isdigit():
            return function
        return f"{function} at {Path(place['path']).name}:{place['number']}"
    return "" if calls else None
