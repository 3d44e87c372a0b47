"""Asks scontrol about jobs that prolog and epilog did not report, one at a time, without waiting for it.

Users choose much of the text (a job's name, its folder). So a field counts only if its name occurs exactly
once in the text, and a job with an ambiguous answer is left as it is.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from typing import IO

from peerway_common.printable import one_line
from peerway_jobs.hosts import expand_hosts

_TIMEOUT_S = 30.0
_ENDED = ("Invalid job id", "invalid job id")


@dataclass(slots=True)
class Answer:
    """What Slurm says of a job; `known` is False if Slurm has no such job, or no longer."""

    job: int
    known: bool
    running: bool = False
    uid: int | None = None
    partition: str | None = None
    restart: int | None = None
    gpus: list[int] = field(default_factory=list)  # Slurm's GPU numbers on this node
    cpus: int | None = None
    memory_bytes: int | None = None
    shares: bool = False  # it has shares of a GPU (gres/shard, gres/mps), which other jobs share


class Slurm:
    """Runs scontrol in the background; poll `answer` once per round."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._job = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] | None = None
        self._since = 0.0

    @property
    def busy(self) -> bool:
        """Whether scontrol is running."""
        return self._process is not None

    def ask(self, job: int) -> str:
        """Start asking about a job. Returns "", or why that failed."""
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed together with the answer
        command = ["scontrol", "-o", "-d", "show", "job", str(job)]
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=self._output, stderr=self._output,
                env={**os.environ, "LC_ALL": "C", "SLURM_TIME_FORMAT": "standard"},
            )  # fmt: skip
        except OSError as error:
            self._output.close()
            return f"scontrol cannot be started: {error.strerror}"
        self._job, self._since = job, time.monotonic()
        return ""

    def answer(self) -> Answer | str | None:
        """The answer; a text if asking failed; None while scontrol runs."""
        if self._process is None or self._output is None:
            return None
        status = self._process.poll()
        if status is None and time.monotonic() - self._since < _TIMEOUT_S:
            return None
        if status is None:
            self._process.kill()
            self._process.wait()
        with contextlib.closing(self._output) as output:
            output.seek(0)
            text = output.read(1 << 20).decode(errors="replace")
        self._process = self._output = None
        if status is None:
            return f"scontrol gave no answer in {_TIMEOUT_S:g} s"
        if status != 0 and not any(words in text for words in _ENDED):
            return f"scontrol: {one_line('scontrol', text)}"
        return parse(self._job, self._node, text if status == 0 else "")

    def close(self) -> None:
        """Stop a running scontrol."""
        if self._process is not None and self._output is not None:
            self._process.kill()
            self._process.wait()
            self._output.close()
            self._process = self._output = None


def parse(job: int, node: str, text: str) -> Answer:
    """Parse the line of `scontrol -o -d`. An empty text means that Slurm does not know the job."""
    if not text.strip():
        return Answer(job, known=False)
    answer = Answer(job, known=True)
    user = re.fullmatch(r"[^ ]*\((\d{1,10})\)", _once(text, "UserId") or "")
    answer.uid = _whole(user[1]) if user else None
    answer.partition = _once(text, "Partition")
    state = _once(text, "JobState")
    # An ambiguous state counts as running, so that it ends no interval.
    answer.running = state is None or state in (
        "RUNNING",
        "COMPLETING",
        "SUSPENDED",
        "STOPPED",
        "CONFIGURING",
    )
    restarts = _once(text, "Restarts")
    answer.restart = _whole(restarts)
    here = [
        part
        for part in re.finditer(r" Nodes=(\S+) CPU_IDs=(\S+) Mem=(\d{1,12}) GRES=(\S*)", text)
        if node in expand_hosts(part[1])
    ]
    if len(here) == 1:
        answer.cpus = len(expand_numbers(here[0][2]))
        answer.memory_bytes = int(here[0][3]) << 20
        answer.shares = re.search(r"(?:^|,)(?:shard|mps):", here[0][4]) is not None
        for part in re.finditer(r"gpu(?::[^:(,]+)*(?::\d+)?\(IDX:([\d,-]+)\)", here[0][4]):
            answer.gpus.extend(expand_numbers(part[1]))
    return answer


def expand_numbers(text: str) -> list[int]:
    """Parse a list such as "0-3,8"; empty if it is no such list, or too long."""
    numbers: list[int] = []
    for part in text.split(","):
        ends = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", part)
        if ends is None or len(numbers) > 1 << 16:
            return []
        numbers.extend(range(int(ends[1]), int(ends[2] or ends[1]) + 1))
    return numbers


def _whole(text: str | None) -> int | None:
    """A 32-bit number; None for anything else, which would make the server refuse the whole batch."""
    return int(text) if text and re.fullmatch(r"[0-9]{1,10}", text) and int(text) < 1 << 32 else None


def _once(text: str, name: str) -> str | None:
    values = re.findall(rf"(?:^|\s){name}=(\S*)", text)
    return values[0][:64] if len(values) == 1 and values[0].isprintable() else None
