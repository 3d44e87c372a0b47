"""NCCL between GPUs: grouped send and receive, launched or in a graph; put with signal; faces packed."""

from __future__ import annotations

import re
from typing import ClassVar

from peerway_measure.bench.peers import places
from peerway_measure.bench.peers.base import Ability, Installation, Missing, pairs
from peerway_measure.bench.peers.nvcc import GpuPeer, compiled

INSTALL = "pip install nvidia-nccl-cu13"

# One host only, so its loopback is enough; NVLink multicast plays no part between two ranks.
ENVIRONMENT = {"NCCL_NVLS_ENABLE": "0", "NCCL_SOCKET_IFNAME": "lo"}


class Nccl(GpuPeer):
    """`nccl` sends and receives; `/graph` does the same, captured and replayed; `/rma` puts into a registered
    window; `/pack` packs faces first.
    """

    name = "nccl"
    variants: ClassVar[tuple[str, ...]] = ("nccl", "nccl/graph", "nccl/rma", "nccl/pack")

    def built(self, architecture: str) -> Installation | Missing:
        """Build the program against the library that is installed."""
        library = places.search("NCCL_HOME NCCL_ROOT", "nvidia/nccl", "nccl.h", "libnccl.so.2")
        if library is None:
            return Missing("NCCL with its header was not found", INSTALL)
        flags = [f"-I{library.include}", *library.nvcc_link]
        version = _version_in((library.include / "nccl.h").read_text(errors="replace"))
        program = compiled("nccl.cu", architecture, INSTALL, (), flags, version)
        if isinstance(program, Missing):
            return program
        return Installation(f"NCCL {version}", program, ENVIRONMENT | library.environment)

    def ability(self, via: str, device: str) -> Ability:
        """No gets. Faces only if they are packed."""
        if via == "nccl/pack":
            return pairs("cube put_latency pingpong", "block")
        if via == "nccl/graph":
            return pairs("put_latency plan_latency exchange", "contiguous")
        tests = "put_latency pingpong signal_latency cube put_bw put_bibw put_mbw_mr plan_latency exchange"
        return pairs(tests, "contiguous")


def _version_in(header: str) -> str:
    numbers = [re.search(rf"#define\s+NCCL_{part}\s+(\d+)", header) for part in ("MAJOR", "MINOR", "PATCH")]
    return ".".join(number[1] for number in numbers if number)
