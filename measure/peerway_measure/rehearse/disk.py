"""The disk of a copy: one sparse file with a file system of its own, whose layers lie over this machine's
root.

A snapshot makes the top layer read-only and begins another; rolling back discards layers. A copy can fill
only this file, never this machine's disk.

Mounts are made in the caller's mount namespace, which must be its own (see holder.py). They end with its last
process, in whatever way that ends.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from peerway_measure.rehearse.cluster.needs import environment

SIZE_GB = 16  # the most that a copy can write; the file is only as large as what was written
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")


class DiskError(Exception):
    """The disk cannot do what was requested; the message says why."""


class Disk:
    """The disk in `folder`: the file disk.img, its mount point disk/, and the root made of it, root/."""

    def __init__(self, folder: Path) -> None:
        self.image, self.at, self.root = folder / "disk.img", folder / "disk", folder / "root"

    def open(self) -> None:
        """Mount the disk. Make it if there is none."""
        self.at.mkdir(exist_ok=True)
        self.root.mkdir(exist_ok=True)
        if not self.image.exists():
            draft = self.image.with_suffix(".new")
            with draft.open("wb") as file:
                file.truncate(SIZE_GB << 30)
            run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=1,lazy_journal_init=1", str(draft))
            draft.rename(self.image)
        run("mount", "-o", "loop", str(self.image), str(self.at))
        if not self._list.exists():
            (self.at / "0").mkdir()
            self._write({"layers": [0], "snapshots": {}})

    def mount(self, handles: bool = False) -> None:
        """Mount the layers over this machine's root. With `handles` files have file handles and one device
        number, which a server of NFS needs.
        """
        layers = self._read()["layers"]
        work = self.at / "work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        lower = ":".join([*(str(self.at / str(n)) for n in reversed(layers[:-1])), "/"])
        options = f"lowerdir={lower},upperdir={self.at / str(layers[-1])},workdir={work}"
        if handles:
            options += ",index=on,nfs_export=on,xino=on"
        run("mount", "-t", "overlay", "overlay", "-o", options, str(self.root))

    def unmount(self) -> None:
        """Unmount the layers. Nobody may be using them."""
        run("umount", str(self.root))

    def snapshots(self) -> list[str]:
        """The names of the snapshots, oldest first."""
        return list(self._read()["snapshots"])

    def unfinished(self) -> str:
        """The snapshot made before an upgrade that neither ended nor was rolled back; "" if there is none."""
        return str(self._read().get("unfinished", ""))

    def finish(self) -> None:
        """Note that the upgrade has ended."""
        self._write({**self._read(), "unfinished": ""})

    def check_new(self, name: str) -> None:
        """Raise DiskError if a new snapshot cannot have this name."""
        if not _NAME.fullmatch(name):
            raise DiskError(
                f"{name!r} is not a name for a snapshot; use up to 100 letters, digits, '.', '_' and '-'"
            )
        if name in self.snapshots():
            raise DiskError(f"there is a snapshot {name!r} already; give this one another name")

    def check_known(self, name: str) -> None:
        """Raise DiskError if there is no such snapshot."""
        if name not in (known := self.snapshots()):
            raise DiskError(f"there is no snapshot {name!r}; there are: {', '.join(known) or 'none'}")

    def snapshot(self, name: str, for_upgrade: bool = False) -> None:
        """Keep the present state under a name. The layers must be unmounted.

        A snapshot `for_upgrade` is unfinished until finish() or a rollback. Raises DiskError.
        """
        self.check_new(name)
        state = self._read()
        state["snapshots"][name] = state["layers"][-1]
        if for_upgrade:
            state["unfinished"] = name
        self._begin_layer(state)

    def roll_back(self, name: str) -> None:
        """Return to a snapshot; later ones are removed. The layers must be unmounted. Raises DiskError."""
        self.check_known(name)
        state = self._read()
        last = state["snapshots"][name]
        dropped = [n for n in state["layers"] if n > last]
        state["layers"] = [n for n in state["layers"] if n <= last]
        if state["snapshots"].get(state.get("unfinished", ""), -1) >= last:
            state["unfinished"] = ""
        state["snapshots"] = {each: n for each, n in state["snapshots"].items() if n <= last}
        self._begin_layer(state, above=max(dropped, default=last))
        for number in dropped:
            shutil.rmtree(self.at / str(number))

    def _begin_layer(self, state: dict[str, Any], above: int = 0) -> None:
        """Begin a new top layer. Its number was never used, because a removed layer may be half there."""
        layers: list[int] = state["layers"]
        layers.append(max(above, *layers) + 1)
        (self.at / str(layers[-1])).mkdir()
        self._write(state)

    @property
    def _list(self) -> Path:
        return self.at / "layers.json"

    def _read(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self._list.read_text())
        return content

    def _write(self, state: object) -> None:
        draft = self._list.with_suffix(".new")
        draft.write_text(json.dumps(state))
        draft.rename(self._list)


def run(*command: str) -> None:
    """Run a program of the system to its end. Raises DiskError."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment())
    except FileNotFoundError:
        raise DiskError(f"{command[0]} is not installed (apt-get install e2fsprogs mount)") from None
    if done.returncode:
        raise DiskError(f"{' '.join(command)}: {done.stderr.strip() or f'status {done.returncode}'}")
