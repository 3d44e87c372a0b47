"""Writes files of users into a new copy, so that an upgrade can damage some.

They have several owners, permissions and ages. Among them are links, names that need quoting, and an empty
file.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

_JOB = b"""#!/bin/bash
#SBATCH --ntasks=4 --time=30
cd "/scratch/$USER/project" && srun ./model input.nml
"""
_INPUT = b"&grid nx = 512, ny = 512, levels = 40 /\n&run steps = 86400, restart = .true. /\n"
_SHARED = "of-all-users"  # not a valid name of a user


class _File(NamedTuple):
    """A file. `data` is its content, or its number of random bytes; `days` is how long before the copy it was
    written.
    """

    path: str
    data: bytes | int
    mode: int
    days: float


_AT_HOME = (
    _File("job.sh", _JOB, 0o755, 40),
    _File("notes on the model.txt", 900, 0o600, 3.2),
)
_ON_FILE_SYSTEM = (
    _File("project/input.nml", _INPUT, 0o640, 90),
    _File("project/model", 180_000, 0o755, 95.5),
    *(_File(f"project/results/run-{n}.dat", 256 << 10, 0o444, 80 - n) for n in (1, 2, 3)),
    _File("project/checkpoint", 2 << 20, 0o600, 0.5),
    _File("project/Größe & Maß.csv", 7_001, 0o664, 200),
    _File("project/done", b"", 0o644, 77),
)
_LINK = ("project/latest", "results/run-3.dat")


def write(users: Mapping[str, int], homes: Mapping[str, Path], file_systems: Iterable[Path]) -> None:
    """Write the files into the homes, and into a folder of each user in each file system. `users` are user
    ids by name.
    """
    now = time.time()
    for user, number in users.items():
        for file in _AT_HOME:
            _write(homes[user], file, user, number, now)
    for folder in file_systems:
        shared = folder / _SHARED
        _folder(shared, next(iter(users.values())), 0o2777)
        for user, number in users.items():
            own = folder / user
            _folder(own, number, 0o750)
            for file in _ON_FILE_SYSTEM:
                _write(own, file, user, number, now)
            (own / _LINK[0]).symlink_to(_LINK[1])
            os.lchown(own / _LINK[0], number, number)
            _write(shared, _File(f"stations of {user}.csv", 12_345, 0o664, 20), user, number, now)


def _folder(path: Path, owner: int, mode: int) -> None:
    path.mkdir()
    os.chown(path, owner, owner)
    path.chmod(mode)  # regardless of the umask


def _write(folder: Path, file: _File, user: str, owner: int, now: float) -> None:
    path = folder / file.path
    for above in reversed(path.relative_to(folder).parents[:-1]):
        if not (folder / above).exists():
            _folder(folder / above, owner, 0o750)
    data = file.data
    path.write_bytes(
        data if isinstance(data, bytes) else random.Random(f"{user} {file.path}").randbytes(data)
    )
    os.chown(path, owner, owner)
    path.chmod(file.mode)
    written = now - file.days * 86400
    os.utime(path, (written, written))
