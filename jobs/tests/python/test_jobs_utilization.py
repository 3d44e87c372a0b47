"""The use of the cluster over time: what a minute has, the rollups, and the graphs that show them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jobs_cluster import TYPES, record_month
from jobs_scene import filed
from jobs_server import NOW, node_batch

from peerway_jobs.monitor import Monitor
from peerway_jobs.serve.charts import COLUMNS, area, charts, line
from peerway_jobs.serve.live import Live
from peerway_jobs.serve.recorder import minute_of
from peerway_jobs.store import utilization as rollups
from peerway_jobs.store.utilization import RANGES, record, utilization

NODE = {
    "name": "n1", "state": "busy", "cores": 64, "cores_busy": 64, "memory": 100, "memory_busy": 50, "gpus": 4,
    "gpus_busy": 2, "gpus_blocked": 0, "gpu_type": "h100", "node_type": "h100", "reason": "",
    "partitions": ["gpu"],
}  # fmt: skip
MEASURED = {
    "cpu": 0.5, "memory": 0.25, "gpus": [("a", 1.0), ("b", 0.5), ("c", None), ("", None)],
    "memory_bytes": 90.0, "watts": 700.0,
}  # fmt: skip


@pytest.fixture
def monitor(tmp_path: Path) -> Any:
    monitor = Monitor(tmp_path, clock=lambda: NOW)
    yield monitor
    monitor.close()


def minute(*nodes: dict[str, Any], at: float | None = NOW) -> dict[str, dict[str, float]]:
    return minute_of({"at": at, "nodes": list(nodes)}, NOW)


def figures(sums: dict[str, float], *names: str) -> list[float | None]:
    return [sums.get(name) for name in names]


def test_a_minute_has_what_slurm_allocated_and_what_nodes_measured() -> None:
    sums = minute({**NODE, "now": MEASURED}, {**NODE, "name": "n2", "cores_busy": 0, "state": "free"})["h100"]
    assert figures(sums, "minutes", "nodes", "cores", "cores_allocated") == [1, 2, 128, 64]
    assert figures(sums, "cores_measured", "cores_used") == [64, 32]  # of the node with an agent alone
    assert figures(sums, "gpus", "gpus_allocated", "gpus_measured", "gpus_used") == [8, 4, 2, 1.5]
    assert figures(sums, "memory_measured", "memory_used", "power_minutes", "watts") == [100, 25, 1, 700]


def test_a_node_that_is_off_counts_nowhere() -> None:
    assert minute({**NODE, "state": "off", "now": MEASURED}) == {}


@pytest.mark.parametrize("at", [None, NOW - 121])
def test_an_old_report_of_slurm_is_not_the_present(at: float | None) -> None:
    sums = minute({**NODE, "now": MEASURED}, at=at)["h100"]
    assert figures(sums, "cores", "cores_allocated") == [None, None]
    assert sums["cores_used"] == 32


def test_a_node_that_only_its_agent_knows_has_the_type_of_its_gpus() -> None:
    live = Live(lambda _: {"gpus": [{"uuid": "GPU-0", "name": "NVIDIA H100", "index": 0, "parent": None}]})
    batch = node_batch()
    batch.samples["gpu"].values["gpu_power_watts"] = [300.0] * 7 + [None]
    batch.samples["node"].values["node_power_watts"] = [3000]
    live.saw(filed(batch))
    seen = live.nodes()["node01"]
    assert (seen.gpu_name, seen.watts, seen.node_watts) == ("NVIDIA H100", 2100, 3000)
    assert minute({**NODE, "state": "unknown", "node_type": seen.gpu_name, "now": MEASURED}) == {
        "NVIDIA H100": {
            "nodes": 1, "minutes": 1, "cores_measured": 64, "cores_used": 32, "memory_measured": 100,
            "memory_used": 25, "gpus_measured": 2, "gpus_used": 1.5, "power_minutes": 1, "watts": 700,
            "node_power_minutes": 0,
        }
    }  # fmt: skip


def test_every_step_is_the_mean_of_its_minutes(monitor: Monitor) -> None:
    first = NOW // 14_400 * 14_400
    for place, busy in enumerate((64, 0, 32)):
        node = {**NODE, "cores_busy": busy, "now": {**MEASURED, "watts": 100.0 * (place + 1)}}
        record(monitor.jobs, first + 60 * place, minute_of({"at": NOW, "nodes": [node]}, NOW))
    now = first + 125
    for length, known in (("hour", [1, 0, 0.5]), ("day", [0.5]), ("month", [0.5])):
        use = utilization(monitor.jobs.reader, now, length)  # type: ignore[arg-type]
        seconds, step = RANGES[length]
        for each in (use.whole, use.types["h100"]):
            shares = each.curves["cpu_allocated"]
            assert len(shares) == seconds // step
            assert shares[-len(known) :] == known
            assert set(shares[: -len(known)]) == {None}
            assert each.curves["watts"][-1] == (300 if length == "hour" else 200)
        assert (use.whole.nodes, use.whole.cores, use.whole.gpus) == (1, 64, 4)


def test_the_whole_cluster_weighs_types_by_their_size_and_adds_their_power(monitor: Monitor) -> None:
    power = {"watts": 10.0, "node_watts": 70.0}
    large = {**NODE, "node_type": "a", "cores": 300, "cores_busy": 300, "now": {**MEASURED, **power}}
    small = {**NODE, "node_type": "b", "cores": 100, "cores_busy": 0, "now": {**MEASURED, "watts": 5.0}}
    record(monitor.jobs, NOW, minute(large, small))
    record(monitor.jobs, NOW + 60, minute(large))
    whole = utilization(monitor.jobs.reader, NOW + 60, "day").whole
    assert whole.curves["cpu_allocated"][-1] == pytest.approx(600 / 700)
    assert whole.curves["watts"][-1] == 15
    assert whole.curves["node_watts"][-1] == 70  # b has no meter
    assert [each.name for each in charts(whole)][-2:] == ["power", "node_power"]


def test_steps_are_dropped_when_they_have_been_kept_long_enough(monitor: Monitor) -> None:
    for at in (NOW - 400 * 86_400, NOW - 8 * 86_400, NOW - 2 * 86_400, NOW):
        record(monitor.jobs, at, minute(NODE))
    rows = monitor.jobs.reader.execute("SELECT step, count(*) FROM utilization GROUP BY step ORDER BY step")
    assert [tuple(row) for row in rows] == [(60, 1), (900, 2), (14_400, 3)]


@pytest.mark.sqlite
def test_a_row_that_cannot_be_read_is_left_out_and_named(monitor: Monitor) -> None:
    record_month(monitor)
    monitor.jobs.write("UPDATE utilization SET watts = 'x' WHERE step = 60 AND node_type = 'h100'")
    use = utilization(monitor.jobs.reader, NOW, "hour")
    assert use.unreadable == ["utilization.watts"]
    assert set(use.types) == set(TYPES) - {"h100"}


def test_graphs_read_few_rows_whatever_the_range(monitor: Monitor) -> None:
    record_month(monitor)
    for length, (seconds, step) in RANGES.items():
        use = utilization(monitor.jobs.reader, NOW, length)  # type: ignore[arg-type]
        assert seconds // step <= 180
        assert rollups.KEPT_S[step] >= seconds
        drawn = charts(use.types["h100"])
        assert [each.name for each in drawn] == ["cpu", "gpu", "memory", "power"]
        assert [each.name for each in charts(use.types["milan"])] == ["cpu", "memory"]
        assert all(each.used.count("H") <= COLUMNS for each in drawn)
        assert drawn[1].last_used == use.types["h100"].curves["gpu_used"][-1]


def test_a_graph_has_a_level_for_each_step_and_a_gap_where_nothing_is_known() -> None:
    values = [0.5, 0.5, None, 1.0, 0.0]
    assert line(values, 1) == "M0 50H400M600 0H800V100H1000"
    assert area(values, 1) == "M0 100V50H400V100ZM600 100V0H800V100H1000V100Z"
    assert line([None, None], 1) == ""
    assert line([3.0], 2.0) == "M0 0H1000"  # never beyond the edge
