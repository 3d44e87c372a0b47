"""The figures of GPUs in MIG mode: each instance is a device of its own, by its UUID."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from node_tree import make_node

from peerway_jobs.agent.gpus import Gpus
from peerway_jobs.agent.ledger import Ledger, Now
from peerway_jobs.agent.loop import Agent
from peerway_jobs.agent.processes import Processes
from peerway_jobs.agent.records import Record
from peerway_jobs.agent.settings import Settings
from peerway_jobs.agent.steps import Step
from peerway_jobs.agent.strangers import Strangers
from peerway_jobs.batch import Batch, encode
from peerway_jobs.batch_check import decode
from peerway_measure.rehearse.cluster import fake_nvml
from peerway_measure.rehearse.cluster.fake_nvml import RESERVED

GIB = 1 << 30
HANDLE = fake_nvml.nvmlDeviceGetHandleByIndex


@pytest.fixture
def gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gpus:
    """An H100 with two MIG instances, on one of which this process computes, and two undivided GPUs."""
    instances = [
        {"uuid": f"MIG-{n}", "name": "H100 MIG 3g.40gb", "minor": 0, "memory": 40 * GIB, "instance": n}
        for n in (1, 2)
    ]
    whole = {"name": "NVIDIA H100", "memory": 80 * GIB}
    described = [
        {"uuid": "GPU-a", "minor": 1, **whole, "mig": instances},
        {"uuid": "GPU-b", "minor": 0, **whole},
        {"uuid": "GPU-c", "minor": 2, **whole, "old_driver": True},
    ]
    (tmp_path / "gpus.json").write_text(json.dumps(described))
    (tmp_path / "use").mkdir()
    use = {"memory": 9 * GIB, "utilization": 0.75, "sm": 0.5, "power": 300, "throttle": ""}
    for uuid in ("MIG-2", "GPU-b"):
        (tmp_path / "use" / f"{uuid}.{os.getpid()}").write_text(json.dumps(use))
    monkeypatch.setenv("FAKE_GPUS", str(tmp_path))
    return Gpus("peerway_measure.rehearse.cluster.fake_nvml")


def test_each_instance_is_a_device_of_its_gpu(gpus: Gpus) -> None:
    facts = {each.uuid: each for each in gpus.facts()}
    assert list(facts) == ["GPU-a", "MIG-1", "MIG-2", "GPU-b", "GPU-c"]
    assert (facts["MIG-2"].parent, facts["MIG-2"].minor) == ("GPU-a", 1)
    assert facts["MIG-2"].memory_bytes == 40 * GIB


def test_an_instance_tells_its_own_use_and_processes(gpus: Gpus) -> None:
    gpus.sample()
    found, processes = gpus.sample()

    def of(device: str, metric: str) -> float | None:
        return found.values[metric][found.devices.index(device)]

    assert of("MIG-2", "gpu_utilization_ratio") == 0.75  # only GPM reports it
    assert of("MIG-1", "gpu_utilization_ratio") == 0.0
    assert of("GPU-a", "gpu_utilization_ratio") is None  # nothing runs on the divided GPU itself
    assert of("GPU-b", "gpu_utilization_ratio") == 0.75
    assert of("MIG-2", "gpu_sm_activity_ratio") == 0.5
    assert of("MIG-2", "gpu_memory_used_bytes") == 9 * GIB
    assert processes["MIG-2"] == [os.getpid()]
    assert processes["MIG-1"] == []
    assert "GPU-a" not in processes  # NVML lists its instances' processes there again
    assert of("GPU-a", "gpu_processes") is None


def test_memory_that_the_driver_keeps_is_not_used(gpus: Gpus) -> None:
    found, _ = gpus.sample()
    used = dict(zip(found.devices, found.values["gpu_memory_used_bytes"], strict=True))
    assert used["GPU-b"] == 9 * GIB
    assert used["MIG-1"] == 0
    assert used["GPU-c"] == RESERVED  # the driver does not distinguish the two


def test_a_driver_that_has_no_second_version_of_the_memory_is_asked_for_the_first(
    gpus: Gpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def first_alone(device: dict[str, object], version: int | None = None) -> object:
        asked.append(version)
        if version:
            raise fake_nvml.NVMLError(fake_nvml.NVML_ERROR_NOT_SUPPORTED)
        return first(device)

    first = fake_nvml.nvmlDeviceGetMemoryInfo
    monkeypatch.setattr(fake_nvml, "nvmlDeviceGetMemoryInfo", first_alone)
    for _ in range(2):
        asked.clear()
        found, _ = gpus.sample()
        used = dict(zip(found.devices, found.values["gpu_memory_used_bytes"], strict=True))
        assert used["GPU-b"] == 9 * GIB + RESERVED
    assert fake_nvml.nvmlMemory_v2 not in asked  # not a second time, because the answer is slow


@pytest.mark.parametrize(
    ("code", "back"), [(999, True), (fake_nvml.NVML_ERROR_NOT_SUPPORTED, False)], ids=["once", "for good"]
)
def test_sm_activity_comes_back_after_an_error_of_the_driver(
    gpus: Gpus, monkeypatch: pytest.MonkeyPatch, code: int, back: bool
) -> None:
    def sm_activity() -> float | None:
        found, _ = gpus.sample()
        values = found.values.get("gpu_sm_activity_ratio", [None] * len(found.devices))
        return values[found.devices.index("GPU-b")]

    def fails(*_: object) -> None:
        raise fake_nvml.NVMLError(code)

    def allocate() -> dict[str, float]:
        held.append({})
        return held[-1]

    held: list[dict[str, float]] = []
    monkeypatch.setattr(fake_nvml, "nvmlGpmSampleAlloc", allocate)
    monkeypatch.setattr(fake_nvml, "nvmlGpmSampleFree", held.remove)
    assert [sm_activity() for _ in range(2)] == [None, 0.5]
    with monkeypatch.context() as broken:
        broken.setattr(fake_nvml, "nvmlGpmSampleGet", fails)
        assert sm_activity() is None
    assert [sm_activity() for _ in range(2)] == ([None, 0.5] if back else [None, None])
    assert len(held) <= len(gpus.devices)  # none is forgotten


def raises(error: Exception) -> Callable[..., Any]:
    def function(*_: object) -> None:
        raise error

    return function


def of_gpu_b(function: str, answer: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """The NVML function with a different answer for one GPU."""
    real = getattr(fake_nvml, function)
    return {function: lambda device, *more: (answer if device["uuid"] == "GPU-b" else real)(device, *more)}


def not_a_number(metrics: fake_nvml.c_nvmlGpmMetricsGet_t) -> None:
    for metric in metrics.metrics:
        metric.value = float("nan")


LOST = fake_nvml.NVMLError(15)
BROKEN = OSError("driver mismatch")
NO_UTF8 = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad")
REFUSES = {  # the answer of a driver for one GPU, the figure that is lost, words of the reason
    "utilization of all ones": (
        of_gpu_b("nvmlDeviceGetUtilizationRates", lambda _: fake_nvml._Struct(gpu=4294967295, memory=1)),
        "gpu_utilization_ratio", "not from 0 to 1.01",
    ),
    "a utilization that raises": (
        of_gpu_b("nvmlDeviceGetUtilizationRates", raises(BROKEN)), "gpu_utilization_ratio", "driver mismatch",
    ),
    "memory that is N/A": (
        of_gpu_b("nvmlDeviceGetMemoryInfo", lambda *_: fake_nvml._Struct(total=80 * GIB, used=(1 << 64) - 1)),
        "gpu_memory_used_bytes", "18446744073709551615",
    ),
    "memory that is a word": (
        of_gpu_b("nvmlDeviceGetMemoryInfo", lambda *_: fake_nvml._Struct(total=80 * GIB, used="N/A")),  # type: ignore[arg-type]
        "gpu_memory_used_bytes", "'N/A'",
    ),
    "power of all ones": (
        of_gpu_b("nvmlDeviceGetPowerUsage", lambda _: 4294967295), "gpu_power_watts", "not from 0 to 10,000",
    ),
    "a power that is a word": (
        of_gpu_b("nvmlDeviceGetPowerUsage", lambda _: "N/A"), "gpu_power_watts", "'N/A'",
    ),
    "a temperature of -1": (
        of_gpu_b("nvmlDeviceGetTemperature", lambda *_: -1), "gpu_temperature_celsius", "not from 0 to 150",
    ),
    "NaN from GPM": ({"nvmlGpmMetricsGet": not_a_number}, "gpu_sm_activity_ratio", "not a finite number"),
    "GPM that raises": ({"nvmlGpmMetricsGet": raises(BROKEN)}, "gpu_sm_activity_ratio", "driver mismatch"),
    "a GPU that is lost": (
        {name: answer for function in ("UUID", "UtilizationRates", "PowerUsage", "MemoryInfo", "Temperature")
         for name, answer in of_gpu_b(f"nvmlDeviceGet{function}", raises(LOST)).items()},
        "gpu_power_watts", "NVML error 15",
    ),
    "a GPU whose handle is lost": (
        {"nvmlDeviceGetHandleByIndex": lambda index: raises(LOST)() if index == 1 else HANDLE(index),
         **of_gpu_b("nvmlDeviceGetPowerUsage", raises(LOST))}, "gpu_power_watts", "NVML error 15",
    ),
    "a count that raises": (
        {"nvmlDeviceGetCount": raises(BROKEN), **of_gpu_b("nvmlDeviceGetPowerUsage", raises(BROKEN))},
        "gpu_power_watts", "GPUs: OSError: driver mismatch",
    ),
    "a name that is no UTF-8": (of_gpu_b("nvmlDeviceGetName", raises(NO_UTF8)), "", "UnicodeDecodeError"),
}  # fmt: skip


GPM = ("gpu_utilization_ratio", "gpu_sm_activity_ratio")  # the utilization of MIG instances comes from GPM


def figures(batch: Batch, metric: str) -> list[float | int | None]:
    part = batch.samples["gpu"]
    return part.values.get(metric, [None] * len(part.devices))


@pytest.mark.parametrize(("functions", "metric", "reason"), REFUSES.values(), ids=list(REFUSES))
def test_what_one_gpu_cannot_tell_costs_only_that(
    gpus: Gpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, functions: dict[str, Any], metric: str,
    reason: str,
) -> None:  # fmt: skip
    make_node(tmp_path / "root")
    settings = Settings(node="n1", state=str(tmp_path / "state"), root=str(tmp_path / "root"), page="",
                        nvml="peerway_measure.rehearse.cluster.fake_nvml")  # fmt: skip
    told: list[str] = []
    agent = Agent(settings, told.append)
    sane = [agent.round() for _ in range(2)][-1].samples["gpu"]
    for name, answer in functions.items():
        monkeypatch.setattr(fake_nvml, name, answer)
    agent._gpus.refresh()
    agent.round()
    batch = decode(encode(agent.round()))
    agent.close()
    assert batch.samples["gpu"].devices == sane.devices
    everywhere = "nvmlGpmMetricsGet" in functions
    for name, column in sane.values.items():
        for device, before, now in zip(sane.devices, column, figures(batch, name), strict=True):
            if name == metric and (device == "GPU-b" or everywhere):
                assert now is None
            elif device != "GPU-b" and not (everywhere and name in GPM):
                assert now == before, (device, name)
    assert len([text for text in told if reason in text]) >= 1, told
    assert all(len(text) <= 128 and text.isprintable() for text in told)


@pytest.mark.parametrize("error", [BROKEN, NO_UTF8, AttributeError("no such symbol")], ids=repr)
def test_a_library_that_breaks_when_it_is_started_leaves_the_node_its_other_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(fake_nvml, "nvmlInit", raises(error))
    found = Gpus("peerway_measure.rehearse.cluster.fake_nvml")
    assert found.devices == []
    assert str(error) in found.why_none
    assert Gpus("no_such_module").why_none.startswith("ModuleNotFoundError")


@pytest.fixture
def inside(tmp_path: Path, gpus: Gpus) -> tuple[Strangers, Ledger, Gpus]:
    """This process belongs to job 7."""
    processes = Processes("/")
    processes.scan()
    ledger = Ledger(tmp_path / "ledger.json", gpus.facts)
    return Strangers(processes, ledger), ledger, gpus


NOW = Now(1_795_300_000_000, 100_000, "6f1c2b3a-0000-4000-8000-0123456789ab")


def begins(ledger: Ledger, job: int, *, cuda: str = "", gpus: str = "") -> None:
    record = Record(
        "", "prolog", job, NOW.wall_ms, NOW.mono_ms, NOW.boot, 1000, "ann", "gpu", None, gpus, cuda, False
    )
    ledger.record(record, NOW)


def accused(inside: tuple[Strangers, Ledger, Gpus]) -> list[tuple[str | None, int | None, int | None]]:
    """The GPUs on which job 7 is reported as foreign, with their owners."""
    strangers, _, gpus = inside
    samples, users = gpus.sample()
    notes = strangers.on_gpus(users, [Step(7, "0", 1, 1, pids=[os.getpid()])], samples, NOW)
    counted = [count for count in samples.values["gpu_foreign_processes"] if count]
    assert len(counted) == len(notes)
    return [(note.gpu, note.job, note.owner) for note in notes]


def test_a_job_on_its_own_instance_is_not_foreign_on_the_whole_gpu(
    inside: tuple[Strangers, Ledger, Gpus],
) -> None:
    begins(inside[1], 7, cuda="MIG-2,GPU-b")
    assert accused(inside) == []


def test_a_job_on_the_instance_of_another_is_foreign_there(inside: tuple[Strangers, Ledger, Gpus]) -> None:
    begins(inside[1], 7, cuda="GPU-b")
    begins(inside[1], 8, cuda="MIG-2")
    assert accused(inside) == [("MIG-2", 7, 8)]


def test_jobs_that_share_a_gpu_are_not_foreign(inside: tuple[Strangers, Ledger, Gpus]) -> None:
    for job in (8, 7, 9):
        begins(inside[1], job, cuda="GPU-b,MIG-2")
    assert accused(inside) == []


def test_a_job_whose_gpus_are_not_known_is_not_accused(inside: tuple[Strangers, Ledger, Gpus]) -> None:
    begins(inside[1], 8, cuda="GPU-b")
    begins(inside[1], 7, cuda="0")
    assert accused(inside) == []
