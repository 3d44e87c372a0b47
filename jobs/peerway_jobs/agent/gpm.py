"""Reads SM activity of Hopper and newer GPUs from NVML's GPU performance monitoring (GPM).

The figures are means between two samples. Older GPUs report them only to DCGM: for those GPUs the agent sends
none, and rules that need them say that the data is missing.
"""

from __future__ import annotations

from typing import Any

from peerway_jobs.agent.system import Figures

# NVML_GPM_METRIC_...: percent of the time, or of the GPU's peak
_UTILIZATION = 1  # used for MIG instances only; NVML has no other utilization of them
_METRICS = {
    _UTILIZATION: "gpu_utilization_ratio",
    2: "gpu_sm_activity_ratio",
    3: "gpu_sm_occupancy_ratio",
    5: "gpu_tensor_activity_ratio",
    10: "gpu_dram_activity_ratio",
}
_NEVER = (3, 13)  # NVML_ERROR_NOT_SUPPORTED; NVML_ERROR_FUNCTION_NOT_FOUND


class Gpm:
    """Keeps the last sample of each GPU, to compare the next one with it."""

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self._last: dict[str, Any] = {}
        self._cannot: set[str] = set()

    def figures(self, uuid: str, handle: Any, parent: Any) -> Figures:
        """The means since the last call for this GPU.

        Empty on the first call, after an error, and for GPUs that do not support it. `parent` is the handle
        of the whole GPU if `handle` is a MIG instance, else None.
        """
        if uuid in self._cannot or not hasattr(self._nvml, "nvmlGpmSampleAlloc"):
            return {}
        try:
            if uuid not in self._last and not self._supported(handle if parent is None else parent):
                self._cannot.add(uuid)
                return {}
            return self._since_last(uuid, handle, parent)
        except Exception as error:
            if uuid in self._last:
                self._nvml.nvmlGpmSampleFree(self._last.pop(uuid))
            if not isinstance(error, self._nvml.NVMLError):
                raise
            if getattr(error, "value", None) in _NEVER:
                self._cannot.add(uuid)
            return {}

    def _supported(self, handle: Any) -> bool:
        return bool(self._nvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice)

    def _since_last(self, uuid: str, handle: Any, parent: Any) -> Figures:
        nvml = self._nvml
        sample = nvml.nvmlGpmSampleAlloc()
        try:
            if parent is None:
                nvml.nvmlGpmSampleGet(handle, sample)
            else:
                nvml.nvmlGpmMigSampleGet(parent, nvml.nvmlDeviceGetGpuInstanceId(handle), sample)
        except Exception:
            nvml.nvmlGpmSampleFree(sample)
            raise
        last = self._last.get(uuid)
        self._last[uuid] = sample
        if last is None:
            return {}
        query = nvml.c_nvmlGpmMetricsGet_t()
        query.version = nvml.NVML_GPM_METRICS_GET_VERSION
        query.numMetrics = len(_METRICS)
        query.sample1, query.sample2 = last, sample
        for place, number in enumerate(_METRICS):
            query.metrics[place].metricId = number
        try:
            nvml.nvmlGpmMetricsGet(query)
        finally:
            nvml.nvmlGpmSampleFree(last)
        return {
            name: scaled(query.metrics[place].value, 0.01)
            for place, (number, name) in enumerate(_METRICS.items())
            if query.metrics[place].nvmlReturn == 0 and (parent is not None or number != _UTILIZATION)
        }


def scaled(value: Any, unit: float) -> Any:
    """The number in another unit; a value that is no number is returned unchanged, and is rejected later."""
    return round(value * unit, 6) if isinstance(value, (int, float)) else value
