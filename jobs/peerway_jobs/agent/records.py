"""Reads the records of prolog and epilog: small files that peerway_jobs/slurm/interval.sh writes.

interval.sh writes a file under another name and renames it, so the agent never reads half a file. The agent
removes the file once its content is in the spool. The values come from Slurm's environment; user names are
not trusted.
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass

from peerway_jobs.agent import files

_NAME = re.compile(r"\d{1,10}\.\d{1,15}\.(prolog|epilog)", re.ASCII)
_MOST_RECORDS = 1000  # per round; the others wait for the next round
_U32 = (1 << 32) - 1
_MOST_MS = (1 << 48) - 1
_OUT_OF_MEMORY = "0:125"  # Slurm's exit code of a job killed for lack of memory


@dataclass(slots=True)
class Record:
    """One call of the prolog or of the epilog."""

    file: str
    event: str
    job: int
    wall_ms: int
    mono_ms: int
    boot: str
    uid: int | None
    user: str | None
    partition: str | None
    restart: int | None
    gpus: str  # Slurm's GPU numbers, such as "0,1"
    visible: str  # CUDA_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES: numbers, or UUIDs
    out_of_memory: bool


def parse(file: str, content: str) -> Record | None:
    """Parse one file; None if it is not a record."""
    match = _NAME.fullmatch(os.path.basename(file))  # noqa: PTH119
    fields = dict(line.partition("=")[::2] for line in content.splitlines())
    job, wall, mono = (_whole(fields.get(name)) for name in ("job", "wall_ms", "mono_ms"))
    if match is None or job is None or not 0 < job < 1 << 32 or wall is None or mono is None:
        return None
    visible = ",".join(filter(None, (fields.get("cuda"), fields.get("rocr"))))
    return Record(
        file, match[1], job, wall, mono, fields.get("boot", ""), _whole(fields.get("uid"), _U32),
        _word(fields.get("user")), _word(fields.get("partition")), _whole(fields.get("restart"), _U32),
        fields.get("gpus", ""), visible, fields.get("exit", "") == _OUT_OF_MEMORY,
    )  # fmt: skip


class Records:
    """The folder of the records."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._taken: list[str] = []
        self.wrong: list[str] = []

    def take(self) -> list[Record]:
        """The new records, oldest first; `wrong` lists files that are no records. `taken` removes both.

        Raises OSError, and takes none, if no more files can be opened.
        """
        records: list[Record] = []
        paths: list[str] = []
        self.wrong = []
        for name in files.names(self._folder)[:_MOST_RECORDS]:
            path = f"{self._folder}/{name}"
            if name.startswith("."):
                continue
            record = parse(path, _content(path))
            if record is None:
                self.wrong.append(name)
            else:
                records.append(record)
            paths.append(path)
        self._taken += paths
        records.sort(key=lambda record: (record.wall_ms, record.event == "epilog"))
        return records

    def taken(self) -> None:
        """Remove the files of the last `take`, because their content is in the spool."""
        for path in self._taken:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)  # noqa: PTH108
        self._taken.clear()


def _content(path: str) -> str:
    try:
        return files.read(path, 65536).decode(errors="replace")
    except OSError as error:
        if error.errno in files.NO_FILES:  # otherwise the record would be removed as wrong
            raise
        return ""


def _whole(text: str | None, most: int = _MOST_MS) -> int | None:
    """An integer up to `most`, else None: a larger one would make the server refuse the whole batch."""
    whole = int(text) if text and text.isascii() and text.isdigit() and len(text) <= 15 else None
    return whole if whole is not None and whole <= most else None


def _word(text: str | None) -> str | None:
    return text if text and len(text) <= 64 and text.isprintable() else None
