"""The GPUs of the node through NVML, by UUID; MIG instances are devices of their own.

What a GPU cannot tell is asked once: NVML answers "not supported" slowly. The module that speaks to the
driver is NVIDIA's pynvml, or one with the same functions.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from peerway.jobs.agent.gpm import Gpm
from peerway.jobs.agent.system import Figures
from peerway.jobs.batch import Gpu, Samples
from peerway.jobs.batch_check import is_device_name

_POWER = 0x4  # nvmlClocksEventReasonSwPowerCap
_THERMAL = 0x20 | 0x40  # software's and the hardware's thermal slowdown
_HARDWARE = 0x8 | 0x80  # the hardware's slowdown, the power brake
_UNSUPPORTED = 3


@dataclass(slots=True)
class Device:
    """One GPU or MIG instance with its handle."""

    facts: Gpu
    handle: Any
    parent: Any = None
    divided: bool = False  # into MIG instances
    cannot: set[tuple[object, ...]] = field(default_factory=set)  # functions, each with its arguments


class Gpus:
    """All GPUs that NVML shows; none where there is no driver, and `why_none` says why."""

    def __init__(self, module: str = "pynvml") -> None:
        self.why_none = ""
        self.devices: list[Device] = []
        self._nvml: Any = importlib.import_module(module)
        self._gpm = Gpm(self._nvml)
        self.refresh()

    def refresh(self) -> None:
        """Look anew: a driver may be loaded after the agent began, and MIG instances come and go."""
        before = {device.facts.uuid: device for device in self.devices}
        self.why_none = ""
        try:
            self._nvml.nvmlInit()
            self.devices = self._find()
        except self._nvml.NVMLError as error:
            self.why_none = str(error)
            self.devices = []
        for device in self.devices:
            if device.facts.uuid in before:
                device.cannot = before[device.facts.uuid].cannot

    def facts(self) -> list[Gpu]:
        """What the GPUs are."""
        return [device.facts for device in self.devices]

    def sample(self) -> tuple[Samples, dict[str, list[int]]]:
        """The figures of all GPUs, and the processes on each by UUID."""
        found = Samples()
        processes: dict[str, list[int]] = {}
        for device in self.devices:
            pids = self._processes(device)
            figures = self._figures(device)
            if pids is not None:
                processes[device.facts.uuid] = pids
                figures["gpu_processes"] = len(pids)
            found.add(device.facts.uuid, figures)
        return found, processes

    def _find(self) -> list[Device]:
        found: list[Device] = []
        for index in range(self._nvml.nvmlDeviceGetCount()):
            handle = self._nvml.nvmlDeviceGetHandleByIndex(index)
            whole = self._device(handle, index, None)
            instances = self._instances(handle, whole.facts)
            whole.divided = bool(instances)
            # A GPU in MIG mode runs nothing by itself; it still has power and temperature.
            found += [whole, *instances]
        return found

    def _device(self, handle: Any, index: int | None, parent: Gpu | None) -> Device:
        device = Device(Gpu(_text(self._nvml.nvmlDeviceGetUUID(handle))), handle)
        if not is_device_name(device.facts.uuid):
            raise ValueError(f"NVML calls a GPU {device.facts.uuid!r}")
        device.facts.name = _text(self._ask(device, "nvmlDeviceGetName") or "")
        memory = self._memory(device)
        device.facts.memory_bytes = None if memory is None else int(memory.total)
        device.facts.index = index
        device.facts.minor = self._ask(device, "nvmlDeviceGetMinorNumber") if parent is None else parent.minor
        device.facts.parent = None if parent is None else parent.uuid
        return device

    def _instances(self, handle: Any, facts: Gpu) -> list[Device]:
        found: list[Device] = []
        try:
            most = self._nvml.nvmlDeviceGetMaxMigDeviceCount(handle)
        except self._nvml.NVMLError:
            return found
        for place in range(most):
            try:
                instance = self._nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, place)
                device = self._device(instance, None, facts)
            except self._nvml.NVMLError:  # no instance at this place
                continue
            device.parent = handle
            found.append(device)
        return found

    def _ask(self, device: Device, name: str, *arguments: object) -> Any:
        """Call a function of NVML about the device; None for what it cannot tell."""
        asked = (name, *arguments)  # a GPU may know one version of a structure and not another
        if asked in device.cannot:
            return None
        function: Callable[..., Any] | None = getattr(self._nvml, name, None)
        if function is None:
            device.cannot.add(asked)
            return None
        try:
            return function(device.handle, *arguments)
        except self._nvml.NVMLError as error:
            if getattr(error, "value", None) == _UNSUPPORTED:
                device.cannot.add(asked)
            return None

    def _figures(self, device: Device) -> Figures:
        nvml = self._nvml
        found: Figures = {}
        if (share := self._ask(device, "nvmlDeviceGetUtilizationRates")) is not None:
            found["gpu_utilization_ratio"] = share.gpu / 100
            found["gpu_memory_utilization_ratio"] = share.memory / 100
        if (memory := self._memory(device)) is not None:
            found["gpu_memory_used_bytes"] = int(memory.used)
            found["gpu_memory_total_bytes"] = int(memory.total)
        for name, metric, unit in (
            ("nvmlDeviceGetPowerUsage", "gpu_power_watts", 1e-3),
            ("nvmlDeviceGetEnforcedPowerLimit", "gpu_power_limit_watts", 1e-3),
            ("nvmlDeviceGetTotalEnergyConsumption", "gpu_energy_joules_total", 1e-3),
        ):
            if (value := self._ask(device, name)) is not None:
                found[metric] = round(value * unit, 3)
        if (heat := self._ask(device, "nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU)) is not None:
            found["gpu_temperature_celsius"] = heat
        if (clock := self._ask(device, "nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM)) is not None:
            found["gpu_sm_clock_hertz"] = clock * 1_000_000
        if (reasons := self._ask(device, "nvmlDeviceGetCurrentClocksEventReasons")) is not None:
            found["gpu_throttled_power_ratio"] = int(bool(reasons & _POWER))
            found["gpu_throttled_thermal_ratio"] = int(bool(reasons & _THERMAL))
            found["gpu_throttled_hardware_ratio"] = int(bool(reasons & _HARDWARE))
        return self._gpm.figures(device.facts.uuid, device.handle, device.parent) | found

    def _memory(self, device: Device) -> Any:
        """What programs have. Version 1 counts what the driver keeps for itself, too, which is hundreds of
        MiB; drivers before 510 have no other.
        """
        name = "nvmlDeviceGetMemoryInfo"
        return self._ask(device, name, self._nvml.nvmlMemory_v2) or self._ask(device, name)

    def _processes(self, device: Device) -> list[int] | None:
        if device.divided:  # to who may, NVML lists those of all instances here once more
            return None
        compute = self._ask(device, "nvmlDeviceGetComputeRunningProcesses")
        graphics = self._ask(device, "nvmlDeviceGetGraphicsRunningProcesses")
        if compute is None and graphics is None:
            return None
        return sorted({int(each.pid) for each in [*(compute or ()), *(graphics or ())]})


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
