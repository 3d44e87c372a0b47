"""The figures, processes and owners of AMD GPUs, on nodes with only these and beside NVIDIA's."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import amd_tree
import pytest
from amd_tree import GIB, add_gpu, counters, table, use
from node_tree import add_step, make_node, write

from peerway_jobs.agent import checks
from peerway_jobs.agent.amd import AmdGpus
from peerway_jobs.agent.ledger import Ledger, Now
from peerway_jobs.agent.loop import Agent
from peerway_jobs.agent.node_gpus import NodeGpus
from peerway_jobs.agent.records import Record
from peerway_jobs.agent.settings import Settings
from peerway_jobs.batch import Batch, Gpu, encode
from peerway_jobs.batch_check import decode

IDS = ("5a1c33b5e7d90f01", "5a1c33b5e7d90f02")
FIRST, SECOND = (f"GPU-{each}" for each in IDS)
NO_NVML = "no_such_module"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A node with two MI300X, and the display of its management controller."""
    root = tmp_path / "root"
    make_node(root)
    write(root, "sys/class/drm/card9/device/vendor", "0x1a03\n")
    write(root, "sys/class/drm/card0-DP-1/status", "disconnected\n")
    for card, unique_id in enumerate(IDS):
        add_gpu(root, card, unique_id, busy=90 * card)
    return root


def figures(gpus: AmdGpus, device: str = FIRST) -> dict[str, float | int | None]:
    samples, _ = gpus.sample()
    place = samples.devices.index(device)
    return {name: column[place] for name, column in samples.values.items() if column[place] is not None}


def test_the_properties_and_figures_of_each_gpu(root: Path) -> None:
    gpus = AmdGpus(str(root))
    assert gpus.facts() == [
        Gpu(uuid, "AMD Instinct MI300X OAM", 192 * GIB, place, 128 + place)
        for place, uuid in enumerate((FIRST, SECOND))
    ]
    assert figures(gpus, SECOND) == pytest.approx({
        "gpu_utilization_ratio": 0.9, "gpu_memory_utilization_ratio": 0.2,
        "gpu_memory_used_bytes": 48 * GIB, "gpu_memory_total_bytes": 192 * GIB,
        "gpu_power_watts": 450, "gpu_power_limit_watts": 750, "gpu_sm_clock_hertz": 2.1e9,
        "gpu_temperature_celsius": 71, "gpu_energy_joules_total": 1 << 20, "gpu_processes": 0,
    })  # fmt: skip
    assert gpus.reasons == {}


@pytest.mark.parametrize(
    ("files", "metric", "value"),
    [
        ({"hwmon/hwmon3/power1_average": "300000000"}, "gpu_power_watts", 300),
        ({"hwmon/hwmon3/temp1_label": "edge", "hwmon/hwmon3/temp1_input": "55000"},
         "gpu_temperature_celsius", 55),
        ({"hwmon/hwmon3/temp2_label": "", "hwmon/hwmon3/temp3_label": "",
          "hwmon/hwmon3/temp1_input": "44000"}, "gpu_temperature_celsius", 44),
    ],
    ids=["the mean power is better than that of one moment", "edge before junction", "no labels"],
)  # fmt: skip
def test_the_best_sensor_is_read(root: Path, files: dict[str, str], metric: str, value: float) -> None:
    for name, text in files.items():
        write(root, f"{amd_tree.CARD.format(0)}/{name}", f"{text}\n")
    assert figures(AmdGpus(str(root)))[metric] == pytest.approx(value)


def throttled(power: float, thermal: float, hardware: float) -> dict[str, float]:
    return {
        "gpu_throttled_power_ratio": power,
        "gpu_throttled_thermal_ratio": thermal,
        "gpu_throttled_hardware_ratio": hardware,
    }


def throttling(gpus: AmdGpus) -> dict[str, float | int | None]:
    return {name: value for name, value in figures(gpus).items() if "throttled" in name}


def test_shares_of_throttled_time_come_from_two_tables(root: Path) -> None:
    gpus = AmdGpus(str(root))
    assert throttling(gpus) == {}
    counters(root, 0, 3000, 1000, 200, 20)
    assert throttling(gpus) == pytest.approx(throttled(0.5, 0.1, 0.01))
    assert throttling(gpus) == {}  # the same table again
    counters(root, 0, (1 << 32) - 1000, 1000, 200, 20)
    throttling(gpus)
    counters(root, 0, 1000, 1500, 200, 20)  # the counter of cycles began again at 0
    assert throttling(gpus) == pytest.approx(throttled(0.25, 0, 0))
    counters(root, 0, 10, 0, 0, 0)  # the GPU was reset
    assert throttling(gpus) == {}


@pytest.mark.parametrize(
    ("bits", "shares"),
    [
        (0, throttled(0, 0, 0)),
        (1 << 0, throttled(1, 0, 0)),
        (1 << 36, throttled(0, 1, 0)),
        (1 << 47 | 1 << 16, throttled(0, 0, 1)),
        (1 << 56, throttled(0, 0, 0)),  # neither a limit of power nor heat
        ((1 << 64) - 1, {}),
    ],
    ids=["none", "power", "hotspot", "current and PROCHOT", "other", "unknown"],
)
def test_bits_of_throttling(root: Path, bits: int, shares: dict[str, float]) -> None:
    amd_tree.status(root, 0, bits)
    assert throttling(AmdGpus(str(root))) == shares


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "0 bytes are no table"),
        (struct.pack("<HBB", 200, 1, 5).ljust(200, b"\0"), "a table 1.5 of 200 bytes"),
        (struct.pack("<HBB", 120, 2, 3).ljust(120, b"\0"), "a table 2.3"),
        (struct.pack("<HBB", 3872, 1, 8), "a table 1.8 of 3872 bytes"),
        (struct.pack("<HBB", 600, 1, 6).ljust(600, b"\0"), "a table 1.6 of 600 bytes"),
    ],
    ids=["empty", "bits of the chip", "of an APU", "cut short", "another size"],
)
def test_an_unknown_table_costs_only_throttling_and_energy(root: Path, content: bytes, reason: str) -> None:
    table(root, 0, content)
    gpus = AmdGpus(str(root))
    measured = figures(gpus)
    assert measured["gpu_power_watts"] == pytest.approx(450)
    assert not {name for name in measured if "throttled" in name or "energy" in name}
    assert reason in gpus.reasons[FIRST, "gpu_metrics"]


@pytest.mark.parametrize(
    ("name", "text", "metric", "reason"),
    [
        ("gpu_busy_percent", None, "gpu_utilization_ratio", ""),
        ("gpu_busy_percent", "N/A", "gpu_utilization_ratio", "'N/A'"),
        ("gpu_busy_percent", "4294967295", "gpu_utilization_ratio", "not from 0 to 1.01"),
        ("mem_info_vram_used", str(500 * GIB), "gpu_memory_used_bytes", "more than"),
        ("hwmon/hwmon3/power1_input", "-1", "gpu_power_watts", "not from 0 to 10,000"),
        ("hwmon/hwmon3/temp2_input", "", "gpu_temperature_celsius", "''"),
    ],
)
def test_what_one_file_cannot_tell_costs_only_that(
    root: Path, name: str, text: str | None, metric: str, reason: str
) -> None:
    before = figures(AmdGpus(str(root)))
    if text is None:
        (root / amd_tree.CARD.format(0) / name).unlink()
    else:
        write(root, f"{amd_tree.CARD.format(0)}/{name}", text)
    gpus = AmdGpus(str(root))
    assert figures(gpus) == {key: value for key, value in before.items() if key != metric}
    assert [why for why in gpus.reasons.values() if reason in why] if reason else gpus.reasons == {}


def test_a_file_that_the_driver_cannot_read_is_noted(root: Path) -> None:
    path = root / amd_tree.CARD.format(0) / "gpu_busy_percent"
    path.unlink()
    path.mkdir()  # reading it is an error other than "not supported"
    gpus = AmdGpus(str(root))
    assert "gpu_utilization_ratio" not in figures(gpus)
    assert gpus.reasons[FIRST, "gpu_busy_percent"] == "gpu_busy_percent: Is a directory"


def test_a_gpu_without_a_unique_id_is_called_by_its_address(root: Path) -> None:
    write(root, f"{amd_tree.CARD.format(0)}/unique_id", "0\n")
    (root / amd_tree.CARD.format(0) / "product_name").unlink()
    (gpu, _) = AmdGpus(str(root)).facts()
    assert (gpu.uuid, gpu.name) == ("PCI-0000:01:00.0", "AMD GPU 0x74a1")


def test_gpus_with_one_unique_id_have_two_names(root: Path) -> None:
    write(root, f"{amd_tree.CARD.format(1)}/unique_id", f"{IDS[0]}\n")
    gpus = AmdGpus(str(root))
    gpus.refresh()
    assert [gpu.uuid for gpu in gpus.facts()] == [FIRST, "PCI-0000:02:00.0"]


def test_the_half_of_a_gpu_that_reports_no_power_has_no_power(root: Path) -> None:
    for name in ("power1_input", "power1_cap"):
        write(root, f"{amd_tree.CARD.format(1)}/hwmon/hwmon3/{name}", "0\n")
    gpus = AmdGpus(str(root))
    assert not {name for name in figures(gpus, SECOND) if "power" in name} - {"gpu_throttled_power_ratio"}
    assert figures(gpus)["gpu_power_watts"] == pytest.approx(450)


def test_a_lost_gpu_stays_without_figures_until_the_driver_is_unloaded(root: Path) -> None:
    gpus = AmdGpus(str(root))
    shutil.rmtree(root / "sys/class/drm/card0")
    gpus.refresh()
    assert [gpu.uuid for gpu in gpus.facts()] == [FIRST, SECOND]
    assert figures(gpus) == {}
    assert figures(gpus, SECOND)["gpu_utilization_ratio"] == 0.9
    shutil.rmtree(root / "sys/class/drm")
    gpus.refresh()
    assert gpus.facts() == []
    assert gpus.why_none == "amdgpu shows none"


def test_a_process_uses_the_gpus_where_it_has_memory_or_a_queue(root: Path) -> None:
    use(root, 201, 0, vram=GIB)
    use(root, 201, 1)  # opened only
    use(root, 202, 1, queue=True)
    write(root, f"{amd_tree.PROC}/202/pasid", "32770\n")
    _, processes = AmdGpus(str(root)).sample()
    assert processes == {FIRST: [201], SECOND: [202]}


def test_without_the_compute_driver_the_processes_are_unknown(root: Path) -> None:
    shutil.rmtree(root / "sys/class/kfd")
    gpus = AmdGpus(str(root))
    assert "gpu_processes" not in figures(gpus)
    assert gpus.sample()[1] == {}


def test_both_sizes_of_table_1_8_are_read(root: Path) -> None:
    """The kernel added a counter to the figures of each partition without a new revision."""
    gpus = AmdGpus(str(root))
    assert figures(gpus)["gpu_energy_joules_total"] == 1 << 20
    content = (root / amd_tree.CARD.format(0) / "gpu_metrics").read_bytes()
    table(root, 0, struct.pack("<H", 3360) + content[2:3360])
    assert figures(gpus)["gpu_energy_joules_total"] == 1 << 20
    assert gpus.reasons == {}


def named(root: Path, cycles: int, power: int, heat: int, busy: list[int]) -> None:
    """Write table 1.9 as the driver of ROCm 7 does: a temperature, energy, cycles, and the dies."""
    amd_tree.fields(
        root, 0, (0, "H", [42]), (7, "Q", [1 << 36]), (9, "I", [cycles]), (10, "I", [0]), (11, "I", [power]),
        (12, "I", [0]), (13, "I", [heat]), (14, "I", [0]), (33, "H", [2100] * 8), (40, "I", busy),
    )  # fmt: skip


def test_a_table_that_names_its_fields_is_read(root: Path) -> None:
    gpus = AmdGpus(str(root))
    named(root, 55_257_356, 749_905, 0, [100] * 8)
    assert throttling(gpus) == {}
    assert figures(gpus)["gpu_energy_joules_total"] == 1 << 20
    named(root, 55_262_364, 754_247, 2504, [100] * 8)
    assert throttling(gpus) == pytest.approx(throttled(4342 / 5008, 0.5, 0))
    assert gpus.reasons == {}
    content = (root / amd_tree.CARD.format(0) / "gpu_metrics").read_bytes()
    for length in (8, 20, 60, len(content) - 1):  # cut short at any place
        table(root, 0, struct.pack("<H", length) + content[2:length])
        assert throttling(gpus) == {}
    odd = bytearray(content)
    odd[8 + 2] |= 0x80  # a type that the kernel does not have
    table(root, 0, bytes(odd))
    assert "gpu_energy_joules_total" not in figures(gpus)


def parts_of(uuid: str, count: int) -> list[str]:
    return [f"{uuid}.{place}" for place in range(count)]


@pytest.mark.parametrize("in_function", [False, True], ids=["upper bits", "bits of the function"])
def test_each_partition_is_a_device_of_its_own(root: Path, in_function: bool) -> None:
    add_gpu(root, 1, IDS[1], parts=4, in_function=in_function)
    counters(root, 1, 1000, 0, 0, 0, [[100, 50], [0, 0], [30], []])
    use(root, 201, 1, part=3, vram=GIB, queue=True)
    use(root, 202, 1, part=0, vram=2 * GIB)
    write(root, f"{amd_tree.kfd_node(1, 0)}/mem_banks/0/used_memory", f"{3 * GIB}\n")
    gpus = NodeGpus(NO_NVML, str(root))
    quarters = parts_of(SECOND, 4)
    assert gpus.facts()[1:] == [
        Gpu(SECOND, "AMD Instinct MI300X OAM", 192 * GIB, 1, None),
        *(
            Gpu(name, "AMD Instinct MI300X OAM QPX/NPS1", 48 * GIB, None, 129 + place, SECOND)
            for place, name in enumerate(quarters)
        ),
    ]
    samples, processes = gpus.sample()
    assert processes == {FIRST: [], quarters[0]: [202], quarters[1]: [], quarters[2]: [], quarters[3]: [201]}
    assert [samples.values["gpu_utilization_ratio"][2 + place] for place in range(4)] == [0.75, 0, 0.3, None]
    assert samples.values["gpu_memory_used_bytes"][1:] == [48 * GIB, 3 * GIB, 0, 0, GIB]
    assert samples.values["gpu_memory_total_bytes"][1:] == [192 * GIB, *[48 * GIB] * 4]
    assert samples.values["gpu_power_watts"][1:] == [450, *[None] * 4]
    assert set(gpus.reasons) == {("GPUs", "")}  # of NVIDIA's


def test_the_dies_of_a_table_that_names_its_fields_are_those_of_the_partitions_in_order(root: Path) -> None:
    def busy() -> list[float | None]:
        samples, _ = AmdGpus(str(root)).sample()
        halves = [samples.devices.index(name) for name in parts_of(FIRST, 2)]
        return [samples.values.get("gpu_utilization_ratio", [None] * 4)[place] for place in halves]

    add_gpu(root, 0, IDS[0], parts=2)
    named(root, 1, 0, 0, [10, 20, 30, 40, 50, 60, 70, 80])
    assert busy() == [0.25, 0.65]
    named(root, 1, 0, 0, [10, 20, 30, 40, 50, 60, amd_tree.ABSENT, amd_tree.ABSENT])  # a GPU with six dies
    assert busy() == [0.2, 0.5]
    named(root, 1, 0, 0, [10, 20, 30, 40, 50, *[amd_tree.ABSENT] * 3])  # which belong to no partition surely
    assert busy() == [None, None]
    named(root, 1, 0, 0, [amd_tree.ABSENT] * 8)  # older firmware
    assert busy() == [None, None]


def test_partitions_come_and_go_with_the_mode_and_stay_with_a_lost_gpu(root: Path) -> None:
    gpus = AmdGpus(str(root))
    add_gpu(root, 0, IDS[0], parts=2)
    gpus.refresh()
    assert [gpu.uuid for gpu in gpus.facts()] == [FIRST, *parts_of(FIRST, 2), SECOND]
    shutil.rmtree(root / "sys/class/drm/card0")
    shutil.rmtree(root / amd_tree.kfd_node(0, 0))
    shutil.rmtree(root / amd_tree.kfd_node(0, 1))
    gpus.refresh()
    assert [gpu.uuid for gpu in gpus.facts()] == [FIRST, *parts_of(FIRST, 2), SECOND]
    assert figures(gpus, f"{FIRST}.1") == {}
    add_gpu(root, 0, IDS[0])
    gpus.refresh()
    assert [gpu.uuid for gpu in gpus.facts()] == [FIRST, SECOND]


def test_a_partition_belongs_to_the_job_with_its_number(root: Path) -> None:
    """With every GPU divided Slurm's places are those of all partitions, in the order of their files."""
    for card in range(2):
        shutil.rmtree(root / f"sys/class/drm/card{card}")
    add_gpu(root, 3, IDS[0], parts=8)
    gpus = NodeGpus(NO_NVML, str(root))
    eighths = parts_of(FIRST, 8)
    assert [each.state for each in checks.gpus(gpus, "")] == ["ok"]
    assert owned(gpus, "131,138") == ([eighths[0], eighths[7]], True)
    assert owned(gpus, "0,7") == ([eighths[0], eighths[7]], True)
    assert owned(gpus, "", eighths[2]) == ([eighths[2]], True)
    node = amd_tree.kfd_node(3, 5)
    write(root, f"{node}/properties", f"location_id {5 << 28 | 4 << 8}\ndomain 0\n")  # no render node
    gpus.refresh()
    (diagnosis,) = checks.gpus(gpus, "")
    assert diagnosis.state == "warning"
    assert f"1 of 8 AMD GPUs have not exactly one render node, as {eighths[5]}" in diagnosis.observed
    assert owned(gpus, "5") == ([], False)


NOW = Now(1_795_300_000_000, 100_000, "6f1c2b3a-0000-4000-8000-0123456789ab")


def owned(gpus: NodeGpus, numbers: str, visible: str = "") -> tuple[list[str], bool]:
    """The GPUs of a job to which Slurm gave these, and whether they are all that it has."""
    ledger = Ledger(Path("never written"), gpus.facts)
    ledger.record(
        Record("", "prolog", 7, NOW.wall_ms, NOW.mono_ms, NOW.boot, 1000, "ann", "gpu", None, numbers,
               visible, False), NOW,
    )  # fmt: skip
    (interval,) = ledger.changed()
    return interval.gpus, ledger.knows_gpus_of(7)


@pytest.mark.parametrize(
    ("numbers", "visible", "uuids"),
    [
        ("129", "1", [SECOND]),  # the number in the name of the device file
        ("1", "1", [SECOND]),  # the place in Slurm's list
        ("0,1", f"{FIRST},{SECOND}", [FIRST, SECOND]),
        ("0", FIRST, [FIRST]),
        ("7", "7", []),
    ],
)
def test_the_gpus_of_a_job(root: Path, numbers: str, visible: str, uuids: list[str]) -> None:
    assert owned(NodeGpus(NO_NVML, str(root)), numbers, visible) == (uuids, bool(uuids))


@pytest.fixture
def mixed(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NodeGpus:
    """The same node with two GPUs of NVIDIA, too."""
    described = [
        {"uuid": f"GPU-{n}", "minor": n, "name": "NVIDIA H100", "memory": 80 * GIB} for n in range(2)
    ]
    (tmp_path / "gpus.json").write_text(json.dumps(described))
    (tmp_path / "use").mkdir()
    monkeypatch.setenv("FAKE_GPUS", str(tmp_path))
    return NodeGpus("peerway_measure.rehearse.cluster.fake_nvml", str(root))


def test_a_node_with_gpus_of_both_makers(mixed: NodeGpus, root: Path) -> None:
    use(root, 201, 0, queue=True)
    assert [(gpu.uuid, gpu.index) for gpu in mixed.facts()] == [
        ("GPU-0", 0), ("GPU-1", 1), (FIRST, 2), (SECOND, 3),
    ]  # fmt: skip
    samples, processes = mixed.sample()
    assert samples.devices == ["GPU-0", "GPU-1", FIRST, SECOND]
    assert samples.values["gpu_utilization_ratio"] == [0, 0, 0, 0.9]
    assert processes == {"GPU-0": [], "GPU-1": [], FIRST: [201], SECOND: []}
    assert [each.state for each in checks.gpus(mixed, "")] == ["ok", "warning"]


@pytest.mark.parametrize(
    ("numbers", "visible", "uuids"),
    [("128", "", [FIRST]), ("1", "1", []), ("1", SECOND, [SECOND]), ("0", "GPU-0", ["GPU-0"])],
    ids=["a render node", "a number that may mean two GPUs", "AMD's id", "NVIDIA's UUID"],
)
def test_the_gpus_of_a_job_on_a_mixed_node(
    mixed: NodeGpus, numbers: str, visible: str, uuids: list[str]
) -> None:
    assert owned(mixed, numbers, visible) == (uuids, bool(uuids))


def test_one_maker_s_failure_leaves_the_other_s_figures(
    mixed: NodeGpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> None:
        raise RuntimeError("broken driver")

    for maker, rest in (("nvidia", [FIRST, SECOND]), ("amd", ["GPU-0", "GPU-1"])):
        with monkeypatch.context() as broken:
            for name in ("sample", "refresh"):
                broken.setattr(getattr(mixed, maker), name, fails)
            mixed.refresh()
            assert mixed.sample()[0].devices == rest
        assert "RuntimeError: broken driver" in mixed.reasons.values()
        mixed.reasons.clear()


def test_the_agent_sends_them_and_notes_a_job_on_the_gpu_of_another(root: Path, tmp_path: Path) -> None:
    """Job 7 was given the first GPU, and job 8 the second and uses both."""
    for job, number in ((7, 128), (8, 129)):
        (pid,) = add_step(root, job, "0", version=2)
        use(root, pid, job - 7, queue=True)
        record = f"job={job}\nwall_ms=1\nmono_ms=1\nboot={NOW.boot}\nuid=1000\ngpus={number}\ncuda=\nrocr=0\n"
        write(tmp_path, f"state/events/{job}.1.prolog", record)
    use(root, pid, 0, queue=True)
    agent = Agent(
        Settings(node="n1", state=str(tmp_path / "state"), root=str(root), page="", nvml=NO_NVML),
        lambda _: None,
    )
    batch: Batch = decode(encode(agent.round()))
    agent.close()
    assert {each.job: each.gpus for each in batch.intervals if each.step is None} == {7: [FIRST], 8: [SECOND]}
    assert [(note.job, note.owner, note.gpu, note.pids) for note in batch.notes if note.gpu] == [
        (8, 7, FIRST, [pid])
    ]
    assert batch.samples["gpu"].values["gpu_processes"] == [2, 1]
    assert batch.samples["gpu"].values["gpu_foreign_processes"] == [1, 0]
    assert batch.facts is not None
    assert [gpu.uuid for gpu in batch.facts.gpus] == [FIRST, SECOND]
