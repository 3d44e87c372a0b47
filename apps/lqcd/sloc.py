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
# Literals are kept, comments are removed.
_TOKENS = re.compile(r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|//[^\n]*|/\*.*?\*/""", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Lines:
    """The source lines of a program, and how many of them are added or changed."""

    program: str
    sloc: int
    delta: int


def source_lines(text: str) -> list[str]:
    """The lines that count, without their spaces."""
    plain = _TOKENS.sub(lambda match: match[1] or "\n" * match[0].count("\n"), text)
    lines = ("".join(line.split()) for line in plain.splitlines())
    return [line for line in lines if line]


def common(first: list[str], second: list[str]) -> int:
    """The length of the longest sequence of lines that both texts have in the same order."""
    row = [0] * (len(second) + 1)
    for line in first:
        before = 0
        for i, other in enumerate(second, 1):
            above = row[i]
            row[i] = before + 1 if line == other else max(above, row[i - 1])
            before = above
    return row[-1]


def count(serial: str, programs: dict[str, str]) -> list[Lines]:
    """Count the lines of texts: of serial.c, and of the others by name."""
    base = source_lines(serial)
    counts = [Lines("serial", len(base), 0)]
    for name, text in programs.items():
        lines = source_lines(text)
        counts.append(Lines(name, len(lines), len(lines) - common(base, lines)))
    return counts


def count_programs() -> list[Lines]:
    """Count the lines of the programs in this folder."""
    texts = {name: (HERE / file).read_text() for name, file in PROGRAMS.items()}
    return count((HERE / "serial.c").read_text(), texts)


if __name__ == "__main__":
    for each in count_programs():
        print(json.dumps({"record": "sloc", **asdict(each)}))
