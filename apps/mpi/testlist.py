"""Reads the lists of MPICH's test suite: the programs of a folder, how each is run, and when it has passed.

The meaning of a line, and what counts as passed, follow the suite's own script (runtests).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

LIMIT_S = 180  # the suite's own limit for programs without one
FOLDERS = ("attr", "coll", "comm", "datatype", "errhan", "pt2pt", "rma")


@dataclass(frozen=True, slots=True)
class Program:
    """One line of a list."""

    folder: str
    name: str
    ranks: int
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict, hash=False)
    limit_s: int = LIMIT_S
    judged_by: str = ""
    only_mpich: bool = False  # it tests something that the standard does not require
    known_to_fail: bool = False  # by MPICH's own list

    @property
    def title(self) -> str:
        """A text that distinguishes this line from the others."""
        settings = [f"{name}={value}" for name, value in self.environment.items()]
        return " ".join([*settings, f"{self.folder}/{self.name}", *self.arguments])


def read_line(folder: str, line: str) -> Program | None:
    """Parse one line; None if it names no program."""
    words = line.split("#")[0].split()
    if not words or words[0].startswith("!"):
        return None
    ranks = int(words[1]) if len(words) > 1 else 2
    options = [word.partition("=") for word in words[2:]]
    given = {key: value for key, _, value in options}
    return Program(
        folder,
        Path(words[0]).name,
        ranks,
        arguments=tuple(value for key, _, value in options if key == "arg"),
        environment=dict(value.split("=", 1) for key, _, value in options if key == "env"),
        limit_s=int(given.get("timeLimit", LIMIT_S)),
        judged_by=given.get("resultTest", ""),
        only_mpich=given.get("strict", "").lower() == "false",
        known_to_fail="xfail" in given,
    )


def passed(program: Program, status: int, output: str) -> bool:
    """Whether a run passed, by the suite's own rules."""
    if program.judged_by == "TestErrFatal":
        return status != 0
    lines = [line.strip() for line in output.splitlines()]
    unexpected = [line for line in lines if line not in ("No Errors", "No errors", "Test Passed")]
    if program.judged_by == "TestStatus":
        return status != 0
    if program.judged_by == "TestStatusNoErrors":
        return status != 0 and "No Errors" in lines and not unexpected
    return status == 0 and {"No Errors", "No errors"} & set(lines) != set() and not unexpected


class Suite:
    """The suite as one MPI's compiler built it (docs/nic/mpi-suite.md says how)."""

    def __init__(self, folder: Path) -> None:
        """Read the suite's settings. Raises FileNotFoundError."""
        self.folder = folder
        settings = (folder / "runtests").read_text()
        self.strict = re.search(r'^\$testIsStrict\s*=\s*"true"', settings, re.MULTILINE) is not None
        source = re.search(r"^abs_srcdir = (.*)$", (folder / "Makefile").read_text(), re.MULTILINE)
        self.source = Path(source[1]) if source else folder
        version = self.source / "version.m4"
        text = version.read_text() if version.exists() else ""
        match = re.search(r"\[MPICH_VERSION_m4\],\[(.*?)\]", text)
        self.version = match[1] if match else "of unknown version"

    def programs(self, folders: tuple[str, ...] = FOLDERS) -> Iterator[Program]:
        """The programs that the suite's own script would run."""
        for folder in folders:
            beside, generated = self.source / folder / "testlist", self.folder / folder / "testlist"
            text = (generated if generated.exists() else beside).read_text()
            for line in text.splitlines():
                program = read_line(folder, line)
                if program is None or (self.strict and program.only_mpich):
                    continue
                if program.known_to_fail and not self.strict:
                    continue
                yield program

    def file(self, program: Program) -> Path:
        return self.folder / program.folder / program.name
