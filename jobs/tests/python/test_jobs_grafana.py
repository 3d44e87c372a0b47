"""The dashboards: every query of every panel, run by a real Prometheus that scrapes a real server."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from jobs_scene import GIB, filed
from jobs_server import NOW, Server, node_batch, served
from test_jobs_store import free_port

import peerway_jobs
from peerway_jobs.batch import Samples
from peerway_jobs.serve.people import People
from peerway_jobs.store import acts, deliveries
from peerway_jobs.store.acts import Act

FOLDER = Path(peerway_jobs.__file__).parent / "grafana"
PAGES = Path(__file__).resolve().parents[3] / "docs" / "jobs"
BOARDS: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text()) for path in FOLDER.glob("*.json")
}
JOB = "peerway-jobs"
VARIABLES = {"$node": ".*", "$job": JOB, "$__rate_interval": "1m"}
QUERIES = [
    (name, panel["title"], target["expr"])
    for name, board in sorted(BOARDS.items())
    for panel in board["panels"]
    for target in panel["targets"]
]
# Counted while a test runs, but never in this one.
METRIC = re.compile(r"\b(?:peerway_jobs|process)_[a-z_]+")


@dataclass
class Scraped:
    """A server that a Prometheus scrapes."""

    server: Server
    url: str
    pages: dict[str, str]

    def query(self, expression: str) -> list[dict[str, Any]]:
        address = f"{self.url}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"
        with urllib.request.urlopen(address, timeout=60) as answer:
            series: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        return series


def busy_batch(seq: int, node: str) -> Any:
    """A node's batch with its CPU time, of which the server needs two."""
    batch = node_batch(seq, node, wall_ms=int(NOW * 1000) - 20_000 + seq * 10_000)
    figures = {"node_cpu_busy_seconds_total": [100.0 * seq], "node_memory_total_bytes": [512 * GIB],
               "node_memory_available_bytes": [400 * GIB]}  # fmt: skip
    batch.samples["node"] = Samples(["node"], dict(figures))
    batch.samples["core"] = Samples([str(n) for n in range(64)])
    return batch


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scraped]:
    if not shutil.which("prometheus"):
        pytest.skip("there is no prometheus; on Debian: apt-get install prometheus")
    folder = tmp_path_factory.mktemp("grafana")
    with served(folder / "jobs") as server:
        monitor = server.monitor
        monitor.jobs.slurm_answered = monitor.jobs.accounts_answered = NOW - 10
        deliveries.record(monitor.jobs, "ops", "jobs", NOW - 60, NOW - 60, deliveries.SENT)
        acts.record(monitor.jobs, Act(NOW - 60, "idle", "f", "warn", "106", user="carol"))
        for node in ("node01", "node02"):
            for seq in (1, 2):
                server.app.state.peerway.live.saw(filed(busy_batch(seq, node)))
        People(monitor.jobs).put("prometheus", "admin", [])
        token = server.token("prometheus", "cluster:read")
        (folder / "token").write_text(token)
        head = {"Authorization": f"Bearer {token}"}
        pages = {
            path: httpx.get(server.url + path, headers=head).text for path in ("/metrics", "/metrics/nodes")
        }
        with prometheus(folder, server.url) as url:
            found = Scraped(server, url, pages)
            wait_for_scrapes(found)
            yield found


class prometheus:  # noqa: N801
    """A Prometheus that scrapes both pages, as the documentation configures it."""

    def __init__(self, folder: Path, server: str) -> None:
        self._folder, self._port = folder, free_port()
        target = server.removeprefix("http://")
        common = (
            f"scheme: http, authorization: {{credentials_file: {folder}/token}}, "
            f'static_configs: [{{targets: ["{target}"]}}]'
        )
        (folder / "p.yml").write_text(
            "global: {scrape_interval: 300ms}\nscrape_configs:\n"
            f"  - {{job_name: {JOB}, {common}}}\n"
            f"  - {{job_name: {JOB}-nodes, metrics_path: /metrics/nodes, {common}}}\n"
        )

    def __enter__(self) -> str:
        command = [
            "prometheus", f"--config.file={self._folder}/p.yml", f"--storage.tsdb.path={self._folder}/d",
            f"--web.listen-address=127.0.0.1:{self._port}", "--log.level=error",
        ]  # fmt: skip
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        return f"http://127.0.0.1:{self._port}"

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


def wait_for_scrapes(scraped: Scraped) -> None:
    """Wait until each page was scraped three times: a rate needs two samples."""
    for _ in range(600):
        try:
            counts = [float(each["value"][1]) for each in scraped.query("count_over_time(up[5m]) * up")]
        except OSError:
            counts = []
        if len(counts) == 2 and min(counts) >= 3:
            return
        time.sleep(0.1)
    raise AssertionError(f"no scrapes: {scraped.query('up')}")


@pytest.mark.parametrize(("board", "title", "expression"), QUERIES)
def test_every_query_has_an_answer(scraped: Scraped, board: str, title: str, expression: str) -> None:
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    assert "$" not in expression
    answer = scraped.query(expression)
    assert answer, f"{board}, {title}: {expression} has no series"
    values = [float(each["value"][1]) for each in answer]
    assert not any(map(math.isnan, values)), f"{board}, {title}: {answer}"


def test_the_variables_of_the_dashboards_have_values(scraped: Scraped) -> None:
    for board in BOARDS.values():
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["definition"]).groups()  # type: ignore[union-attr]
                assert variable["query"]["query"] == variable["definition"]
                assert all(each["metric"][label] for each in scraped.query(metric))
                assert scraped.query(metric)


def test_values_of_a_dashboard_are_those_of_the_server(scraped: Scraped) -> None:
    """Of a few, by hand: the scene has 5 running jobs by Slurm's report, and carol's GPU is idle."""
    assert float(scraped.query("peerway_jobs_running")[0]["value"][1]) == 5
    assert float(scraped.query('peerway_jobs_running_verdicts{verdict="inefficient"}')[0]["value"][1]) == 1
    idle = scraped.query('peerway_jobs_hours_last_day{device="gpu",use="idle"}')
    base = scraped.server.monitor.jobs.reader
    (hours,) = base.execute("SELECT sum(idle_gpu_hours) FROM jobs WHERE ended IS NOT NULL").fetchone()
    assert float(idle[0]["value"][1]) == pytest.approx(hours)
    assert hours > 1
    # 100 busy seconds in 10 s on 64 cores
    cpu = scraped.query('peerway_jobs_node_cpu_ratio{node="node01"}')
    assert float(cpu[0]["value"][1]) == pytest.approx(100 / 10 / 64)


def test_the_page_of_metrics_describes_all_that_are_served(scraped: Scraped) -> None:
    page = (PAGES / "grafana.md").read_text()
    served_names = {
        name
        for text in scraped.pages.values()
        for name in re.findall(r"^# TYPE (\w+) ", text, re.MULTILINE)
        if not name.startswith("process_")
    }
    described = {name.removesuffix("_total") for name in re.findall(r"`(peerway_jobs_\w+)`", page)}
    assert served_names == described


@pytest.mark.parametrize("name", sorted(BOARDS))
def test_a_dashboard_is_well_formed(name: str) -> None:
    """What Grafana requires of a file, and that no two panels overlap."""
    board = BOARDS[name]
    assert board["uid"]
    assert board["schemaVersion"] >= 36
    ids = [panel["id"] for panel in board["panels"]]
    assert len({*ids}) == len(ids)
    cells: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        area = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not cells & area, panel["title"]
        cells |= area
        for target in panel["targets"]:
            assert (
                panel["datasource"] == target["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            )
            assert METRIC.search(target["expr"])
    used = set(re.findall(r"\$(?:\{)?([a-z]\w*)", json.dumps(board)))
    assert used <= {each["name"] for each in board["templating"]["list"]}


def test_there_are_the_dashboards_that_the_page_names() -> None:
    assert set(BOARDS) == {"jobs", "nodes", "server"}
    assert len({board["uid"] for board in BOARDS.values()}) == len(BOARDS)


def test_a_silent_agent_has_an_age_and_no_figures(scraped: Scraped) -> None:
    old = busy_batch(1, "silent")
    old.wall_ms -= 600_000
    scraped.server.app.state.peerway.live.saw(filed(old))
    head = {"Authorization": f"Bearer {scraped.server.token('prometheus', 'cluster:read')}"}
    lines = httpx.get(f"{scraped.server.url}/metrics/nodes", headers=head).text.splitlines()
    about = [line.partition("{")[0] for line in lines if '"silent"' in line]
    assert about == ["peerway_jobs_node_seen_age_seconds"]


def test_only_who_may_read_the_cluster_gets_the_figures_of_nodes(scraped: Scraped) -> None:
    for path in ("/metrics", "/metrics/nodes"):
        assert httpx.get(scraped.server.url + path).status_code == 401
        head = {"Authorization": f"Bearer {scraped.server.token('bob', 'jobs:read')}"}
        assert httpx.get(scraped.server.url + path, headers=head).status_code == 403
        reader = {"Authorization": f"Bearer {scraped.server.token('bob', 'cluster:read')}"}
        assert "account=" not in httpx.get(scraped.server.url + path, headers=reader).text
        text = scraped.pages[path]
        assert not re.search("alice|carol|train-resnet", text)
