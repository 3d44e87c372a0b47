"""What Hopper and later tell of their SMs: NVML's GPU performance monitoring, as means between two samples.

Older GPUs tell this to DCGM alone; there these figures are not sent, and the rules that need them say so.
"""

from __future__ import annotations

from typing import Any

from peerway_jobs.agent.system import Figures

# NVML_GPM_METRIC_...: percent of the time, or of what the GPU can do
_UTILIZATION = 1  # taken of MIG instances, of which NVML tells it only so
_METRICS = {
    _UTILIZATION: "gpu_utilization_ratio",
    2: "gpu_sm_activity_ratio",
    3: "gpu_sm_occupancy_ratio",
    5: "gpu_tensor_activity_ratio",
    10: "gpu_dram_activity_ratio",
}
_NEVER = (3, 13)  # not supported; a driver without the function


class Gpm:
    """Keeps two samples of each GPU: the last and the one that is being made."""

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self._last: dict[str, Any] = {}
        self._cannot: set[str] = set()

    def figures(self, uuid: str, handle: Any, parent: Any) -> Figures:
        """The means since the last call; nothing on the first, after an error, and for GPUs that cannot
        tell.
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
    """The number in another unit; what is no number stays as it is, and is judged to be none."""
    return round(value * unit, 6) if isinstance(value, (int, float)) else value
