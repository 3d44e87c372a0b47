"""The node's GPUs of all makers as one list: NVIDIA's through NVML, then AMD's through the kernel's files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from peerway_jobs.agent.amd import AmdGpus
from peerway_jobs.agent.gpus import Gpus
from peerway_jobs.batch import Gpu, Samples


class NodeGpus:
    """All GPUs of the node. If one maker's driver fails, the other's GPUs are measured all the same."""

    def __init__(self, nvml: str = "pynvml", root: str = "/") -> None:
        self.nvidia = Gpus(nvml)
        self.amd = AmdGpus(root)
        self.reasons: dict[tuple[str, str], str] = {}  # (GPU, figure) -> why it is absent
        self._take_reasons()

    def why_none(self) -> str:
        """Why each maker's driver shows no GPU."""
        return f"{self.nvidia.why_none or 'NVML shows none'}; {self.amd.why_none}"

    def refresh(self) -> None:
        """List the GPUs again."""
        self._each("NVIDIA GPUs", self.nvidia.refresh)
        self._each("AMD GPUs", self.amd.refresh)

    def facts(self) -> list[Gpu]:
        """The properties of all GPUs. On a node with both makers, the indices of AMD's follow NVIDIA's."""
        nvidia = self.nvidia.facts()
        first = 1 + max((gpu.index for gpu in nvidia if gpu.index is not None), default=-1)
        return nvidia + [
            replace(gpu, index=None if gpu.index is None else first + gpu.index) for gpu in self.amd.facts()
        ]

    def sample(self) -> tuple[Samples, dict[str, list[int]]]:
        """The figures of all GPUs, and the processes on each GPU by its UUID."""
        samples = Samples()
        processes: dict[str, list[int]] = {}

        def add(measure: Callable[[], tuple[Samples, dict[str, list[int]]]]) -> None:
            part, users = measure()
            for place, device in enumerate(part.devices):
                figures = {name: column[place] for name, column in part.values.items()}
                samples.add(device, {name: value for name, value in figures.items() if value is not None})
            processes.update(users)

        self._each("NVIDIA GPUs", lambda: add(self.nvidia.sample))
        self._each("AMD GPUs", lambda: add(self.amd.sample))
        return samples, processes

    def _each(self, name: str, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:  # the other maker's GPUs and the node's other figures must be measured
            self.reasons[name, ""] = f"{type(error).__name__}: {error}"
        self._take_reasons()

    def _take_reasons(self) -> None:
        for maker in (self.nvidia, self.amd):
            self.reasons |= maker.reasons
            maker.reasons.clear()
