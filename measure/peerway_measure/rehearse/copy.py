"""A copy of a cluster: starts, saves, rolls back and ends its disk and its hosts together."""

from __future__ import annotations

import subprocess
from pathlib import Path

from peerway_measure.rehearse.cluster import VirtualCluster, read
from peerway_measure.rehearse.disk import Disk, run

DESCRIPTION = "cluster.toml"


class Copy:
    """The copy that lives in `folder`. The caller's mount namespace must be its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.disk = Disk(folder)
        self.description = read(folder / DESCRIPTION)
        self._inside = folder / "cluster"  # where the hosts, and this process, see the cluster's files
        self.cluster: VirtualCluster | None = None

    def start(self) -> None:
        """Mount the disk and start all hosts."""
        self._inside.mkdir(exist_ok=True)
        self.disk.open()
        self._start_hosts()

    def stop(self) -> None:
        """End all hosts; safe to call twice."""
        if self.cluster is not None:
            self._stop_hosts()

    def snapshot(self, name: str, for_upgrade: bool = False) -> None:
        """Save the present state of the disk. Unless the name is wrong, hosts are stopped for it and started
        again.
        """
        self.disk.check_new(name)
        self._stop_hosts()
        try:
            self.disk.snapshot(name, for_upgrade)
        finally:
            self._start_hosts()

    def roll_back(self, name: str) -> None:
        """Return to a snapshot. Unless the name is wrong, hosts are stopped for it and started again."""
        self.disk.check_known(name)
        self._stop_hosts()
        try:
            self.disk.roll_back(name)
        finally:
            self._start_hosts()

    def hosts(self, on: str) -> list[str]:
        """The hosts for which a word stands: a host, a node type, "nodes", "servers" or "all"."""
        types = self.description.types()
        servers = [each.host for each in self.description.file_systems]
        named = {
            "head": ["head"],
            "nodes": list(types),
            "servers": servers,
            "all": ["head", *servers, *types],
            **{kind.name: kind.names() for kind in self.description.nodes},
            **{name: [name] for name in (*types, *servers)},
        }
        if on not in named:
            raise ValueError(f"{on!r} is not a host of this copy; there are {', '.join(named)}")
        return named[on]

    def run(self, host: str, command: str, user: str | None, limit_s: float) -> tuple[int, str]:
        """Run a shell command to its end. Returns its exit status (124: it took too long) and its output."""
        assert self.cluster is not None
        try:
            done = self.cluster.run(
                "sh", "-c", command, host=host, user=user, timeout=limit_s, stdin=subprocess.DEVNULL,
                capture_output=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                errors="backslashreplace",
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return 124, f"it did not end within {limit_s:g} s"
        return done.returncode, done.stdout.strip()

    def _start_hosts(self) -> None:
        self.disk.mount(handles=any(each.kind == "nfs" for each in self.description.file_systems))
        inside = self.disk.root / self._inside.relative_to("/")
        inside.mkdir(parents=True, exist_ok=True)
        run("mount", "--bind", str(inside), str(self._inside))
        self.cluster = VirtualCluster(self.description, self._inside, self.disk.root)
        try:
            self.cluster.start()
        except BaseException:
            self._stop_hosts()
            raise

    def _stop_hosts(self) -> None:
        """Cut the power of all hosts, after Slurm has saved its state."""
        assert self.cluster is not None
        if self.cluster.spaces:
            self.cluster.shut_down_slurm()
        self.cluster.stop()
        self.cluster = None
        run("umount", str(self._inside))
        self.disk.unmount()
