"""What a record says of its run, and that a repeat is a run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from synthetic_records import record

from peerway_measure.bench.host_state import host_state, runs
from peerway_measure.bench.plan import Plan
from peerway_measure.bench.results import Results

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_each_run_measures_everything_once_and_has_a_name_of_its_own() -> None:
    results = Results()
    for number, part in enumerate(runs(Plan(2, []), 3, results)):
        assert part.run == number
        results.add(record(extra={"window": 64}))
        results.add(record(bytes=16))
    names = [r.run for r in results.records]
    assert len(set(names)) == 3
    assert names[0::2] == names[1::2]
    assert results.records[0].extra["window"] == 64
    assert all(r.extra["load"] >= 0 and r.extra["kernel"] for r in results.records)


def test_the_host_state_names_governor_nodes_and_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cpus = tmp_path / "sys/devices/system/cpu"
    for cpu, node, governor in ((0, 0, "performance"), (1, 0, "performance"), (4, 1, "powersave")):
        (cpus / f"cpu{cpu}/cpufreq").mkdir(parents=True)
        (cpus / f"cpu{cpu}/cpufreq/scaling_governor").write_text(f"{governor}\n")
        (tmp_path / f"sys/devices/system/node/node{node}/cpu{cpu}").mkdir(parents=True)
    (tmp_path / "sys/devices/system/node/node2").mkdir()
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 4})
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    state = host_state(tmp_path)
    assert state["governor"] == "performance, powersave"
    assert state["numa"] == "CPUs 0-1,4 of node 0-1 of 3"
    assert state["slurm_job"] == "17"
    assert state["load"] == 0  # such a machine tells nothing of its CPUs
    monkeypatch.delenv("SLURM_JOB_ID")
    assert "slurm_job" not in host_state(tmp_path)


def test_the_host_state_names_what_an_upgrade_of_ofed_and_firmware_changes(tmp_path: Path) -> None:
    assert not {"nic_firmware", "nic_driver"} & host_state(tmp_path).keys()
    for nic, firmware in (("mlx5_0", "20.31.1014"), ("mlx5_1", "20.31.1014"), ("mlx5_2", "16.35.2000")):
        folder = tmp_path / "sys/class/infiniband" / nic
        (folder / "device/driver/module").mkdir(parents=True)
        (folder / "fw_ver").write_text(f"{firmware}\n")
        (folder / "device/driver/module/version").write_text("5.8-2.0.3\n")
    state = host_state(tmp_path)
    assert state["nic_firmware"] == "16.35.2000, 20.31.1014"
    assert state["nic_driver"] == "5.8-2.0.3"
