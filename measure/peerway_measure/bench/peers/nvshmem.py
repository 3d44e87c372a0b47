"""NVSHMEM between GPUs: put with signal on a stream, from inside a kernel, and after a pack kernel."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from peerway_measure.bench.peers import places
from peerway_measure.bench.peers.base import Ability, Installation, Missing, Progress, pairs
from peerway_measure.bench.peers.nvcc import GpuPeer, compiled

if TYPE_CHECKING:
    from collections.abc import Generator

    from peerway_measure.bench.peers.plan import Failed, NoTime, Plan, Result

INSTALL = "pip install nvidia-nvshmem-cu13"
MIB = 1 << 20
HEAP_SLACK = 256 * MIB

# One host only: the loopback interface is enough to connect, and no network is used between the GPUs.
ENVIRONMENT = {
    "NVSHMEM_DISABLE_NVLS": "1",
    "NVSHMEM_REMOTE_TRANSPORT": "none",
    "NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME": "lo",
}


class Nvshmem(GpuPeer):
    """`nvshmem` is stream-ordered; `/kernel` puts from inside a kernel; `/pack` packs faces."""

    name = "nvshmem"
    variants: ClassVar[tuple[str, ...]] = ("nvshmem", "nvshmem/kernel", "nvshmem/pack")

    def built(self, architecture: str) -> Installation | Missing:
        """Build the program against the library that is installed."""
        library = places.search(
            "NVSHMEM_HOME NVSHMEM_PREFIX", "nvidia/nvshmem", "nvshmem.h", "libnvshmem_host.so*"
        )
        if library is None:
            return Missing("NVSHMEM with its headers was not found", INSTALL)
        flags = [f"-I{library.include}", f"-L{library.lib}", "-lnvshmem_device", *library.nvcc_link]
        header = library.include / "non_abi" / "nvshmem_version.h"
        version = _version_in(header.read_text(errors="replace")) if header.is_file() else ""
        program = compiled("nvshmem.cu", architecture, INSTALL, ("-rdc=true",), flags, version)
        if isinstance(program, Missing):
            return program
        return Installation(f"NVSHMEM {version}".strip(), program, ENVIRONMENT | library.environment)

    def run(self, plan: Plan, progress: Progress) -> Generator[Result | Failed | NoTime, None, None]:
        """As Peer.run(), with a symmetric heap that holds the largest case."""
        installation = self.find(plan.device)
        if isinstance(installation, Installation):
            need = max((2 * case.extent + 2 * case.bytes for case in plan.cases), default=0) + HEAP_SLACK
            environment = installation.environment | {"NVSHMEM_SYMMETRIC_SIZE": str(-(-need // MIB) * MIB)}
            self._installations[plan.device] = replace(installation, environment=environment)
        return super().run(plan, progress)

    def ability(self, via: str, device: str) -> Ability:
        """Faces from inside a kernel or packed. A put from the host is contiguous."""
        there_and_back = "put_latency pingpong cube"
        if via == "nvshmem/pack":
            return pairs(there_and_back, "block")
        tests = f"{there_and_back} signal_latency put_bw put_bibw put_mbw_mr get_latency get_bw"
        able = pairs(tests, "contiguous")
        if via == "nvshmem/kernel":
            return able | pairs(there_and_back, "block") | pairs("kernel_latency", "contiguous")
        return able | pairs("plan_latency exchange", "contiguous")


def _version_in(header: str) -> str:
    parts = ("MAJOR", "MINOR", "PATCH")
    numbers = [re.search(rf"#define\s+NVSHMEM_VENDOR_{part}_VERSION\s+(\d+)", header) for part in parts]
    return ".".join(number[1] for number in numbers if number)
