"""The first picture of a job's page, and which graphs are one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jobs_scene import GIB, START, Job, put

from peerway_jobs.monitor import Monitor
from peerway_jobs.serve.efficiency import flat, flat_strips
from peerway_jobs.serve.series_data import DRAWN, plots

CPU, GPU, MEMORY = "step_cpu_user_seconds_total", "gpu_utilization_ratio", "step_memory_bytes"
SPAN = (1000.0, 2000.0)
WHOLE = [1_000_000 + 50_000 * i for i in range(21)]


def drawn(tmp_path: Path, job: Job) -> dict[str, Any]:
    monitor = Monitor(tmp_path / "jobs", clock=lambda: START + 86_400.0)
    put(monitor, job)
    run = monitor.jobs.run(str(job.job))
    assert run is not None
    data = plots(monitor.measured(run, DRAWN))
    monitor.close()
    return data


def lines(data: dict[str, Any]) -> dict[str, set[float | None]]:
    return {line["name"]: set(line["y"]) for line in data["efficiency"]["lines"]}


def test_the_picture_has_the_share_of_what_was_allocated(tmp_path: Path) -> None:
    figures = {CPU: 4.0, GPU: [1.0, 0.5, 0.0, 0.0], MEMORY: 8 * GIB}
    data = drawn(tmp_path, Job(1, figures, nodes=2, cores=8, gpus=4, node_gpus=4, memory=64 * GIB))
    assert lines(data) == {"gpu": {37.5}, "cpu": {50.0}, "memory": {25.0}}
    times = data["efficiency"]["lines"][0]["x"]
    assert START * 1000 < times[0] < times[-1] < (START + 7200) * 1000


def test_an_idle_jobs_lines_are_one_sentence(tmp_path: Path) -> None:
    figures = {CPU: 0.01, GPU: 0.0, MEMORY: 2 * GIB, "gpu_power_watts": 60.0, "gpu_memory_used_bytes": GIB}
    data = drawn(tmp_path, Job(1, figures, cores=8, gpus=4, node_gpus=4))
    stayed = {plot["set"]: plot["flat"] for plot in data["plots"]}
    assert stayed == {"gpu.utilization": 0, "gpu.power": 60, "gpu.memory_used": GIB,
                      "step.cpu": pytest.approx(0.01), "step.memory": 2 * GIB}  # fmt: skip


def test_time_without_data_is_a_gap_and_never_a_sentence(tmp_path: Path) -> None:
    data = drawn(tmp_path, Job(1, {CPU: 4.0}, cores=8, measured=0.5))
    assert lines(data) == {"cpu": {50.0, None}}
    assert [plot["flat"] for plot in data["plots"]] == [None]


def test_a_job_without_data_has_no_picture(tmp_path: Path) -> None:
    assert drawn(tmp_path, Job(1, {}, cores=8))["efficiency"] is None


@pytest.mark.parametrize(
    ("unit", "several", "value"),
    [
        ("percent", [[0, 0, 0]], 0),
        ("percent", [[0, 2, 1]], 1),
        ("percent", [[0, 3, 0]], None),
        ("percent", [[100, 100, 100], [0, 0, 0]], None),  # one GPU of two
        ("percent", [[99, 100, 99], [100, 99, 100]], 99.5),
        ("watts", [[400, 407, 400]], 402.33),  # two per cent of it
        ("watts", [[60, 66, 60]], None),
        ("bytes", [[1 << 40, (1 << 40) + (1 << 30), 1 << 40]], 1099869518097.07),
        ("cores", [[0, 0.04, 0]], 0.0133),
        ("cores", [[0, 1, 0]], None),
        ("percent", [[0, None, 0]], None),
        ("percent", [], None),
    ],
)
def test_which_graphs_stay_the_same(unit: str, several: list[list[float]], value: float | None) -> None:
    plot = {"unit": unit, "left_out": 0, "lines": [{"x": WHOLE, "y": line * 7} for line in several]}
    assert flat(plot, SPAN) == (value if value is None else pytest.approx(value, rel=0.01))
    assert flat({**plot, "left_out": 1}, SPAN) is None
    assert flat(plot, None) is None
    assert flat(plot, (0.0, 2000.0)) is None  # half of the time is not measured
    thin = {**plot, "lines": [{"x": WHOLE[:8] + WHOLE[12:], "y": line * 6} for line in several]}
    assert flat(thin, SPAN) is None  # a fifth of the time within is not


@pytest.mark.parametrize(
    ("rows", "value"),
    [([[0, 0], [0, 0]], 0), ([[1, 2], [3, 2]], 3), ([[0, 0], [0, 100]], None), ([[0, -1]], None)],
)
def test_strips_of_cores_that_stay_the_same(rows: list[list[int]], value: int | None) -> None:
    assert flat_strips({"rows": rows}) == value
    assert flat_strips(None) is None
