"""The description of a virtual cluster: types of nodes with their counts, partitions, users. It is read from
TOML and checked.
"""

from __future__ import annotations

import re
from dataclasses import MISSING, Field, dataclass, field
from pathlib import Path
from typing import Any

from peerway_common.located_toml import LocatedToml
from peerway_common.printable import printable

HERE = Path(__file__).parent
SMALL = HERE / "small.toml"
_TYPES = {
    "str": (str, "a text"),
    "int": (int, "a whole number"),
    "bool": (bool, "true or false"),
    "tuple[str, ...]": (list, "a list of texts"),
    "dict[str, str]": (dict, "a table of texts"),
}
LEAST_THREADS = {"glusterfs": 1, "nfs": 2}  # threads of a server, by the kind of its file system
_NAME = re.compile(r"[a-z][a-z0-9]{0,15}")
_BANDWIDTH = re.compile(r"(\d+(\.\d+)?([kmgt]i?)?(bit|bps))?", re.IGNORECASE)  # as tc spells it
_LEAST = {  # the least values of whole numbers; a file system's depend on its kind
    **dict.fromkeys(("count", "sockets", "cores", "memory_mb", "gpu_memory_mb"), 1),
    **dict.fromkeys(("gpus", "latency_us"), 0),
}
_MOST_HOSTS = 1000


class BadDescription(ValueError):
    """The described cluster cannot be built; the message says what and why."""


@dataclass(frozen=True)
class NodeType:
    """Nodes of one kind: name-1, name-2, ... Slurm sees the described sizes, regardless of what this machine
    has.
    """

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
    """A file system that a host of its own serves. The head and all nodes mount it at /NAME.

    `threads` are the server's. `cache_mb` is the cache of each client of GlusterFS; with 0, neither the
    client nor its kernel caches anything. An upgrade can change these settings in the copy's
    /etc/glusterfs/NAME-*.vol or /etc/ganesha/NAME.conf, and /usr/local/sbin/mount-NAME.
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
    """Limits that tc sets on each host's interface. Empty and 0 stand for no limit."""

    bandwidth: str = ""  # in tc's spelling, such as 1gbit
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
        """All hosts except the head: nodes, then file servers."""
        return [*self.types(), *(each.host for each in self.file_systems)]


_CALLED = {
    NodeType: "a type of nodes",
    Partition: "a partition",
    FileSystem: "a file system",
    Fabric: "the fabric",
    Description: "a cluster",
}


def read(path: Path = SMALL) -> Description:
    """Read and check a description. Raises OSError or BadDescription."""
    document = LocatedToml.read(path, BadDescription)
    content = dict(document.values)
    for table, kind in (("nodes", NodeType), ("partitions", Partition), ("file_systems", FileSystem)):
        listed = content.get(table, [])
        if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
            document.wrong("", table, f"{table} must be tables: [[{table}]]")
        content[table] = tuple(_make(kind, each, document, table, at) for at, each in enumerate(listed))
    content["fabric"] = _make(Fabric, content.get("fabric", {}), document, "fabric")
    description: Description = _make(Description, content, document, "")
    _check_names(description, document)
    if len(description.hosts()) > _MOST_HOSTS:
        why = f"that makes {len(description.hosts()):,} hosts; a copy has at most {_MOST_HOSTS:,}"
        document.wrong("nodes", "count", why)
    if not _BANDWIDTH.fullmatch(description.fabric.bandwidth):
        why = f"{description.fabric.bandwidth!r} is not a bandwidth; write for example 800mbit or 10gbit"
        document.wrong("fabric", "bandwidth", why)
    for at, each in enumerate(description.file_systems):
        _check_file_system(each, document, at)
    return description


def _check_names(description: Description, document: LocatedToml) -> None:
    types = [type_.name for type_ in description.nodes]
    if not description.nodes or not description.partitions:
        document.wrong("", "nodes", "there must be nodes, each with its own name, and partitions")
    if twice := [at for at, name in enumerate(types) if name in types[:at]]:
        document.wrong("nodes", "name", f"two types of nodes are called {types[twice[0]]!r}", twice[0])
    named = [("nodes", types), ("partitions", [p.name for p in description.partitions])]
    named.append(("file_systems", [f.name for f in description.file_systems]))
    entries = [(table, "name", name, at) for table, names in named for at, name in enumerate(names)]
    for table, key, name, at in [*entries, *(("", "users", name, 0) for name in description.users)]:
        if not (isinstance(name, str) and _NAME.fullmatch(name)):
            document.wrong(table, key, f"{name!r} is not a valid name; use up to 16 of a-z and 0-9", at)
    for at, name in enumerate(description.users):
        if name == "root" or name in description.users[:at]:
            document.wrong(
                "", "users", f"{name} is there already; name each user of the copy once, none root"
            )
    if not description.users:
        document.wrong("", "users", 'a copy needs a user; write for example users = ["ann"]')
    for at, partition in enumerate(description.partitions):
        if unknown := sorted(set(partition.nodes) - set(types)):
            why = (
                f"partition {partition.name} names {', '.join(unknown)}, which is not in [[nodes]]; "
                f"there are {', '.join(sorted(types))}"
            )
            document.wrong("partitions", "nodes", why, at)


def _check_file_system(each: FileSystem, document: LocatedToml, at: int) -> None:
    if each.kind not in LEAST_THREADS:
        why = f"{each.name} has the kind {each.kind!r}; there are {', '.join(LEAST_THREADS)}"
        document.wrong("file_systems", "kind", why, at)
    least = LEAST_THREADS[each.kind]
    if not (least <= each.threads <= 64 and 0 <= each.cache_mb <= 4096):
        key = "cache_mb" if least <= each.threads <= 64 else "threads"
        why = f"{each.name} needs {least} to 64 threads and a cache of 0 to 4096 MB"
        document.wrong("file_systems", key, why, at)
    if each.kind == "nfs" and each.cache_mb:
        why = f"{each.name} is NFS, whose clients cache in their kernels' memory; leave cache_mb out"
        document.wrong("file_systems", "cache_mb", why, at)
    if Path("/", each.name).exists():
        why = f"/{each.name} exists on this machine; give the file system another name"
        document.wrong("file_systems", "name", why, at)


def _make(kind: Any, values: Any, document: LocatedToml, table: str, number: int = 0) -> Any:
    """An object of `kind` from its table, whose keys are its fields."""
    fields = kind.__dataclass_fields__
    if not isinstance(values, dict):
        document.wrong("", table, f"{table} must be a table: [{table}]")
    for key, value in values.items():
        if key not in fields:
            why = f"{_CALLED[kind]} has no {printable(key)!r}; there are {', '.join(fields)}"
            document.wrong(table, key, why, number)
        wanted, called = _TYPES.get(fields[key].type, (object, ""))
        if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
            document.wrong(table, key, f"{key} is {value!r}, but must be {called}", number)
        if isinstance(value, int) and value < _LEAST.get(key, value):
            document.wrong(table, key, f"{key} is {value}, but must be {_LEAST[key]} or more", number)
    if lacking := [name for name, field in fields.items() if _needed(field) and name not in values]:
        document.wrong(table, lacking[0], f"{_CALLED[kind]} needs {lacking[0]}", number)
    return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in values.items()})


def _needed(field_: Field[Any]) -> bool:
    return field_.default is MISSING and field_.default_factory is MISSING
