"""The figures of GPUs in MIG mode: each instance is a device of its own, by its UUID."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from peerway.jobs.agent.gpus import Gpus

GIB = 1 << 30


@pytest.fixture
def gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gpus:
    """An H100 with two instances, on one of which this process computes, and one that is whole."""
    instances = [
        {"uuid": f"MIG-{n}", "name": "H100 MIG 3g.40gb", "minor": 0, "memory": 40 * GIB, "instance": n}
        for n in (1, 2)
    ]
    whole = {"name": "NVIDIA H100", "memory": 80 * GIB}
    described = [
        {"uuid": "GPU-a", "minor": 1, **whole, "mig": instances},
        {"uuid": "GPU-b", "minor": 0, **whole},
    ]
    (tmp_path / "gpus.json").write_text(json.dumps(described))
    (tmp_path / "use").mkdir()
    use = {"memory": 9 * GIB, "utilization": 0.75, "sm": 0.5, "power": 300, "throttle": ""}
    for uuid in ("MIG-2", "GPU-b"):
        (tmp_path / "use" / f"{uuid}.{os.getpid()}").write_text(json.dumps(use))
    monkeypatch.setenv("FAKE_GPUS", str(tmp_path))
    return Gpus("peerway.rehearse.cluster.fake_nvml")


def test_each_instance_is_a_device_of_its_gpu(gpus: Gpus) -> None:
    facts = {each.uuid: each for each in gpus.facts()}
    assert list(facts) == ["GPU-a", "MIG-1", "MIG-2", "GPU-b"]
    assert (facts["MIG-2"].parent, facts["MIG-2"].minor) == ("GPU-a", 1)
    assert facts["MIG-2"].memory_bytes == 40 * GIB


def test_an_instance_tells_its_own_use_and_processes(gpus: Gpus) -> None:
    gpus.sample()
    found, processes = gpus.sample()

    def of(device: str, metric: str) -> float | None:
        return found.values[metric][found.devices.index(device)]

    assert of("MIG-2", "gpu_utilization_ratio") == 0.75  # NVML has it only through GPM
    assert of("MIG-1", "gpu_utilization_ratio") == 0.0
    assert of("GPU-a", "gpu_utilization_ratio") is None  # runs nothing by itself
    assert of("GPU-b", "gpu_utilization_ratio") == 0.75
    assert of("MIG-2", "gpu_sm_activity_ratio") == 0.5
    assert of("MIG-2", "gpu_memory_used_bytes") == 9 * GIB
    assert processes["MIG-2"] == [os.getpid()]
    assert processes["MIG-1"] == []
