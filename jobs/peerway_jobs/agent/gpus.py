"""Reads the node's NVIDIA GPUs through NVML, by UUID; each MIG instance is a device of its own.

A call that a GPU does not support is made once only, because NVML is slow to answer "not supported". The
module that calls the driver is NVIDIA's pynvml, or one with the same functions. If a call raises anything,
that figure of that GPU is absent, and `reasons` says why. Figures are returned as the driver reported them;
plausible.py checks them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from peerway_common.printable import shortened
from peerway_jobs.agent.gpm import Gpm, scaled
from peerway_jobs.agent.system import Figures
from peerway_jobs.batch import Gpu, Samples
from peerway_jobs.batch_check import MOST_MINOR, is_device_name
from peerway_jobs.plausible import checked, sift

_POWER = 0x4  # nvmlClocksEventReasonSwPowerCap
_THERMAL = 0x20 | 0x40  # the thermal slowdowns of software and of hardware
_HARDWARE = 0x8 | 0x80  # the hardware's slowdown, and the power brake
_UNSUPPORTED = 3
_NO_DRIVER = (9, 12)  # NVML_ERROR_DRIVER_NOT_LOADED, NVML_ERROR_LIBRARY_NOT_FOUND
_OLD_DRIVER = (2, 6, 13)  # invalid argument, not found, function not found: an old driver answers so


@dataclass(slots=True)
class Device:
    """One GPU or MIG instance with its handle."""

    facts: Gpu
    handle: Any
    parent: Any = None
    divided: bool = False  # divided into MIG instances
    cannot: set[tuple[object, ...]] = field(default_factory=set)  # unsupported: (function, *arguments)


class Gpus:
    """All GPUs that NVML shows. Without a driver there are none, and `why_none` says why."""

    def __init__(self, module: str = "pynvml") -> None:
        self.why_none = ""
        self.devices: list[Device] = []
        self.reasons: dict[tuple[str, str], str] = {}  # (GPU, figure or function) -> why it is absent
        self._module = module
        self._nvml: Any = None
        self._gpm: Gpm | None = None
        self.refresh()

    def refresh(self) -> None:
        """List the GPUs again: a driver may have been loaded since, and MIG instances come and go."""
        before = {device.facts.uuid: device for device in self.devices}
        self.why_none = ""
        try:
            if self._nvml is None:
                self._nvml = importlib.import_module(self._module)
                self._gpm = Gpm(self._nvml)
            self._nvml.nvmlInit()
            self.devices = self._all()
        except Exception as error:  # whatever the library raises, the node's other figures must be measured
            self.why_none = _message(error)
            if getattr(error, "value", None) in _NO_DRIVER:
                self.devices = []
            else:  # GPUs that are already known may still answer
                self.reasons["GPUs", ""] = self.why_none
        for device in self.devices:
            if device.facts.uuid in before:
                device.cannot = before[device.facts.uuid].cannot

    def facts(self) -> list[Gpu]:
        """The properties of all GPUs and MIG instances."""
        return [device.facts for device in self.devices]

    def sample(self) -> tuple[Samples, dict[str, list[int]]]:
        """The figures of all GPUs, and the processes on each GPU by its UUID."""
        samples = Samples()
        processes: dict[str, list[int]] = {}
        for device in self.devices:
            pids, figures = None, Figures()
            try:
                pids = self._processes(device)
                figures = self._figures(device)
            except Exception as error:  # such as a structure without a field, or text instead of a number
                self.reasons[device.facts.uuid, ""] = _message(error)
            if pids is not None:
                processes[device.facts.uuid] = pids
                figures["gpu_processes"] = len(pids)
            samples.add(device.facts.uuid, figures)
        for uuid, metric, why in sift(samples.devices, samples.values):
            self.reasons[uuid, metric] = why
        return samples, processes

    def _all(self) -> list[Device]:
        at: dict[int, list[Device]] = {}
        lost: list[int] = []
        for index in range(self._nvml.nvmlDeviceGetCount()):
            try:
                at[index] = self._at(index)
            except Exception as error:  # losing one GPU must not lose the others
                self.reasons[f"GPU {index}", ""] = _message(error)
                lost.append(index)
        # After a GPU is lost, the numbers of others may move down: a GPU found at another number is not lost.
        present = {device.facts.uuid for devices in at.values() for device in devices}
        for index in lost:
            at[index] = [each for each in self._last_at(index) if each.facts.uuid not in present]
        return list({each.facts.uuid: each for index in sorted(at) for each in at[index]}.values())

    def _at(self, index: int) -> list[Device]:
        """The GPU with this NVML index, followed by its MIG instances."""
        handle = self._nvml.nvmlDeviceGetHandleByIndex(index)
        whole = self._device(handle, index, None)
        instances = self._instances(handle, whole.facts)
        whole.divided = bool(instances)
        # Nothing runs on a GPU in MIG mode itself, but it has power and temperature.
        return [whole, *instances]

    def _last_at(self, index: int) -> list[Device]:
        """The devices last found at this index: a lost GPU stays a device of the node, without figures."""
        whole = {each.facts.uuid for each in self.devices if each.facts.index == index}
        return [each for each in self.devices if whole & {each.facts.uuid, each.facts.parent}]

    def _device(self, handle: Any, index: int | None, parent: Gpu | None) -> Device:
        device = Device(Gpu(_text(self._nvml.nvmlDeviceGetUUID(handle))), handle)
        if not is_device_name(device.facts.uuid):
            raise ValueError(f"NVML calls a GPU {device.facts.uuid!r}")
        device.facts.name = shortened(_text(self._ask(device, "nvmlDeviceGetName") or ""), 128)
        memory = self._memory(device)
        total = None if memory is None else checked("gpu_memory_total_bytes", memory.total).value
        device.facts.memory_bytes = None if total is None else int(total)
        device.facts.index = index
        device.facts.minor = self._minor(device) if parent is None else parent.minor
        device.facts.parent = None if parent is None else parent.uuid
        return device

    def _minor(self, device: Device) -> int | None:
        minor = self._ask(device, "nvmlDeviceGetMinorNumber")
        return minor if isinstance(minor, int) and 0 <= minor < MOST_MINOR else None

    def _instances(self, handle: Any, facts: Gpu) -> list[Device]:
        devices: list[Device] = []
        try:
            most = self._nvml.nvmlDeviceGetMaxMigDeviceCount(handle)
        except Exception:  # mostly "not supported"
            return devices
        for place in range(most):
            try:
                instance = self._nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, place)
                device = self._device(instance, None, facts)
            except self._nvml.NVMLError:  # no instance at this place
                continue
            except Exception as error:
                self.reasons[f"{facts.uuid}, instance {place}", ""] = _message(error)
                continue
            device.parent = handle
            devices.append(device)
        return devices

    def _ask(self, device: Device, name: str, *arguments: object) -> Any:
        """Call a function of NVML for the device; None if it is not supported or fails."""
        query = (name, *arguments)  # a GPU may support one version of a structure and not another
        if query in device.cannot:
            return None
        function: Callable[..., Any] | None = getattr(self._nvml, name, None)
        if function is None:
            device.cannot.add(query)
            return None
        try:
            return function(device.handle, *arguments)
        except Exception as error:
            if getattr(error, "value", None) == _UNSUPPORTED:
                device.cannot.add(query)
            elif getattr(error, "value", None) not in _OLD_DRIVER:
                self.reasons[device.facts.uuid, name] = f"{name}: {_message(error)}"
            return None

    def _figures(self, device: Device) -> Figures:
        nvml = self._nvml
        figures: Figures = {}
        if (share := self._ask(device, "nvmlDeviceGetUtilizationRates")) is not None:
            figures["gpu_utilization_ratio"] = scaled(share.gpu, 0.01)
            figures["gpu_memory_utilization_ratio"] = scaled(share.memory, 0.01)
        if (memory := self._memory(device)) is not None:
            figures["gpu_memory_used_bytes"] = memory.used
            figures["gpu_memory_total_bytes"] = memory.total
        for name, metric, unit in (
            ("nvmlDeviceGetPowerUsage", "gpu_power_watts", 1e-3),
            ("nvmlDeviceGetEnforcedPowerLimit", "gpu_power_limit_watts", 1e-3),
            ("nvmlDeviceGetTotalEnergyConsumption", "gpu_energy_joules_total", 1e-3),
        ):
            if (value := self._ask(device, name)) is not None:
                figures[metric] = scaled(value, unit)
        if (heat := self._ask(device, "nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU)) is not None:
            figures["gpu_temperature_celsius"] = heat
        if (clock := self._ask(device, "nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM)) is not None:
            figures["gpu_sm_clock_hertz"] = scaled(clock, 1_000_000)
        if (reasons := self._ask(device, "nvmlDeviceGetCurrentClocksEventReasons")) is not None:
            figures["gpu_throttled_power_ratio"] = int(bool(reasons & _POWER))
            figures["gpu_throttled_thermal_ratio"] = int(bool(reasons & _THERMAL))
            figures["gpu_throttled_hardware_ratio"] = int(bool(reasons & _HARDWARE))
        try:
            assert self._gpm is not None
            return self._gpm.figures(device.facts.uuid, device.handle, device.parent) | figures
        except Exception as error:
            self.reasons[device.facts.uuid, "GPM"] = f"GPM: {_message(error)}"
            return figures

    def _memory(self, device: Device) -> Any:
        """The memory that programs can use.

        Version 1 of the call also counts hundreds of MiB that the driver reserves; drivers before 510 have
        only version 1.
        """
        name = "nvmlDeviceGetMemoryInfo"
        return self._ask(device, name, self._nvml.nvmlMemory_v2) or self._ask(device, name)

    def _processes(self, device: Device) -> list[int] | None:
        if device.divided:  # for privileged callers, NVML also lists the processes of all instances here
            return None
        compute = self._ask(device, "nvmlDeviceGetComputeRunningProcesses")
        graphics = self._ask(device, "nvmlDeviceGetGraphicsRunningProcesses")
        if compute is None and graphics is None:
            return None
        return sorted({int(each.pid) for each in [*(compute or ()), *(graphics or ())]})


def _message(error: Exception) -> str:
    """The message of an error, with its type unless it is NVML's own."""
    kind = type(error).__name__
    return str(error) if kind.startswith("NVMLError") else f"{kind}: {error}"


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
