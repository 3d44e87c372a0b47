"""Measures clocks and power during a run: of GPUs with nvidia-smi, of CPUs from /sys."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol

EVERY_S = 0.5


class Meter(Protocol):
    """A context manager; afterwards `values` has the measured values, without those
    that the machine does not report.
    """

    values: dict[str, float]

    def __enter__(self) -> Meter: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None: ...


def meter(device: str) -> Meter:
    """The meter for a kind of device."""
    return GpuMeter() if device == "cuda" else CpuMeter()


def busy(read: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The medians of (clock, power) over the half of the samples with the most power.

    This leaves out the times in which a run generates its matrix and checks its solution.
    """
    half = sorted(read, key=lambda pair: pair[1])[len(read) // 2 :]
    return statistics.median(pair[0] for pair in half), statistics.median(pair[1] for pair in half)


class GpuMeter:
    """Samples all GPUs twice a second."""

    COMMAND = (
        "nvidia-smi",
        "--query-gpu=clocks.sm,power.draw",
        "--format=csv,noheader,nounits",
        "-lms",
        str(round(1000 * EVERY_S)),
    )

    def __init__(self) -> None:
        self.values: dict[str, float] = {}
        self._wanted = shutil.which(self.COMMAND[0]) is not None

    def __enter__(self) -> GpuMeter:
        if self._wanted:
            self._file = tempfile.TemporaryFile("w+")
            self._process = subprocess.Popen(self.COMMAND, stdout=self._file)
        return self

    def __exit__(self, *_: object) -> None:
        if not self._wanted:
            return
        self._process.terminate()
        self._process.wait()
        self._file.seek(0)
        lines = [line.split(",") for line in self._file if line.count(",") == 1]
        self._file.close()
        if lines:
            clock, power = busy([(float(clock), float(power)) for clock, power in lines])
            self.values |= {"gpu_clock_mhz": clock, "gpu_power_w": power}


class CpuMeter:
    """Samples the CPUs twice a second: their mean clock, and the power of the packages.

    Power comes from the energy counters (RAPL). On most systems only root may read them, and virtual machines
    lack them.
    """

    def __init__(self, root: Path = Path("/"), every_s: float = EVERY_S) -> None:
        self.values: dict[str, float] = {}
        self._root, self._every_s = root, every_s
        zones = sorted((root / "sys/class/powercap").glob("intel-rapl:*"))
        packages = [zone for zone in zones if zone.name.count(":") == 1]
        self._packages = [zone for zone in packages if _number(zone / "energy_uj") is not None]
        self._end = threading.Event()
        self._read: list[tuple[float, float]] = []
        self._before: tuple[float, list[float]] | None = None

    def __enter__(self) -> CpuMeter:
        self._thread = threading.Thread(target=self._sample, name="meter", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        self.conclude()

    def look(self, now_s: float) -> None:
        """Take a sample: the clocks, and the power since the last sample."""
        energies = self._energies()
        if self._before is not None:
            began, before = self._before
            joules = (
                sum(
                    used(old, new, _number(zone / "max_energy_range_uj") or 0)
                    for zone, old, new in zip(self._packages, before, energies, strict=True)
                )
                / 1e6
            )
            self._read.append((self._clock_mhz(), joules / (now_s - began)))
        self._before = now_s, energies

    def conclude(self) -> None:
        """Compute `values` from the samples."""
        if not self._read:
            return
        clock, power = busy(self._read)
        if clock > 0:
            self.values["cpu_clock_mhz"] = round(clock)
        if self._packages:
            self.values["cpu_power_w"] = round(power, 1)

    def _sample(self) -> None:
        self.look(time.monotonic())
        while not self._end.wait(self._every_s):
            self.look(time.monotonic())

    def _energies(self) -> list[float]:
        return [_number(zone / "energy_uj") or 0 for zone in self._packages]

    def _clock_mhz(self) -> float:
        """The mean clock from the frequency governor, or else from /proc/cpuinfo,
        which is constant on some machines.
        """
        files = (self._root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_cur_freq")
        clocks = [number / 1e3 for file in files if (number := _number(file))]
        if not clocks:
            lines = (self._root / "proc/cpuinfo").read_text().splitlines()
            clocks = [float(line.split(":")[1]) for line in lines if line.startswith("cpu MHz")]
        return statistics.fmean(clocks) if clocks else 0


def used(before: float, after: float, largest: float) -> float:
    """The difference of two readings of a counter that wraps around after `largest`."""
    return after - before if after >= before else after - before + largest


def _number(file: Path) -> float | None:
    """The number in a file of /sys; None if it cannot be read."""
    try:
        return float(file.read_text())
    except (OSError, ValueError):
        return None
