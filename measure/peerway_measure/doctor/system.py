"""Gives access to the machine: files, environment, programs and child processes with time limits.

Probes use nothing else, so that tests can pass another root and canned answers.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CHILDREN = Path(__file__).parent / "children"


@dataclass
class Output:
    """How a program ended. `code` is None when it could not be started or ran past its time limit."""

    code: int | None = None
    stdout: str = ""
    problem: str = ""  # why there is no answer, with the last line of standard error


class System:
    """A machine, or a test's imitation of one."""

    def __init__(
        self, root: Path = Path("/"), environment: Mapping[str, str] | None = None, timeout: float = 10.0
    ) -> None:
        """`timeout` is in seconds, for each program and child process."""
        self.root = root
        self.environment: Mapping[str, str] = os.environ if environment is None else environment
        self.timeout = timeout
        self.problems: list[str] = []  # child processes that gave no answer, and why

    def path(self, name: str) -> Path:
        """The real path of a file of the machine."""
        return self.root / name.lstrip("/")

    def read(self, name: str, limit: int = 1 << 20) -> str:
        """The file's text without the final newline; "" if it is missing or may not be read."""
        return self.read_bytes(name, limit).decode("utf-8", "replace").strip()

    def read_bytes(self, name: str, limit: int = 1 << 20) -> bytes:
        """At most `limit` bytes of the file; b"" if it is missing or may not be read."""
        try:
            with self.path(name).open("rb") as file:
                return file.read(limit)
        except OSError:
            return b""

    def number(self, name: str) -> int | None:
        """The decimal number in a file; None if there is none."""
        try:
            return int(self.read(name))
        except ValueError:
            return None

    def list(self, name: str) -> list[str]:
        """The names in a folder, sorted; [] if there is no such folder."""
        try:
            return sorted(entry.name for entry in self.path(name).iterdir())
        except OSError:
            return []

    def resolve(self, name: str) -> str:
        """The path behind symbolic links, as seen from the root; "" if it does not exist."""
        try:
            real = self.path(name).resolve(strict=True)
            return "/" + str(real.relative_to(self.root.resolve()))
        except (OSError, ValueError, RuntimeError):
            return ""

    def exists(self, name: str) -> bool:
        """Whether the file is there and may be seen."""
        try:
            return self.path(name).exists()
        except OSError:
            return False

    def usable(self, name: str) -> bool:
        """Whether this user may read and write the file."""
        return os.access(self.path(name), os.R_OK | os.W_OK)

    def run(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> Output:
        """Run a program for at most `timeout` seconds. Never raises, and never waits longer: a program stuck
        in the kernel is killed and not waited for.
        """
        try:
            process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**self.environment, **(environment or {})},
                start_new_session=True,
            )
        except OSError as error:
            return Output(problem=f"{command[0]}: {error.strerror or error}")
        try:
            stdout, stderr = process.communicate(timeout=self.timeout)
        except subprocess.TimeoutExpired:
            _kill(process)
            return Output(problem=f"{command[0]} gave no answer within {self.timeout:g} s")
        text = stdout.decode("utf-8", "replace")
        last = stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or [""]
        if process.returncode < 0:
            name = signal.Signals(-process.returncode).name
            return Output(process.returncode, text, f"{command[0]} was killed by {name}")
        problem = (
            f"{command[0]} ended with code {process.returncode}: {last[0]}" if process.returncode else ""
        )
        return Output(process.returncode, text, problem)

    def child(self, name: str, question: object = None) -> dict[str, Any]:
        """Run children/NAME.py as a separate program, because drivers can block or crash. Returns its JSON
        answer, or {"error": reason, "untried": true}.
        """
        script = str(CHILDREN / f"{name}.py")
        output = self.run([sys.executable, "-P", script, json.dumps(question)])
        try:
            answer = json.loads(output.stdout.strip().splitlines()[-1])
        except (ValueError, IndexError):
            answer = None
        if isinstance(answer, dict):
            return answer
        subject = f"{question['kind']} " if isinstance(question, dict) and "kind" in question else ""
        problem = output.problem.replace(sys.executable, f"the {subject}{name} probe") or "no answer"
        self.problems.append(problem)
        return {"error": problem, "untried": True}


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(0.2)
    for pipe in (process.stdout, process.stderr):
        if pipe:
            pipe.close()
