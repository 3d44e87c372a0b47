"""Rings in memory, so that no file system disturbs the program: a folder in /dev/shm, to which
FOLDER/rings/memory is a link.

Threads for which it has no space, and those of other hosts, record in FOLDER/rings. `peerway trace` holds a
lock on the folder. So a later command can recognise what a killed one left, even one in another PID
namespace.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from peerway_common import atomic_file
from peerway_common.printable import shell_word
from peerway_common.units import about_text
from peerway_trace.rings import EVENT, HEADER

MEMORY = Path("/dev/shm")
PREFIX, LINK, OWNER = "peerway-trace-", "memory", "trace"
OLD = 3600  # seconds
LEFT = 4 << 30  # the most bytes left for the program, as in library/include/peerway/trace/recorder/ring.h


def why_not(memory: Path, events: int) -> str:
    """Why rings of this many events are not kept in memory; "" if they are."""
    if not (memory.is_dir() and os.access(memory, os.W_OK | os.X_OK)):
        return f"{memory} cannot be written to"
    result = os.statvfs(memory)
    free, size = result.f_bavail * result.f_frsize, result.f_blocks * result.f_frsize
    needed = HEADER.itemsize + (1 << max(6, (events - 1).bit_length())) * EVENT.itemsize
    spare = min(size / 2, LEFT)
    if free >= needed + spare:
        return ""
    return (
        f"{memory} has {about_text(free)} free, of which {about_text(spare)} are left to the program, and a "
        f"thread's events take {about_text(needed)}"
    )


@contextlib.contextmanager
def held(rings: Path, memory: Path) -> Iterator[Path]:
    """Make a folder in memory for rings, and lock it. Raises OSError."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=memory.resolve()))
    with (folder / OWNER).open("w") as owner:
        fcntl.flock(owner, fcntl.LOCK_EX)
        owner.write(str(rings.parent))
        owner.flush()
        (rings / LINK).symlink_to(folder, target_is_directory=True)
        yield folder


def target(rings: Path) -> Path | None:
    """The folder in memory, which may be on another host; None if there is none."""
    return (rings / LINK).readlink() if (rings / LINK).is_symlink() else None


def files(rings: Path) -> list[Path]:
    """All rings of a job, by name."""
    folders = [rings, *([rings / LINK] if (rings / LINK).is_dir() else [])]
    return sorted((file for folder in folders for file in folder.glob("*.ring")), key=lambda file: file.name)


def settle(rings: Path) -> None:
    """Move the rings from memory to the folder of the trace. Raises OSError; they are then still in
    memory.
    """
    if not (rings / LINK).is_dir():
        return
    for file in (rings / LINK).glob("*.ring"):
        with atomic_file.draft(rings / file.name) as draft:
            shutil.copyfile(file, draft)
        file.unlink()
    discard(rings)


def discard(rings: Path) -> None:
    """Remove the rings from memory."""
    if (rings / LINK).is_dir():
        shutil.rmtree((rings / LINK).resolve())
    (rings / LINK).unlink(missing_ok=True)


def in_use(rings: Path) -> bool:
    """Whether the command that records there still runs."""
    return (rings / LINK).is_dir() and _locked(rings / LINK / OWNER)


def left_behind(memory: Path = MEMORY) -> list[str]:
    """Name what killed commands of this user have left there; remove what no longer belongs to a trace."""
    result = []
    for folder in sorted(memory.glob(f"{PREFIX}*")):
        with contextlib.suppress(OSError):  # another command may tidy up at the same time
            if folder.stat().st_uid != os.getuid():
                continue
            if not (folder / OWNER).exists():
                if time.time() - folder.stat().st_mtime > OLD:
                    folder.rmdir()
                continue
            if _locked(folder / OWNER):
                continue
            trace = Path((folder / OWNER).read_text())
            size = about_text(sum(file.stat().st_size for file in folder.iterdir()))
            if target(trace / "rings") == folder:
                result.append(
                    f"{folder} holds {size} of a trace whose command was killed; `peerway trace collect "
                    f"{shell_word(trace)}` makes the trace and frees them"
                )
            else:
                shutil.rmtree(folder)
                result.append(f"removed {folder}, {size} of a killed trace whose folder {trace} is gone")
    return result


def _locked(file: Path) -> bool:
    with file.open() as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
