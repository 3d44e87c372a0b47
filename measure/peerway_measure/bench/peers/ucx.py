"""Bare UCX: put and get through UCP, with a put of a counter to tell that data has arrived; and tagged
messages.
"""

from __future__ import annotations

import re
import shutil
from typing import ClassVar

from peerway_measure.bench.peers import gpus, places
from peerway_measure.bench.peers.base import Ability, Installation, Missing, Peer, pairs
from peerway_measure.bench.peers.build import BuildError, build

INSTALL = "pip install libucx-cu13, or apt-get install libucx-dev"


def installed() -> places.Library | None:
    """Find UCX with its headers: in UCX_ROOT, in a wheel or in the system."""
    return places.search("UCX_ROOT", "libucx", "ucp/api/ucp.h", "libucp.so", "libucp.so.0")


def with_cuda() -> places.Library | None:
    """Find a UCX with headers that supports GPU memory."""
    library = installed()
    return library if library and (library.lib / "ucx" / "libuct_cuda.so").exists() else None


def version_of(library: places.Library) -> str:
    """The version in the headers, such as "1.22"."""
    text = (library.include / "ucp/api/ucp_version.h").read_text(errors="replace")
    numbers = [re.search(rf"#define\s+UCP_API_{part}\s+(\d+)", text) for part in ("MAJOR", "MINOR")]
    return ".".join(number[1] for number in numbers if number)


class Ucx(Peer):
    """`ucx` puts and gets; `ucx/tag` sends and receives."""

    name = "ucx"
    variants: ClassVar[tuple[str, ...]] = ("ucx", "ucx/tag")

    def _find(self, device: str) -> Installation | Missing:
        library = installed()
        compiler = shutil.which("cc") or shutil.which("gcc")
        if library is None:
            return Missing("UCX with its headers was not found", INSTALL)
        if compiler is None:
            return Missing("there is no C compiler", "apt-get install gcc")
        if device == "cuda":
            shortage = gpus.shortage()
            if shortage:
                return Missing(shortage, "run on a host with two NVIDIA GPUs")
            if with_cuda() is None:
                return Missing(f"the UCX in {library.lib} has no CUDA support", "pip install libucx-cu13")
        flags = [f"-I{library.include}", *library.run_path, "-lucp", "-lucs", "-ldl", "-lm"]
        version = version_of(library)
        try:
            program = build("ucx.c", [compiler, "-std=gnu11", "-O2", "-D_GNU_SOURCE"], flags, version)
        except BuildError as error:
            return Missing(f"the program could not be built: {error}", error.remedy or INSTALL)
        return Installation(f"UCX {version}", program, library.environment)

    def ability(self, via: str, device: str) -> Ability:
        """Faces take one put for each block. Only host memory does this in reasonable time."""
        if via == "ucx/tag":
            return pairs("pingpong", "contiguous")
        tests = "put_latency pingpong cube put_bw put_bibw put_mbw_mr get_latency get_bw"
        able = pairs(tests, "contiguous")
        if device == "host":
            able |= pairs("signal_latency", "contiguous") | pairs("put_latency pingpong cube", "block")
        return able
