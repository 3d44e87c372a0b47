"""The only folder that a run makes below the given place.

It has a manifest. It is removed at the end, or by a later run if this one was killed.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path

from peerway_common.printable import printable
from peerway_measure.storage.operation import OperationFailed, operate

BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class Owner:
    """The process that created a folder, with enough facts to find out whether it still runs."""

    host: str
    boot: str
    pid: int
    started: int

    @classmethod
    def this(cls) -> Owner:
        """This process."""
        return cls(socket.gethostname(), _text(BOOT), os.getpid(), started(os.getpid()))

    def is_gone(self) -> bool:
        """Whether it certainly no longer runs. For a process on another host this is not known."""
        current = Owner.this()
        if self.host != current.host:
            return False
        return self.boot != current.boot or started(self.pid) != self.started


@dataclass(frozen=True)
class RunFolder:
    """A folder of one run."""

    place: Path
    token: str
    limit_s: float

    @classmethod
    def make(cls, place: Path, limit_s: float) -> RunFolder:
        """Make a new folder. Raises OperationFailed."""
        folder = cls(place, secrets.token_hex(6), limit_s)
        operate("make", limit_s, place=place, token=folder.token, manifest=json.dumps(vars(Owner.this())))
        return folder

    def prefix(self, name: str) -> Path:
        """The prefix of the paths of files with this name."""
        return self.place / f"peerway-storage-{self.token}" / f"{self.token}.{name}"

    def remove(self, begins: str = "") -> list[str]:
        """Remove the files whose names begin with this prefix; without a prefix all files and the folder.
        Other files are left, and returned by name. Raises OperationFailed.
        """
        answer = operate("remove", self.limit_s, place=self.place, token=self.token, begins=begins)
        foreign = [printable(name) for name in answer["names"]]
        more = answer["foreign"] - len(foreign)
        return foreign + ([f"{more} more"] if more > 0 else [])


def clean(place: Path, limit_s: float, also_others: bool = False) -> list[str]:
    """Remove the files that killed runs left in a place, and report what was done. With `also_others` those
    of other hosts, too. Raises OperationFailed.
    """
    answer = operate("list", limit_s, place=place)
    lines = []
    for token, text in zip(answer["tokens"], answer["manifests"], strict=True):
        owner = _owner(text)
        folder = RunFolder(place, token, limit_s)
        name = f"peerway-storage-{token}"
        if owner and not owner.is_gone() and not (also_others and owner.host != socket.gethostname()):
            where = f"process {owner.pid} of {printable(owner.host)}"
            lines.append(f"{place}/{name} was left: it belongs to {where}, which may still run")
            continue
        try:
            foreign = folder.remove()
        except OperationFailed as error:
            lines.append(f"{place}/{name} of a run that ended early could not be removed: {error}")
            continue
        lines.append(
            f"{place}/{name} has files that no run made, and was left: {', '.join(foreign)}"
            if foreign
            else f"removed {place}/{name} of a run that ended early"
        )
    return lines


def started(pid: int) -> int:
    """The start time of a process, in ticks since boot; 0 if it does not exist."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return 0
    return int(text[text.rindex(")") + 2 :].split()[19])


def _owner(manifest: str) -> Owner | None:
    try:
        fields = json.loads(manifest)
        return Owner(str(fields["host"]), str(fields["boot"]), int(fields["pid"]), int(fields["started"]))
    except (ValueError, KeyError, TypeError):
        return None  # killed before the manifest was complete, so that the folder has no other file


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
