"""The files of a virtual cluster: users, keys, the configuration of Slurm, fake GPUs, file servers."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from peerway_measure.rehearse.cluster import accounting, configuration, gpus, servers, user_data
from peerway_measure.rehearse.cluster.description import Description


@dataclass(frozen=True)
class Contents:
    """The values that the files mention, and where the files lie: in `folder`, some in `root`."""

    description: Description
    folder: Path
    root: Path | None
    users: dict[str, int]
    addresses: dict[str, str]
    hooks: dict[str, Path]
    cgroups: bool

    def home(self, user: str) -> Path:
        return home(self.folder, user)


def home(folder: Path, user: str) -> Path:
    """The home folder of a user of the cluster in `folder`."""
    return folder / "home" / user


def write(cluster: Contents) -> None:
    """Write everything that the hosts read."""
    for name in ("state", "spool", "log", "nodes", "home"):
        (cluster.folder / name).mkdir()
    (cluster.folder / "log").chmod(0o755)
    key = cluster.folder / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    accounts = {"passwd": "{0}:x:{1}:{1}::{2}:/bin/bash\n", "group": "{0}:x:{1}:\n"}
    for file, line in accounts.items():
        added = "".join(line.format(name, uid, cluster.home(name)) for name, uid in cluster.users.items())
        (cluster.folder / file).write_text(Path("/etc", file).read_text() + added)
    for name, uid in cluster.users.items():
        cluster.home(name).mkdir()
        os.chown(cluster.home(name), uid, uid)
    text = configuration.slurm_conf(cluster.description, cluster.folder, cluster.cgroups)
    text += "".join(f"{name}={path}\n" for name, path in cluster.hooks.items())
    (cluster.folder / "slurm.conf").write_text(text)
    (cluster.folder / "gres.conf").write_text(configuration.gres_conf(cluster.description, cluster.folder))
    if cluster.cgroups:
        (cluster.folder / "cgroup.conf").write_text(configuration.CGROUP)
    gpus.prepare(cluster.description, cluster.folder)
    _write_file_systems(cluster)
    if cluster.root is not None:
        homes = {user: cluster.home(user) for user in cluster.users}
        bricks = [servers.brick(system, cluster.folder) for system in cluster.description.file_systems]
        user_data.write(cluster.users, homes, bricks)
        open_interpreter(cluster.root, Path(sys.executable))
    if cluster.description.accounting:
        accounting.prepare(cluster.folder)


def _write_file_systems(cluster: Contents) -> None:
    """Write the files of file systems into the root, which is the copy's own. Without such a root, there is
    nowhere to put them.
    """
    if cluster.description.file_systems and cluster.root is None:
        raise RuntimeError("file systems need a copy with a root of its own: `peerway rehearse start`")
    for system in cluster.description.file_systems:
        assert cluster.root is not None
        folder = servers.brick(system, cluster.folder)
        folder.mkdir(parents=True)
        folder.chmod(0o1777)
        (cluster.root / system.name).mkdir(exist_ok=True)
        for place, text in servers.texts(system, cluster.folder, cluster.addresses[system.host]).items():
            path = cluster.root / place.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o755 if "sbin" in place else 0o644)


def open_interpreter(root: Path, python: Path) -> None:
    """Let users of the copy run `python`. It, or its virtual environment, may lie in the home of root;
    in the copy, whose files are in `root`, and only there, users may pass through the folders of both.
    """
    for folder in {*python.absolute().parents, *python.resolve().parents}:
        inside = root / folder.relative_to("/")
        inside.chmod(inside.stat().st_mode | 0o111)
