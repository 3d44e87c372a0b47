"""Source lines of the programs, and how many of them are not in serial.c: python apps/lqcd/sloc.py.

The rules: comments and blank lines do not count, and spaces make no difference. A line is added or changed
(Delta-SLOC) if it is not one of the lines that the program and serial.c have in common in the same order, in
the longest such sequence. Lines that were deleted do not count, nor do headers, which all programs share.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = {
    "xacc": "xacc.c",
    "xacc-nowait": "xacc_nowait.c",
    "cuda-mpi": "cuda_mpi.cu",
    "openacc-mpi": "openacc_mpi.c",
}
# A literal is kept, a comment is not.
_TOKENS = re.compile(r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|//[^\n]*|/\*.*?\*/""", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Lines:
    """Of one program: its source lines, and those of them that are added or changed."""

    program: str
    sloc: int
    delta: int


def source_lines(text: str) -> list[str]:
    """Give the lines that count, each without its spaces."""
    plain = _TOKENS.sub(lambda found: found[1] or "\n" * found[0].count("\n"), text)
    lines = ("".join(line.split()) for line in plain.splitlines())
    return [line for line in lines if line]


def common(left: list[str], right: list[str]) -> int:
    """Give the length of the longest sequence of lines that both have in the same order."""
    row = [0] * (len(right) + 1)
    for line in left:
        before = 0
        for i, other in enumerate(right, 1):
            above = row[i]
            row[i] = before + 1 if line == other else max(above, row[i - 1])
            before = above
    return row[-1]


def count(serial: str, programs: dict[str, str]) -> list[Lines]:
    """Count the lines of texts: that of serial.c, then the others by their names."""
    base = source_lines(serial)
    found = [Lines("serial", len(base), 0)]
    for name, text in programs.items():
        lines = source_lines(text)
        found.append(Lines(name, len(lines), len(lines) - common(base, lines)))
    return found


def of_the_programs() -> list[Lines]:
    """Count the lines of the programs of this folder."""
    texts = {name: (HERE / file).read_text() for name, file in PROGRAMS.items()}
    return count((HERE / "serial.c").read_text(), texts)


if __name__ == "__main__":
    for each in of_the_programs():
        print(json.dumps({"record": "sloc", **asdict(each)}))
