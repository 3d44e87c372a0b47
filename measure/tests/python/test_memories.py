"""Which memories can be named, and which of them are of GPUs: the same for every kind of GPU."""

from __future__ import annotations

import click
import pytest

from peerway import _core
from peerway_measure.bench import machine
from peerway_measure.bench.kinds import KINDS
from peerway_measure.bench.request import Request
from peerway_measure.cli import explain, options
from peerway_measure.memories import GPU_KINDS, is_gpu, kind_of


def with_gpus(monkeypatch: pytest.MonkeyPatch, *devices: str) -> None:
    named = [("host", "a CPU"), *((device, "a GPU") for device in devices)]
    monkeypatch.setattr(_core, "devices", lambda: named)


def test_the_kinds_of_gpus_are_those_of_the_library() -> None:
    assert ["host", *GPU_KINDS] == _core.device_kinds()


@pytest.mark.parametrize(
    ("memory", "gpu", "kind"),
    [("host", False, "host"), ("host:malloc", False, "host:malloc"), ("cuda:1", True, "cuda"),
     ("hip", True, "hip"), ("hip:3", True, "hip")],
)  # fmt: skip
def test_memory_of_gpus_is_told_from_the_hosts(memory: str, gpu: bool, kind: str) -> None:
    assert (is_gpu(memory), kind_of(memory)) == (gpu, kind)


def test_every_kind_of_memory_can_be_measured() -> None:
    assert options.memories("hip,hip-host,cuda") == [("hip", "hip"), ("hip", "host"), ("cuda", "cuda")]
    with pytest.raises(ValueError, match="there are host, host:malloc, cuda, hip, or two such as"):
        options.memories("rocm")


@pytest.mark.parametrize("kind", GPU_KINDS)
def test_a_benchmark_measures_the_gpus_that_are_here(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with_gpus(monkeypatch, f"{kind}:0", f"{kind}:1")
    assert (kind, kind) in Request().measured_memories()
    assert list(Request(gpudirect=True).measured_memories()) == [(kind, kind), (kind, "host"), ("host", kind)]
    assert (kind, "host") in machine.memory_pairs()
    assert "plan/graph" in KINDS["exchange"].plan_variants(kind)


def test_without_a_gpu_only_the_hosts_memory_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    with_gpus(monkeypatch)
    assert {name for pair in Request().measured_memories() for name in pair} == {"host", "host:malloc"}
    assert machine.memory_pairs() == [("host", "host"), ("host:malloc", "host:malloc")]


def device(name: str) -> str | None:
    """What `peerway explain --from NAME` takes it for."""
    return explain._device(click.Context(explain.command), explain.command.params[0], name)


@pytest.mark.parametrize("kind", GPU_KINDS)
def test_explain_takes_gpus_by_number_and_by_name(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with_gpus(monkeypatch, f"{kind}:0", f"{kind}:1")
    assert [device(name) for name in ("gpu1", f"{kind}:1", kind, "host:malloc")] == [
        f"{kind}:1", f"{kind}:1", kind, "host:malloc"
    ]  # fmt: skip
    for wrong in ("gpu", "gpux", f"{kind}:", f"{kind}:x", "rocm:0"):
        with pytest.raises(click.BadParameter, match="is not a device"):
            device(wrong)


def test_the_driver_of_a_record_is_that_of_its_gpu(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("drivers")
    (folder / "amdgpu").write_text("6.10.5\n")
    (folder / "rocm").write_text("6.3.0-39\n")
    (folder / "nvidia").write_text(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\n"
    )
    monkeypatch.setattr(machine, "AMD_VERSION", folder / "amdgpu")
    monkeypatch.setattr(machine, "ROCM_VERSION", folder / "rocm")
    monkeypatch.setattr(machine, "NVIDIA_VERSION", folder / "nvidia")
    assert machine.gpu_driver("hip:1") == "amdgpu 6.10.5, ROCm 6.3.0-39"
    assert machine.gpu_driver("cuda:0") == "580.159.04"
    assert machine.gpu_driver("host") == ""
    monkeypatch.setattr(machine, "AMD_VERSION", folder / "none")
    assert machine.gpu_driver("hip") == "ROCm 6.3.0-39"
