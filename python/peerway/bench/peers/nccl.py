"""NCCL between GPUs: grouped send and receive, put with signal, pack + send + unpack in stream order."""

from __future__ import annotations

import re
from typing import ClassVar

from peerway.bench.peers import gpus, launch, places
from peerway.bench.peers.base import Ability, Found, Missing, Peer, pairs
from peerway.bench.peers.build import BuildError, build

INSTALL = "pip install nvidia-nccl-cu13"

# One host only, so its loopback is enough; NVLink multicast plays no part between two ranks.
ENVIRONMENT = {"NCCL_NVLS_ENABLE": "0", "NCCL_SOCKET_IFNAME": "lo"}


class Nccl(Peer):
    """`nccl` sends and receives; `/rma` puts into a registered window; `/pack` packs faces."""

    name = "nccl"
    variants: ClassVar[tuple[str, ...]] = ("nccl", "nccl/rma", "nccl/pack")

    def _find(self, device: str) -> Found | Missing:
        if device != "cuda":
            return Missing("NCCL moves GPU memory only", "use --device cuda")
        shortage = gpus.shortage()
        if shortage:
            return Missing(shortage, "run on a host with two NVIDIA GPUs")
        return self.built(gpus.present().architecture)

    def built(self, architecture: str) -> Found | Missing:
        """Build the program for e.g. "sm_90", whether or not there is such a GPU."""
        library = places.search("NCCL_HOME NCCL_ROOT", "nvidia/nccl", "nccl.h", "libnccl.so.2")
        root = places.cuda_root()
        if library is None:
            return Missing("NCCL with its header was not found", INSTALL)
        if root is None:
            return Missing("nvcc was not found", "set CUDA_HOME, or pip install nvidia-cuda-nvcc")
        nvcc = [str(root / "bin" / "nvcc"), "-std=c++17", "-O2", f"-arch={architecture}"]
        flags = [
            f"-I{library.include}",
            *places.nvcc_flags(root),
            f"-L{library.lib}",
            f"-l:{library.file.name}",
        ]
        version = _version_in((library.include / "nccl.h").read_text(errors="replace"))
        try:
            program = build("nccl.cu", nvcc, [*flags, "-Xlinker", f"-rpath={library.lib}"], version)
        except BuildError as error:
            return Missing(f"the program could not be built: {error}", INSTALL)
        environment = ENVIRONMENT | {"LD_LIBRARY_PATH": places.before("LD_LIBRARY_PATH", library.lib)}
        return Found(f"NCCL {version}", program, environment)

    def ability(self, via: str, device: str) -> Ability:
        """No gets; faces only when packed."""
        if device != "cuda":
            return frozenset()
        if via == "nccl/pack":
            return pairs("cube put_latency pingpong", "block")
        return pairs("put_latency pingpong signal_latency cube put_bw put_bibw put_mbw_mr", "contiguous")

    def job(self, found: Found, arguments: list[str], ranks: int) -> launch.Job:
        """Start the ranks, linked by sockets."""
        return launch.Job([[str(found.program), *arguments]] * ranks, found.environment, linked=True)


def _version_in(header: str) -> str:
    numbers = [re.search(rf"#define\s+NCCL_{part}\s+(\d+)", header) for part in ("MAJOR", "MINOR", "PATCH")]
    return ".".join(number[1] for number in numbers if number)
