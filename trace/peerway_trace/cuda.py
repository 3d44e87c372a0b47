"""The library that CUDA and NVTX load into traced programs: `libpeerway_trace_cuda.so`, which records kernels
and copies with CUPTI, and NVTX ranges. Each has an environment variable that names the library, so nothing is
loaded into other programs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path


def variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment variables that load it into a command. Those that the user has set are kept."""
    library = injected()
    if library is None:
        return {}
    wanted = {"CUDA_INJECTION64_PATH": str(library), "NVTX_INJECTION64_PATH": str(library)}
    if cupti := next(iter(cupti_libraries()), None):
        wanted["PEERWAY_TRACE_CUPTI"] = str(cupti)
    return {name: value for name, value in wanted.items() if not environment.get(name)}


def injected() -> Path | None:
    """The path of the library, which is beside the extension module."""
    from peerway import _core

    library = Path(_core.__file__).parent / "lib" / "libpeerway_trace_cuda.so"
    return library if library.exists() else None


def cupti_libraries() -> Iterator[Path]:
    """CUPTI's libraries in wheels and toolkits, the newest first."""
    for folder in dict.fromkeys(Path(entry) for entry in sys.path if entry):
        yield from sorted(folder.glob("nvidia/cu[0-9]*/lib/libcupti.so.[0-9]*"), reverse=True)
        yield from sorted(folder.glob("nvidia/cuda_cupti/lib/libcupti.so.[0-9]*"), reverse=True)
    for toolkit in sorted(Path("/usr/local").glob("cuda*"), reverse=True):
        yield from sorted(toolkit.glob("extras/CUPTI/lib64/libcupti.so.[0-9]*"))[:1]
        yield from sorted(toolkit.glob("lib64/libcupti.so.[0-9]*"))[:1]
