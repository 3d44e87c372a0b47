"""Bare copies of the CUDA runtime: the limit of what a path between two GPUs can reach."""

from __future__ import annotations

from typing import ClassVar

from peerway.bench.peers import gpus, launch, places
from peerway.bench.peers.base import Ability, Found, Missing, Peer, pairs
from peerway.bench.peers.build import BuildError, build


class Cuda(Peer):
    """`cuda` is cudaMemcpyPeerAsync in a window, with nothing around it."""

    name = "cuda"
    variants: ClassVar[tuple[str, ...]] = ("cuda",)

    def _find(self, device: str) -> Found | Missing:
        if device != "cuda":
            return Missing("cudaMemcpyPeerAsync moves GPU memory only", "use --device cuda")
        shortage = gpus.shortage()
        if shortage:
            return Missing(shortage, "run on a host with two NVIDIA GPUs")
        return self.built(gpus.present().architecture)

    def built(self, architecture: str) -> Found | Missing:
        """Build the program for e.g. "sm_90", whether or not there is such a GPU."""
        root = places.cuda_root()
        if root is None:
            return Missing("nvcc was not found", "set CUDA_HOME, or pip install nvidia-cuda-nvcc")
        nvcc = [str(root / "bin" / "nvcc"), "-std=c++17", "-O2", f"-arch={architecture}"]
        try:
            program = build("cuda.cu", nvcc, places.nvcc_flags(root), "runtime")
        except BuildError as error:
            return Missing(f"the program could not be built: {error}", "install the CUDA toolkit")
        return Found("CUDA runtime", program)

    def ability(self, via: str, device: str) -> Ability:
        """Bandwidth of one run of bytes."""
        return pairs("put_bw", "contiguous") if device == "cuda" else frozenset()

    def job(self, found: Found, arguments: list[str], ranks: int) -> launch.Job:
        """Start the ranks, linked by sockets."""
        return launch.Job([[str(found.program), *arguments]] * ranks, found.environment, linked=True)
