"""What people use today, measured beside Peerway: Open MPI, bare UCX, NCCL, NVSHMEM and bare CUDA copies.

Each peer is a small program in `programs/`, compiled when it is first needed against the library that is
installed. All share one measuring loop (`programs/measure.h`): random data validated once per case, warm-up,
then samples.
"""

from __future__ import annotations

from peerway.bench.peers.base import Found, Missing, Peer
from peerway.bench.peers.cuda import Cuda
from peerway.bench.peers.nccl import Nccl
from peerway.bench.peers.nvshmem import Nvshmem
from peerway.bench.peers.openmpi import OpenMpi
from peerway.bench.peers.plan import Case, Failed, Plan, Result
from peerway.bench.peers.ucx import Ucx

PEERS: dict[str, type[Peer]] = {peer.name: peer for peer in (OpenMpi, Ucx, Nccl, Nvshmem, Cuda)}

__all__ = ["PEERS", "Case", "Failed", "Found", "Missing", "Peer", "Plan", "Result", "choose"]


def choose(names: str) -> dict[Peer, frozenset[str]]:
    """Read "openmpi,ucx/tag": the peers, and of each the variants asked for ("openmpi": all of them).

    Raises ValueError for a name that no peer or variant has.
    """
    chosen: dict[str, tuple[Peer, set[str]]] = {}
    for name in (part.strip() for part in names.split(",")):
        family = name.partition("/")[0]
        if family not in PEERS:
            raise ValueError(f"'{name}' is not a peer; there are {', '.join(PEERS)}")
        peer, variants = chosen.setdefault(family, (PEERS[family](), set()))
        if "/" in name and name not in peer.variants:
            raise ValueError(f"'{name}' is not a variant of {family}; there are {', '.join(peer.variants)}")
        variants |= {name} if "/" in name else set(peer.variants)
    return {peer: frozenset(variants) for peer, variants in chosen.values()}
