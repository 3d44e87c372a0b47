"""Other libraries that are measured for comparison: Open MPI, bare UCX, NCCL, NVSHMEM and bare CUDA copies.

Each peer is a small program in `programs/`. It is compiled against the installed library when it is first
needed. All programs share one measuring loop (`programs/measure.h`): random data that is checked once for
each case, warm-up, then samples.
"""

from __future__ import annotations

from dataclasses import dataclass

from peerway_measure.bench.peers.base import Installation, Missing, Peer
from peerway_measure.bench.peers.cuda import Cuda
from peerway_measure.bench.peers.nccl import Nccl
from peerway_measure.bench.peers.nvshmem import Nvshmem
from peerway_measure.bench.peers.openmpi import OpenMpi
from peerway_measure.bench.peers.plan import Case, Failed, NoTime, Plan, Result
from peerway_measure.bench.peers.ucx import Ucx

PEERS: dict[str, type[Peer]] = {peer.name: peer for peer in (OpenMpi, Ucx, Nccl, Nvshmem, Cuda)}
ALL = "all"

__all__ = [
    "PEERS",
    "Case",
    "Failed",
    "Installation",
    "Missing",
    "NoTime",
    "Peer",
    "PeerSelection",
    "Plan",
    "Result",
    "choose",
]


@dataclass(frozen=True, slots=True)
class PeerSelection:
    """A peer to measure and the chosen variants. `by_name`: the user named it, instead of "all"."""

    peer: Peer
    variants: frozenset[str]
    by_name: bool = True


def choose(names: str) -> list[PeerSelection]:
    """Read "openmpi,ucx/tag" or "all": the peers, each with the requested variants ("openmpi": all of its
    variants). Raises ValueError for a name that no peer or variant has.
    """
    if names.strip() == ALL:
        return [PeerSelection(peer(), frozenset(peer.variants), by_name=False) for peer in PEERS.values()]
    chosen: dict[str, set[str]] = {}
    for name in (part.strip() for part in names.split(",")):
        family = name.partition("/")[0]
        if family not in PEERS:
            raise ValueError(f"'{name}' is not a peer; there are {', '.join(PEERS)}, or {ALL}")
        every = PEERS[family].variants
        if "/" in name and name not in every:
            raise ValueError(f"'{name}' is not a variant of {family}; there are {', '.join(every)}")
        chosen.setdefault(family, set()).update({name} if "/" in name else every)
    return [PeerSelection(PEERS[family](), frozenset(variants)) for family, variants in chosen.items()]
