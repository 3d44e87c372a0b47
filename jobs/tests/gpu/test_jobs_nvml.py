"""The agent of the jobs monitor reads the same from NVML of real GPUs as nvidia-smi."""

from __future__ import annotations

import importlib
import os

import jobs_on_gpus
import pytest
from jobs_on_gpus import FEW_BLOCKS, MEBIBYTES, Seen

MIB = 1 << 20
parser = pytest.importorskip("prometheus_client.openmetrics.parser", reason="the agent needs peerway-jobs")
ROUND_MS = 100  # CPU time: 1 % of a core for rounds of 10 s
RESIDENT_MIB = 64


@pytest.fixture(scope="module")
def seen(gpus: int) -> Seen:
    if os.geteuid() != 0:
        pytest.skip("a slurmstepd counts only if it is root's")
    if gpus < 2:
        pytest.skip("one job has the first GPU and another the second")
    return jobs_on_gpus.watch(20)


@pytest.fixture(params=[0, 1], ids=["all SMs busy", "few SMs busy"])
def uuid(seen: Seen, request: pytest.FixtureRequest) -> str:
    """The UUID of each of the two jobs' GPUs."""
    return [*seen.minors][int(request.param)]


def test_gpus_are_those_of_nvidia_smi(seen: Seen) -> None:
    rows = jobs_on_gpus.query("gpu", "uuid,name,index,memory.total")
    told = [[gpu.uuid, gpu.name, str(gpu.index), gpu.memory_bytes] for gpu in seen.facts().gpus]
    assert told == [[*row[:3], int(row[3]) * MIB] for row in rows]
    assert {gpu.uuid: gpu.minor for gpu in seen.facts().gpus} == seen.minors


def test_the_use_of_a_gpu_is_that_of_nvidia_smi(seen: Seen, uuid: str) -> None:
    assert seen.smi_median("utilization", uuid) >= 95  # the load keeps it busy all the time
    assert seen.median("gpu_utilization_ratio", uuid) == pytest.approx(
        seen.smi_median("utilization", uuid) / 100, abs=0.05
    )


def test_memory_is_that_of_programs_without_the_drivers_own(seen: Seen, uuid: str) -> None:
    used = seen.median("gpu_memory_used_bytes", uuid)
    assert used is not None
    assert used / MIB == pytest.approx(seen.smi_median("memory_mebibytes", uuid), abs=2)
    assert used >= len(seen.loads[uuid]) * MEBIBYTES * MIB


def test_power_temperature_and_clock_are_those_of_nvidia_smi(seen: Seen, uuid: str) -> None:
    for metric, name, unit in (
        ("gpu_power_watts", "power", 1),
        ("gpu_temperature_celsius", "temperature", 1),
        ("gpu_sm_clock_hertz", "clock_mhz", 1e6),
    ):
        assert seen.median(metric, uuid) == pytest.approx(seen.smi_median(name, uuid) * unit, rel=0.1), metric
    limit = seen.median("gpu_power_limit_watts", uuid)
    assert limit == pytest.approx(seen.smi_median("power_limit", uuid), abs=0.01)


def test_energy_grows_as_the_power_says(seen: Seen, uuid: str) -> None:
    joules = seen.series("gpu_energy_joules_total", uuid)
    assert joules
    times = [batch.mono_ms for batch in seen.batches[-len(joules) :]]
    power = (joules[-1] - joules[0]) / (times[-1] - times[0]) * 1000
    assert power == pytest.approx(seen.median("gpu_power_watts", uuid), rel=0.15)


def test_a_gpu_with_few_blocks_is_busy_and_its_sms_are_idle(seen: Seen) -> None:
    """The rule on GPUs that only look busy relies on this."""
    full, few = (seen.median("gpu_sm_activity_ratio", uuid) for uuid in list(seen.minors)[:2])
    if not gpm_is_supported():
        assert (full, few) == (None, None)
        pytest.skip("this GPU or driver has no GPM, so the agent tells no SM activity")
    assert full is not None
    assert few is not None
    assert full > 0.9
    assert 0 < few < 0.1, f"{FEW_BLOCKS} SMs are busy"


def gpm_is_supported() -> bool:
    nvml = importlib.import_module(jobs_on_gpus.NVML)
    nvml.nvmlInit()
    try:
        return bool(nvml.nvmlGpmQueryDeviceSupport(nvml.nvmlDeviceGetHandleByIndex(0)).isSupportedDevice)
    except nvml.NVMLError:
        return False
    finally:
        nvml.nvmlShutdown()


@pytest.mark.parametrize(
    ("why", "mask"), [("power", 0x4), ("thermal", 0x20 | 0x40), ("hardware", 0x8 | 0x80)]
)
def test_throttle_reasons_are_those_of_nvidia_smi(seen: Seen, uuid: str, why: str, mask: int) -> None:
    told = seen.median(f"gpu_throttled_{why}_ratio", uuid)
    assert told is not None
    smi = {float(bool(each.reasons & mask)) for each in seen.smi[uuid]}
    if len(smi) == 1:  # otherwise the reason came or went in these seconds
        assert {told} == smi


def test_processes_are_counted_as_by_nvidia_smi(seen: Seen, uuid: str) -> None:
    assert seen.series("gpu_processes", uuid)[-1] == len(seen.apps[uuid])


def test_a_process_on_the_gpu_of_another_job_is_foreign(seen: Seen) -> None:
    first, second = list(seen.minors)[:2]
    if not set(seen.loads[second]) <= seen.apps[second]:
        pytest.skip(
            f"nvidia-smi lists {sorted(seen.apps[second])} on the GPU and its programs are "
            f"{seen.loads[second]}: the driver counts processes in another PID namespace"
        )
    assert seen.series("gpu_foreign_processes", second)[-1] == 1
    assert seen.series("gpu_foreign_processes", first)[-1] == 0
    assert {(note.job, note.gpu) for note in seen.notes("foreign_process")} == {(41, second)}
    (accused,) = {pid for note in seen.notes("foreign_process") for pid in note.pids}
    assert accused == seen.loads[second][1]


def test_the_prolog_and_scontrol_lead_to_the_uuid(seen: Seen) -> None:
    first, second = list(seen.minors)[:2]
    assert (seen.allocation(41).source, seen.allocation(41).gpus) == ("prolog", [first])
    assert (seen.allocation(42).source, seen.allocation(42).gpus) == ("slurm", [second])


def test_the_page_names_gpus_by_uuid(seen: Seen) -> None:
    found = {family.name: family for family in parser.text_string_to_metric_families(seen.page)}
    used = {each.labels["gpu"]: each.value for each in found["peerway_gpu_memory_used_bytes"].samples}
    assert list(used) == list(seen.minors)
    assert all(value >= MEBIBYTES * MIB for value in list(used.values())[:2])


def test_doctor_compares_nvmls_order_with_that_of_device_files(seen: Seen) -> None:
    (found,) = [each for each in seen.doctor if each["check"] == "gpus"]
    same = all(gpu.index == gpu.minor for gpu in seen.facts().gpus)
    assert found["state"] == ("ok" if same else "warning")
    assert f"{len(seen.minors)} GPUs" in found["found"]


def test_the_cost_is_within_the_budget(seen: Seen) -> None:
    found = jobs_on_gpus.cost(seen)
    assert found["rounds"] >= 10
    assert found["resident_mib"] <= RESIDENT_MIB
    assert found["cpu_ms_a_round"] <= ROUND_MS
