"""The functions of NVML that the agent calls, as pynvml spells them, over the files that gpus.py describes.

The variable FAKE_GPUS names the folder gpus/NODE. As with a driver, a dead process uses nothing, even if its
file is left.

A GPU with a list "mig" is in MIG mode. As with a driver, the utilization of the GPU and its instances is then
known only through GPM, and the GPU's processes are those of all instances.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NVML_TEMPERATURE_GPU = 0
NVML_CLOCK_SM = 1
NVML_ERROR_NOT_SUPPORTED = 3
NVML_ERROR_NOT_FOUND = 6
NVML_ERROR_FUNCTION_NOT_FOUND = 13
NVML_GPM_SUPPORT_VERSION = 1
nvmlMemory_v2 = 0x02000028
nvmlClocksEventReasonSwPowerCap = 0x4
nvmlClocksEventReasonSwThermalSlowdown = 0x20
nvmlClocksThrottleReasonHwSlowdown = 0x8
nvmlClocksThrottleReasonHwThermalSlowdown = 0x40
nvmlClocksThrottleReasonHwPowerBrakeSlowdown = 0x80
IDLE_WATTS, LIMIT_WATTS = 60, 400
RESERVED = 600 << 20  # the part of a GPU's memory that the driver reserves
_REASONS = {"": 0, "power": 0x4, "thermal": 0x20, "hardware": 0x8 | 0x80}


class NVMLError(Exception):
    """Like pynvml's: `value` is the code."""

    def __init__(self, value: int) -> None:
        super().__init__(f"NVML error {value}")
        self.value = value


@dataclass
class _Struct:
    """A C struct's fields."""

    gpu: float = 0
    memory: float = 0
    total: int = 0
    used: int = 0
    pid: int = 0
    usedGpuMemory: int = 0


def _folder() -> Path:
    return Path(os.environ["FAKE_GPUS"])


def _uses(device: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    uses = []
    for file in (_folder() / "use").glob(f"{device['uuid']}.*"):
        pid = int(file.suffix[1:])
        if Path(f"/proc/{pid}").exists():
            uses.append((pid, json.loads(file.read_text())))
    return uses


def nvmlInit() -> None:
    """Fail as without a driver if the node has no GPU."""
    if not json.loads((_folder() / "gpus.json").read_text()):
        raise NVMLError(9)  # NVML_ERROR_DRIVER_NOT_LOADED


def nvmlShutdown() -> None:
    """Does nothing."""


def nvmlDeviceGetCount() -> int:
    return len(json.loads((_folder() / "gpus.json").read_text()))


def nvmlDeviceGetHandleByIndex(index: int) -> dict[str, Any]:
    device: dict[str, Any] = json.loads((_folder() / "gpus.json").read_text())[index]
    return device


def nvmlDeviceGetUUID(device: dict[str, Any]) -> str:
    return str(device["uuid"])


def nvmlDeviceGetName(device: dict[str, Any]) -> str:
    return str(device["name"])


def nvmlDeviceGetMinorNumber(device: dict[str, Any]) -> int:
    return int(device["minor"])


def nvmlDeviceGetMemoryInfo(device: dict[str, Any], version: int | None = None) -> _Struct:
    """As with a driver, version 1 counts the driver's own memory as used. Drivers before 510 have only
    version 1.
    """
    if version and device.get("old_driver"):
        raise NVMLError(NVML_ERROR_FUNCTION_NOT_FOUND)
    used = sum(use["memory"] for _, use in _uses(device)) + (0 if version else RESERVED)
    return _Struct(total=device["memory"], used=min(used, device["memory"]))


def nvmlDeviceGetUtilizationRates(device: dict[str, Any]) -> _Struct:
    if "mig" in device or "instance" in device:
        raise NVMLError(NVML_ERROR_NOT_SUPPORTED)
    share = min(1.0, sum(use["utilization"] for _, use in _uses(device)))
    return _Struct(gpu=round(share * 100), memory=round(share * 40))


def nvmlDeviceGetPowerUsage(device: dict[str, Any]) -> int:
    return int(1000 * max([IDLE_WATTS, *(use["power"] for _, use in _uses(device))]))


def nvmlDeviceGetEnforcedPowerLimit(_: dict[str, Any]) -> int:
    return LIMIT_WATTS * 1000


def nvmlDeviceGetTemperature(_: dict[str, Any], kind: int) -> int:
    assert kind == NVML_TEMPERATURE_GPU
    return 45


def nvmlDeviceGetClockInfo(_: dict[str, Any], kind: int) -> int:
    assert kind == NVML_CLOCK_SM
    return 1410


def nvmlDeviceGetCurrentClocksEventReasons(device: dict[str, Any]) -> int:
    reasons = 0
    for _, use in _uses(device):
        reasons |= _REASONS[use["throttle"]]
    return reasons


def nvmlDeviceGetComputeRunningProcesses(device: dict[str, Any]) -> list[_Struct]:
    parts = [device, *device.get("mig", ())]
    return [_Struct(pid=pid, usedGpuMemory=use["memory"]) for part in parts for pid, use in _uses(part)]


def nvmlDeviceGetTotalEnergyConsumption(_: dict[str, Any]) -> int:
    raise NVMLError(NVML_ERROR_NOT_SUPPORTED)


def nvmlDeviceGetMaxMigDeviceCount(device: dict[str, Any]) -> int:
    return 7 if "mig" in device else 0


def nvmlDeviceGetMigDeviceHandleByIndex(device: dict[str, Any], place: int) -> dict[str, Any]:
    if place >= len(device["mig"]):
        raise NVMLError(NVML_ERROR_NOT_FOUND)
    instance: dict[str, Any] = device["mig"][place]
    return instance


def nvmlDeviceGetGpuInstanceId(device: dict[str, Any]) -> int:
    return int(device["instance"])


# GPM, which exists only from Hopper on

NVML_GPM_METRICS_GET_VERSION = 1


class _Metric:
    metricId = 0
    nvmlReturn = 0
    value = 0.0


class c_nvmlGpmMetricsGet_t:
    """The requested metrics, and the two samples between which they are computed."""

    def __init__(self) -> None:
        self.version = self.numMetrics = 0
        self.sample1: dict[str, float] = {}
        self.sample2: dict[str, float] = {}
        self.metrics = [_Metric() for _ in range(16)]


@dataclass
class _Support:
    isSupportedDevice: int


def nvmlGpmQueryDeviceSupport(device: dict[str, Any]) -> _Support:
    return _Support(int("H100" in device["name"]))


def nvmlGpmSampleAlloc() -> dict[str, float]:
    return {}


def nvmlGpmSampleGet(device: dict[str, Any], sample: dict[str, float]) -> None:
    sample["sm"] = min(1.0, sum(use["sm"] for _, use in _uses(device)))
    sample["busy"] = min(1.0, sum(use["utilization"] for _, use in _uses(device)))


def nvmlGpmMigSampleGet(device: dict[str, Any], instance: int, sample: dict[str, float]) -> None:
    (match,) = [each for each in device["mig"] if each["instance"] == instance]
    nvmlGpmSampleGet(match, sample)


def nvmlGpmSampleFree(sample: dict[str, float]) -> None:
    sample.clear()


def nvmlGpmMetricsGet(request: c_nvmlGpmMetricsGet_t) -> None:
    """Compute utilization and SM activity. Other metrics are not supported."""
    for metric in request.metrics[: request.numMetrics]:
        name = {1: "busy", 2: "sm"}.get(metric.metricId, "")
        metric.nvmlReturn = 0 if name else NVML_ERROR_NOT_SUPPORTED
        metric.value = 50 * (request.sample1.get(name, 0.0) + request.sample2.get(name, 0.0))
