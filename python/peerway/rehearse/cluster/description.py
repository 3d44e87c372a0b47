"""What a virtual cluster is: types of nodes with counts, partitions, users. Read from TOML and checked."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SMALL = HERE / "small.toml"
_NAME = re.compile(r"[a-z][a-z0-9]{0,15}")


class BadDescription(ValueError):
    """What the TOML says cannot be built; the message says what and why."""


@dataclass(frozen=True)
class NodeType:
    """Nodes of one kind: name-1, name-2, ... Their sizes are claimed, whatever this machine has."""

    name: str
    count: int = 1
    sockets: int = 1
    cores: int = 2
    threads: int = 1
    memory_mb: int = 4000
    gpus: int = 0
    gpu_memory_mb: int = 40_960
    gpu_name: str = "NVIDIA A100-SXM4-40GB"
    reversed_minors: bool = False
    features: tuple[str, ...] = ()

    def names(self) -> list[str]:
        return [f"{self.name}-{number}" for number in range(1, self.count + 1)]


@dataclass(frozen=True)
class Partition:
    """A partition of all nodes of some types. The first of the cluster is the default."""

    name: str
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class FileSystem:
    """A file system that a host of its own serves, mounted on the head and all nodes at /NAME. `threads` are
    the server's, `cache_mb` is the cache of each client; with 0 neither it nor its kernel keeps anything. In
    the copy /etc/glusterfs/NAME-*.vol and /usr/local/sbin/mount-NAME have them, to be changed.
    """

    name: str
    kind: str = "glusterfs"
    threads: int = 4
    cache_mb: int = 0

    @property
    def host(self) -> str:
        return f"{self.name}-server"


@dataclass(frozen=True)
class Fabric:
    """What each host's interface is limited to by tc; empty and 0: by nothing."""

    bandwidth: str = ""  # as tc spells it: 1gbit
    latency_us: int = 0  # needs netem in the kernel


@dataclass(frozen=True)
class Description:
    """The cluster. `accounting` starts MariaDB and slurmdbd (about 5 s)."""

    nodes: tuple[NodeType, ...]
    partitions: tuple[Partition, ...]
    users: tuple[str, ...] = ("ann",)
    accounting: bool = False
    settings: dict[str, str] = field(default_factory=dict)  # more lines of slurm.conf
    file_systems: tuple[FileSystem, ...] = ()
    fabric: Fabric = Fabric()

    def types(self) -> dict[str, NodeType]:
        """The type of each node by the node's name."""
        return {name: type_ for type_ in self.nodes for name in type_.names()}

    def hosts(self) -> list[str]:
        """All but the head: nodes, then file servers."""
        return [*self.types(), *(each.host for each in self.file_systems)]


def read(path: Path = SMALL) -> Description:
    """Read and check a description. Raises OSError or BadDescription."""
    try:
        content = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise BadDescription(f"{path}: {error}") from None
    nodes = tuple(_make(NodeType, each, path) for each in content.pop("nodes", []))
    partitions = tuple(_make(Partition, each, path) for each in content.pop("partitions", []))
    content["file_systems"] = tuple(_make(FileSystem, each, path) for each in content.get("file_systems", []))
    content["fabric"] = _make(Fabric, content.get("fabric", {}), path)
    found: Description = _make(Description, {**content, "nodes": nodes, "partitions": partitions}, path)
    types = {type_.name for type_ in nodes}
    if not nodes or not partitions or len(types) < len(nodes):
        raise BadDescription(f"{path}: there must be nodes, each with its own name, and partitions")
    for name in (*types, *(p.name for p in partitions), *found.users, *(f.name for f in found.file_systems)):
        if not _NAME.fullmatch(name):
            raise BadDescription(f"{path}: {name!r} is not a valid name; use up to 16 of a-z and 0-9")
    for partition in partitions:
        if unknown := set(partition.nodes) - types:
            raise BadDescription(
                f"{path}: partition {partition.name} has nodes {sorted(unknown)}, which are none"
            )
    for each in found.file_systems:
        if each.kind != "glusterfs":
            raise BadDescription(
                f"{path}: a file system of kind {each.kind!r}; glusterfs is the one there is"
            )
        if not (1 <= each.threads <= 64 and 0 <= each.cache_mb <= 4096):
            raise BadDescription(f"{path}: {each.name} needs 1 to 64 threads and a cache of 0 to 4096 MB")
        if Path("/", each.name).exists():
            raise BadDescription(f"{path}: /{each.name} is there on this machine; name {each.name} otherwise")
    return found


def _make(kind: Any, values: dict[str, Any], path: Path) -> Any:
    known = kind.__dataclass_fields__
    if unknown := sorted(set(values) - set(known)):
        raise BadDescription(f"{path}: {kind.__name__} has no {unknown}; there are {', '.join(known)}")
    lists = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    try:
        return kind(**lists)
    except TypeError as error:
        raise BadDescription(f"{path}: {error}") from None
