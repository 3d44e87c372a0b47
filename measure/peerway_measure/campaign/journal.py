"""The folder of a campaign on the disk.

    campaign.toml     the plan
    journal.jsonl     a line for each event: begun, started, submitted, done, failed
    results/ID.jsonl  the records of a finished measurement
    running/ID.*      files of a measurement that runs: lock, output, errors, and the output of its Slurm job

A measurement is finished when its file is in results/, where the file is moved when it is complete. The
journal only tells how it came about. A measurement's keeper holds the lock, which becomes free when the
keeper ends or dies.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from peerway_measure import records
from peerway_measure.records import Record, RecordError

Event = dict[str, Any]
_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)


class Busy(Exception):
    """Another process holds the folder."""


class NoLocks(Exception):
    """The folder's file system has no locks."""


class Unreadable(Exception):
    """A file of the folder cannot be read; the message says which, and why."""


class Changed(Exception):
    """The plan differs from the one with which the campaign was begun."""


@dataclass
class Past:
    """What the journal says.

    For each measurement: how often it failed, why it failed the last time, whether its node could not even be
    reached then, and on which of its nodes it failed (empty: not known); its seconds, the notes of its
    command, and its job in Slurm.
    """

    failures: dict[str, int] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)
    unreached: set[str] = field(default_factory=set)
    failed_on: dict[str, list[str]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)
    jobs: dict[str, str] = field(default_factory=dict)
    digest: str = ""


class Journal:
    """The folder of a campaign."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "journal.jsonl"
        self.results, self.running = folder / "results", folder / "running"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the folder while the block runs; only one runner can. Raises Busy, NoLocks and OSError."""
        for each in (self.results, self.running):
            each.mkdir(exist_ok=True)
        with (self.folder / "lock").open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                raise Busy(
                    f"another `peerway campaign run` has {self.folder}: process "
                    f"{file.read().strip() or 'unknown'}; "
                    "wait for it, or give this campaign a folder of its own"
                ) from None
            except OSError as error:
                if error.errno not in _NO_LOCKS:
                    raise
                raise NoLocks(
                    f"{self.folder} is on a file system without locks (flock: {error.strerror}), by which a "
                    "campaign knows what is at work; put the campaign's folder on another one"
                ) from None
            file.truncate(0)
            file.write(f"{os.getpid()} of {os.uname().nodename}\n")
            file.flush()
            yield

    def begin(self, text: str) -> None:
        """Note the plan, or check that it is the one noted before. Raises Changed."""
        digest = hashlib.sha256(text.encode()).hexdigest()
        before = self.past().digest
        if before and before != digest and self._has_any():
            raise Changed(
                f"{self.folder}/campaign.toml was changed after the campaign began, so its results would mix "
                "two plans; restore the file, or begin another campaign in another folder"
            )
        if before != digest:
            self.note({"event": "begun", "plan": digest})

    def _has_any(self) -> bool:
        """Whether a measurement of the plan is finished, or may be running."""
        locks = (path.name.removesuffix(".lock") for path in self.running.glob("*.lock"))
        return bool(self.finished() or self.past().jobs or any(map(self.is_kept, locks)))

    def note(self, event: Event) -> None:
        """Add an event. It is on the disk when this returns."""
        line = json.dumps({**event, "time": records.now()}) + "\n"
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            # End a line that a crash cut off, so that it does not become part of this one.
            size = os.fstat(descriptor).st_size
            if size and _last_byte(self.path) != b"\n":
                line = "\n" + line
            os.write(descriptor, line.encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def past(self) -> Past:
        """Everything that the journal says. Lines that a crash cut off are skipped."""
        past = Past()
        for event in self.events():
            name = event.get("id", "")
            match event.get("event"):
                case "begun":
                    past = Past(digest=str(event.get("plan", "")))
                case "submitted":
                    past.jobs[name] = str(event["job"])
                case "failed":
                    past.failures[name] = past.failures.get(name, 0) + 1
                    past.why[name] = str(event.get("why", ""))
                    past.failed_on[name] = [str(node) for node in event.get("nodes", [])]
                    (past.unreached.add if event.get("unreached") else past.unreached.discard)(name)
                    past.jobs.pop(name, None)
                case "done":
                    past.seconds[name] = float(event.get("seconds", 0))
                    past.notes[name] = [str(note) for note in event.get("notes", [])]
                    past.jobs.pop(name, None)
        return past

    def events(self) -> Iterator[Event]:
        """The lines of the journal. Raises Unreadable."""
        try:
            text = self.path.read_text(errors="replace")
        except FileNotFoundError:
            return
        except OSError as error:
            raise _unreadable(self.path, error) from None
        for line in text.split("\n"):
            with suppress(ValueError):
                event = json.loads(line)
                if isinstance(event, dict):
                    yield event

    def result(self, name: str) -> Path:
        """The file for the records of a finished measurement."""
        return self.results / f"{name}.jsonl"

    def finished(self) -> set[str]:
        """The names of all finished measurements. Raises Unreadable."""
        try:
            names = [path.name for path in self.results.iterdir()]
        except FileNotFoundError:
            return set()
        except OSError as error:
            raise _unreadable(self.results, error) from None
        return {name.removesuffix(".jsonl") for name in names if not name.startswith(".")}

    def is_kept(self, name: str) -> bool:
        """Whether a keeper works on a measurement, on this host or on another one that shares the folder."""
        try:
            with (self.running / f"{name}.lock").open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def put(self, name: str, measured: list[Record]) -> None:
        """Write the records of a measurement to the disk, atomically."""
        draft = self.results / f".{name}.{os.getpid()}"
        try:
            with draft.open("w", encoding="utf-8") as file:
                file.writelines(record.as_json() + "\n" for record in measured)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self.result(name))
        finally:
            draft.unlink(missing_ok=True)
        folder = os.open(self.results, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def records(self) -> list[Record]:
        """All records of all finished measurements. Raises RecordError and Unreadable."""
        measured = []
        for path in sorted(self.results.glob("*.jsonl")):
            try:
                measured += [record.as_printable() for record in records.read(path)]
            except RecordError as error:
                again = f"`peerway campaign run {shlex.quote(str(self.folder))}` measures that again"
                why = str(error).removesuffix(records.OR_SKIP)
                raise RecordError(
                    f"{why}; it was changed after the measurement, so delete {path}, and {again}"
                ) from None
            except OSError as error:
                raise _unreadable(path, error) from None
        return measured


def _unreadable(path: Path, error: OSError) -> Unreadable:
    return Unreadable(f"cannot read {path}: {error.strerror}; a campaign needs it as it wrote it")


def _last_byte(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1)
