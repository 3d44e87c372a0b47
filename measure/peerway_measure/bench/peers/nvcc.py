"""The base class of peers that move only GPU memory. They need two GPUs and a program built by nvcc."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from peerway_measure.bench.peers import gpus, places
from peerway_measure.bench.peers.base import Installation, Missing, Peer
from peerway_measure.bench.peers.build import BuildError, build

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class GpuPeer(Peer):
    """A library that moves data between GPUs."""

    devices: ClassVar[tuple[str, ...]] = ("cuda",)

    def _find(self, device: str) -> Installation | Missing:
        shortage = gpus.shortage()
        if shortage:
            return Missing(shortage, "run on a host with two NVIDIA GPUs")
        return self.built(gpus.present().architecture)

    @abstractmethod
    def built(self, architecture: str) -> Installation | Missing:
        """Build the program for an architecture such as "sm_90", whether or not there is such a GPU."""


def compiled(
    source: str, architecture: str, install: str, options: Sequence[str], flags: Sequence[str], version: str
) -> Path | Missing:
    """Compile a file of programs/ for a library of this version. `install` says how to get missing parts of
    the library.
    """
    root = places.cuda_root()
    if root is None:
        return Missing("nvcc was not found", "set CUDA_HOME, or pip install nvidia-cuda-nvcc")
    nvcc = [str(root / "bin" / "nvcc"), "-std=c++17", "-O2", *options, f"-arch={architecture}"]
    try:
        return build(source, nvcc, [*places.nvcc_flags(root), *flags], version)
    except BuildError as error:
        return Missing(f"the program could not be built: {error}", error.remedy or install)
