"""Bare copies of the CUDA runtime: the limit for any path between two GPUs."""

from __future__ import annotations

from typing import ClassVar

from peerway_measure.bench.peers.base import Ability, Installation, Missing, pairs
from peerway_measure.bench.peers.nvcc import GpuPeer, compiled


class Cuda(GpuPeer):
    """`cuda` is cudaMemcpyPeerAsync in a window, without any synchronisation for signals."""

    name = "cuda"
    variants: ClassVar[tuple[str, ...]] = ("cuda",)

    def built(self, architecture: str) -> Installation | Missing:
        """Build the program against the toolkit's runtime."""
        program = compiled("cuda.cu", architecture, "install the CUDA toolkit", (), (), "runtime")
        return program if isinstance(program, Missing) else Installation("CUDA runtime", program)

    def ability(self, via: str, device: str) -> Ability:
        """Only the bandwidth of contiguous bytes."""
        return pairs("put_bw", "contiguous")
