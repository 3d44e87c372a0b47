"""Decides which hosts a job runs on, spreads its ranks over them, and finds out how each is reached.

A rank on another host is started through a stand-in process on this host (stand_in.py). Everything else is as
on one host.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import socket
import subprocess
import sys
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from peerway.launch import rendezvous
from peerway.launch.places import Place, assign, read_host
from peerway.launch.stand_in import Far

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

SSH = ("ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "-o", "ServerAliveInterval=15")
# Each srun is a step of one task, beside other steps of the allocation.
SRUN = (
    *("srun", "--quiet", "--overlap", "--nodes=1", "--ntasks=1", "--mpi=none", "--cpu-bind=none"),
    *("--unbuffered", "--nodelist"),
)


class BadHosts(ValueError):
    """The job cannot run on these hosts; the message says why."""


@dataclass(frozen=True)
class Host:
    """A host and its number of ranks; None stands for a share of the remaining ranks."""

    name: str
    slots: int | None = None


def parse(text: str) -> list[Host]:
    """Read "a,b:2". Raises BadHosts."""
    return [_host(part.strip(), part) for part in text.split(",") if part.strip()]


def parse_file(text: str) -> list[Host]:
    """Read a host file. Each line has a host, as "a", "a:2" or "a slots=2"; # begins a comment. Raises
    BadHosts.
    """
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    return [_host(re.sub(r"\s+slots\s*=\s*", ":", line), line) for line in lines if line]


def _host(text: str, original: str) -> Host:
    match = re.fullmatch(r"([A-Za-z0-9_][A-Za-z0-9_.@%-]*|\[[0-9A-Fa-f:.]+\])(?::([1-9][0-9]{0,4}))?", text)
    if not match:
        raise BadHosts(
            f"'{original}' is not a host; write a name, or a name and its number of ranks as node1:2"
        )
    return Host(match[1].strip("[]"), int(match[2]) if match[2] else None)


def of_slurm(environment: Mapping[str, str], expand: Callable[[str], list[str]]) -> list[Host]:
    """The nodes of a Slurm allocation, with the number of ranks of each. Empty if it has only one node."""
    nodes = environment.get("SLURM_JOB_NODELIST", "")
    if not environment.get("SLURM_JOB_ID") or environment.get("SLURM_JOB_NUM_NODES", "1") in ("", "1"):
        return []
    counts: list[int] = []
    for part in environment.get("SLURM_TASKS_PER_NODE", "").split(","):  # "2(x3),1"
        if match := re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part):
            counts += [int(match[1])] * int(match[2] or 1)
    names = expand(nodes)
    if len(counts) != len(names):
        return [Host(name) for name in names]
    return [Host(name, count) for name, count in zip(names, counts, strict=True)]


def slurm_names(nodes: str) -> list[str]:
    """The hosts that "node[01-03]" stands for, according to Slurm. Raises BadHosts."""
    try:
        done = subprocess.run(
            ["scontrol", "show", "hostnames", nodes], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise BadHosts(
            f"the nodes of this Slurm job are not known: scontrol show hostnames: {error}"
        ) from error
    return done.stdout.split()


def spread(hosts: Sequence[Host], ranks: int) -> list[str]:
    """The host of each rank, in blocks; hosts without a number share the remaining ranks. Raises BadHosts."""
    merged: dict[str, int | None] = {}
    for host in hosts:
        before = merged.get(host.name, 0)
        merged[host.name] = None if host.slots is None or before is None else before + host.slots
    open_ended = [name for name, slots in merged.items() if slots is None]
    unplaced = max(0, ranks - sum(slots or 0 for slots in merged.values()))
    bounds = [-(-unplaced * part // max(1, len(open_ended))) for part in range(len(open_ended) + 1)]
    merged |= {
        name: high - low for name, (low, high) in zip(open_ended, itertools.pairwise(bounds), strict=True)
    }
    result = [name for name, slots in merged.items() for _ in range(slots or 0)]
    if len(result) < ranks:
        raise BadHosts(
            f"{ranks} ranks were asked for, and the hosts take {len(result)}: {_listed(merged)}; --hosts "
            "can name more"
        )
    return result[:ranks]


def _listed(slots: Mapping[str, int | None]) -> str:
    return ", ".join(f"{name}:{count}" for name, count in slots.items())


def rendezvous_of(of_ranks: Sequence[str], agent: Sequence[str]) -> AbstractContextManager[str]:
    """The addresses of rank 0, held while the block runs; none if all ranks are on this host, where they
    meet at a Unix socket. Raises NoRendezvous.
    """
    if agent or not is_this_host(of_ranks[0]):
        return rendezvous.held_at(of_ranks[0], tuple(agent) or SSH)
    return rendezvous.held_here() if len(set(of_ranks)) > 1 else contextlib.nullcontext("")


def places(
    of_ranks: Sequence[str], agent: Sequence[str], bind: str, visible: str | None, addresses: str
) -> list[Place]:
    """Where and how each rank is started; `addresses` are those of rank 0, as rendezvous_of() gives them."""
    counts = Counter(of_ranks)
    here = {name for name in counts if not agent and is_this_host(name)}
    numbers = {name: itertools.count() for name in counts}
    ours = assign(sum(counts[name] for name in here), read_host(visible=visible)) if here else []
    ordered = iter(ours)
    result = []
    for name in of_ranks:
        local = next(numbers[name])
        settings = {"PEERWAY_LOCAL_RANK": str(local), "PEERWAY_LOCAL_SIZE": str(counts[name])}
        if addresses:
            settings["PEERWAY_RENDEZVOUS"] = addresses
        if name in here:
            place = next(ordered)
            cores = place.cores if bind == "auto" else frozenset[int]()
            result.append(Place(cores, settings=tuple(settings.items()), host=name))
            continue
        far = Far(name, tuple(agent) or SSH, local, counts[name], bind)
        through = (sys.executable, "-m", "peerway.launch.stand_in", json.dumps(asdict(far)))
        result.append(Place(through=through, settings=tuple(settings.items()), host=name))
    return result


def is_this_host(name: str) -> bool:
    """Whether the name means this host, so that no connection is needed."""
    own = socket.gethostname()
    return name in ("localhost", own, own.partition(".")[0])
