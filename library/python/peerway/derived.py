"""The values that Peerway derives from this machine for settings that are not given. `peerway config` shows
them, and where each comes from.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple


class Derived(NamedTuple):
    """A value and its source."""

    value: str
    source: str


def derive(name: str) -> Derived | None:
    """The derived value of a setting that is empty; None if it has none."""
    result = _SETTINGS.get(name)
    return None if result is None else result()


def machine() -> dict[str, tuple[str, Derived]]:
    """Facts about this machine beyond the settings, each with what it is used for."""
    return {
        "config_file": ("Where settings are read from, beside the environment.", _config_file()),
        "cores": ("CPU cores that this process may run on; ranks that wait share them.", _cores()),
        "gpus": ("GPUs that this process sees.", _gpus()),
    }


def _file(path: str, source: str, missing: str) -> Derived:
    return Derived(path, source if Path(path).is_file() else f"{source}; {missing}")


def _config_file() -> Derived:
    from peerway import _core

    return _file(f"{_core.config_home()}/config.json", _home("XDG_CONFIG_HOME"), "no such file")


def _routes() -> Derived:
    from peerway import _core

    missing = "not there: `peerway tune` makes it; until then the paths' order of preference decides"
    return _file(_core.default_table_file(), "the fingerprint of this machine", missing)


def _rules() -> Derived:
    from peerway import _core

    return _file(_core.default_rules_file(), _home("XDG_CONFIG_HOME"), "no such file, so no rules")


def _cache() -> Derived:
    from peerway import _core

    return Derived(_core.cache_home(), _home("XDG_CACHE_HOME"))


def _home(variable: str) -> str:
    return variable if os.environ.get(variable, "").startswith("/") else "HOME"


def _cores() -> Derived:
    return Derived(str(len(os.sched_getaffinity(0))), "the CPU affinity of this process")


def _gpus() -> Derived:
    from peerway import _core

    lines = [f"{name} ({model})" for name, model in _core.devices() if name != "host"]
    origin = "HIP" if lines and lines[0].startswith("hip") else "the CUDA driver"
    return Derived(", ".join(lines) or "none", origin if lines else _core.why_none("cuda"))


def _device() -> Derived:
    from peerway import _core

    gpus = [name for name, _ in _core.devices() if name != "host"]
    if not gpus:
        return Derived("none", "no GPU here")
    place = os.environ.get("PEERWAY_LOCAL_RANK", "")
    if place.isdecimal():
        return Derived(gpus[int(place) % len(gpus)], f"local rank {place} modulo {len(gpus)} GPUs")
    return Derived(gpus[0] if len(gpus) == 1 else "by rank", f"the local rank modulo {len(gpus)} GPUs")


def _library(name: str) -> Callable[[], Derived]:
    return lambda: Derived(name, "searched for when it is needed; `peerway doctor` says what is found")


_SETTINGS: dict[str, Callable[[], Derived]] = {
    "paths": lambda: Derived("all", "the route table and the rules"),
    "routes": _routes,
    "rules": _rules,
    "cache": _cache,
    "device": _device,
    "cuda_library": _library("libcuda.so.1"),
    "hip_library": _library("libamdhip64.so"),
    "hiprtc_library": _library("libhiprtc.so"),
    "nvml_library": _library("libnvidia-ml.so.1"),
    "nvrtc_library": _library("libnvrtc.so"),
    "ucx_library": _library("libucp.so.0"),
    "gdrcopy_library": _library("libgdrapi.so.2"),
    "nic": lambda: Derived("none", "no NIC is used unless it is named"),
    "trace_cupti": lambda: Derived(
        "libcupti.so.13, else 12", "`peerway trace` looks for it in wheels and toolkits"
    ),
    "trace_region": lambda: Derived("all", "no region was named"),
    "trace_ranks": lambda: Derived("all", "no ranks were named"),
    "trace_dir": lambda: Derived("none", "`peerway trace` sets it for the ranks"),
    "trace_memory": lambda: Derived("none", "`peerway trace` sets it for the ranks"),
    "host_id": lambda: Derived("this host", "the boot id and the PID namespace"),
}
