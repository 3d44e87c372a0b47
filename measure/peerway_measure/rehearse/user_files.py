"""Lists the files of users, which an upgrade must leave unchanged.

As a program it lists the given folders of the host where it runs, as JSON.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from peerway_common.printable import printable

_FOLDER = "a folder"
_SHOWN = 3  # the most names in a line


class Entry(NamedTuple):
    """A file, a link or a folder.

    `content` is the SHA-256 of a file, the target of a link, or the kind of anything else. The time of a
    folder is not kept: a file that was made and removed again is no change.
    """

    content: str
    owner: str
    mode: str
    time: str


Files = Mapping[str, Entry]


def listed(folders: Iterable[Path]) -> Iterator[tuple[str, Entry]]:
    """Everything below these folders that is on their own file systems. Raises OSError if something cannot be
    read.
    """
    for folder in folders:
        yield from _entries_below(folder, folder.stat().st_dev)


def _entries_below(folder: Path, device: int) -> Iterator[tuple[str, Entry]]:
    with os.scandir(folder) as entries:
        names = sorted(each.name for each in entries)
    for path in (folder / name for name in names):
        try:
            entry, known = _entry(path), path.lstat()
        except FileNotFoundError:  # removed meanwhile, and so left out
            continue
        yield str(path), entry
        if stat.S_ISDIR(known.st_mode) and known.st_dev == device:
            yield from _entries_below(path, device)


def _entry(path: Path) -> Entry:
    status = path.lstat()
    owner, mode = f"{status.st_uid}:{status.st_gid}", f"{stat.S_IMODE(status.st_mode):04o}"
    if stat.S_ISDIR(status.st_mode):
        return Entry(_FOLDER, owner, mode, "")
    if stat.S_ISLNK(status.st_mode):
        content = f"to {path.readlink()}"
    elif stat.S_ISREG(status.st_mode):
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
    else:
        content = f"of the kind {stat.filemode(status.st_mode)[0]}"
    return Entry(content, owner, mode, str(status.st_mtime_ns))


def read(text: str) -> Files:
    """Parse the output of this program."""
    return {name: Entry(*entry) for name, entry in json.loads(text).items()}


def count(files: Files) -> int:
    """The number of files, without folders."""
    return sum(entry.content != _FOLDER for entry in files.values())


def differences(before: Files, after: Files) -> str:
    """The differences as text, "" if there are none: "2 missing: /scratch/ann/a, /scratch/ann/b; 1 changed:
    ...".
    """
    both = before.keys() & after.keys()
    changed = {name for name in both if before[name].content != after[name].content}
    same = both - changed  # a write also changes the time of a file
    odd = {
        "missing": before.keys() - after.keys(),
        "new": after.keys() - before.keys(),
        "changed": changed,
        "with another owner": {name for name in both if before[name].owner != after[name].owner},
        "with other permissions": {name for name in both if before[name].mode != after[name].mode},
        "with another time": {name for name in same if before[name].time != after[name].time},
    }
    return "; ".join(f"{len(names)} {kind}: {_few(names)}" for kind, names in odd.items() if names)


def _few(names: Iterable[str]) -> str:
    several = sorted(names)
    return ", ".join(map(printable, several[:_SHOWN])) + (" ..." if len(several) > _SHOWN else "")


def main(folders: Iterable[str]) -> int:
    try:
        print(json.dumps(dict(listed(map(Path, folders)))))
    except OSError as error:
        print(printable(f"{error.filename}: {error.strerror}"), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
