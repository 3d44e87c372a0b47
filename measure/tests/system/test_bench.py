"""`peerway bench`, `tune` and `explain` between real processes, as a user runs them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from launching import LIMIT, clean_environment, run_command

from peerway_measure import records
from peerway_measure.bench import machine, session
from peerway_measure.bench.kinds import DEFAULT_TESTS, KINDS, LIMITS, POLICIES
from peerway_measure.bench.plan import Plan
from peerway_measure.bench.shapes import contiguous
from peerway_measure.tune import cases

PEERWAY = [sys.executable, "-m", "peerway"]


def peerway(*arguments: object, home: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = clean_environment(XDG_CONFIG_HOME=str(home), XDG_CACHE_HOME=str(home), **settings)
    return run_command([*PEERWAY, *map(str, arguments)], environment)


# The face of the cube with the most blocks; the test cube has all three faces in either case.
BLOCKS = "contiguous,cube:3/k"


@pytest.mark.parametrize(
    ("ranks", "memories", "sizes", "shapes"),
    [
        pytest.param(2, "host", "65537", BLOCKS, marks=[pytest.mark.alone, pytest.mark.long]),
        pytest.param(2, "host:malloc", "65537", "contiguous,cube:3", marks=pytest.mark.long),
        (4, "host-host:malloc", "65537", BLOCKS),
        pytest.param(2, "host,host:malloc", "1,65537", "contiguous,cube:3", marks=pytest.mark.long),
    ],
)
def test_every_test_moves_the_right_data_over_every_path(
    ranks: int, memories: str, sizes: str, shapes: str, tmp_path: Path
) -> None:
    out = tmp_path / "records.jsonl"
    done = peerway(
        "bench", "--quick", "--ranks", ranks, "--sizes", sizes, "--shapes", shapes,
        "--device", memories, "--out", out, home=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    measured = records.read(out)
    assert {record.test for record in measured} == set(DEFAULT_TESTS)
    assert all(record.validated for record in measured)
    assert {record.ranks for record in measured} == {ranks}
    assert {"peer/cma", "staged", "route"} <= {record.via for record in measured}
    assert {record.shape for record in measured if record.test == "cube"} == {
        f"cube:3/{face}" for face in "ijk"
    }
    if ranks == 2 and "host" in memories.split(","):
        assert {"peer/shm", "memcpy", "flag"} <= {record.via for record in measured}
    pairs = {tuple((memory.split("-") * 2)[:2]) for memory in memories.split(",")}
    assert {(record.source, record.target) for record in measured} == pairs
    rates = [record for record in measured if record.test == "put_mbw_mr"]
    assert all(record.extra["pairs"] == ranks // 2 for record in rates)
    assert all(
        record.extra["chosen"] for record in measured if record.via == "route" and record.op != "signal"
    )


def variants(test: str) -> set[str]:
    return set(KINDS[test].plan_variants("host"))


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=[pytest.mark.alone, pytest.mark.long])])
def test_plans_move_the_right_data_in_every_variant(ranks: int, tmp_path: Path) -> None:
    done = peerway(
        "bench", "exchange", "plan_latency", "cube", "--shapes", "contiguous,cube:3", "--quick", "--ranks",
        ranks, "--sizes", "1,65537", "--device", "host", "--paths", "plan,sendrecv", "--format",
        "jsonl", home=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    measured = [records.parse(line) for line in done.stdout.splitlines()]
    assert all(record.validated for record in measured)
    for test in ("exchange", "plan_latency", "cube"):
        same = [record for record in measured if record.test == test and record.via not in LIMITS]
        assert {record.via for record in same} == variants(test)
        assert all(record.extra["batch"] >= 1 for record in same)
    assert {record.bytes for record in measured if record.test == "exchange"} == {1, 65537}


@pytest.mark.parametrize(
    ("options", "ranks"),
    [
        pytest.param(("--grid", "2x1", "--local", "32x16", "--element", "8"), 2, id="rows",
            marks=pytest.mark.long,
        ),
        pytest.param(
            ("--grid", "1x3", "--local", "4x5", "--element", "12", "--width", "1:0,2:1", "--corners",
             "--periodic", "1,0"), 3, id="corners",
        ),
        pytest.param(("--grid", "2x2x1x1", "--local", "4x2x4x4", "--element", "192"), 4, id="lattice",
            marks=pytest.mark.long,
        ),
    ],
)  # fmt: skip
def test_a_halo_is_refreshed_by_plans_and_beside_them_by_open_mpi(
    options: tuple[str, ...], ranks: int, shared_cache: str, tmp_path: Path
) -> None:
    command = ("bench", "halo", *options, "--quick", "--device", "host", "--peers", "openmpi")
    done = peerway(*command, "--format", "jsonl", home=tmp_path, PEERWAY_CACHE=shared_cache)
    assert done.returncode == 0, done.stderr
    measured = [records.parse(line) for line in done.stdout.splitlines()]
    vias = {record.via for record in measured}
    assert variants("halo") <= vias
    if "openmpi on host was not measured" not in done.stderr:
        assert vias == variants("halo") | {"openmpi", "openmpi/pack"}
    assert {record.ranks for record in measured} == {ranks}
    assert len({(record.shape, record.bytes) for record in measured}) == 1
    assert all(record.validated for record in measured)


@pytest.mark.parametrize(
    "test",
    [
        pytest.param(("exchange", "plan_latency", "--sizes", "4096"), id="pairs", marks=pytest.mark.long),
        pytest.param(
            ("halo", "--grid", "2x1", "--local", "16x16", "--element", "8"), id="halo", marks=pytest.mark.long
        ),
    ],
)
@pytest.mark.parametrize(("kind", "fixture"), [("cuda", "doubles"), ("hip", "hip_settings")])
def test_plans_of_gpu_memory_are_started_from_the_host_and_on_streams(
    test: tuple[str, ...], kind: str, fixture: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """On a driver that is not there; it has no graphs, and no kernels but the library's own."""
    settings = request.getfixturevalue(fixture)
    done = peerway(
        "bench", *test, "--quick", "--device", kind, "--format", "jsonl", home=tmp_path, **settings
    )
    assert done.returncode == 0, done.stderr
    measured = [records.parse(line) for line in done.stdout.splitlines()]
    assert all(record.validated for record in measured)
    assert {(record.source, record.target) for record in measured} == {(f"{kind}:0", f"{kind}:1")}
    for name in {record.test for record in measured}:
        assert variants(name) <= {record.via for record in measured if record.test == name}


def test_amd_gpus_are_explained_by_number(hip_settings: dict[str, str], tmp_path: Path) -> None:
    command = ("explain", "--from", "gpu0", "--to", "gpu0", "--op", "put", "--format", "json")
    done = peerway(*command, home=tmp_path, **hip_settings)
    assert done.returncode == 0, done.stderr
    (answer,) = json.loads(done.stdout)
    assert (answer["source"], answer["target"]) == ("hip:0", "hip:0")
    assert {row["via"] for row in answer["decision"]["rows"]} & {"peer/copy", "peer/store"}


@pytest.mark.alone
def test_computations_between_messages_in_every_mode_and_policy(tmp_path: Path) -> None:
    command = ("bench", "async_pingpong", "--quick", "--device", "host", "--compute", "4096")
    done = peerway(*command, "--format", "jsonl", home=tmp_path)
    assert done.returncode == 0, done.stderr
    measured = [records.parse(line) for line in done.stdout.splitlines()]
    points = {(record.via, record.shape) for record in measured}
    assert points == {
        (f"{mode}/{policy}", "compute:4096") for mode in variants("async_pingpong") for policy in POLICIES
    }
    assert all(record.validated and record.bytes == 128 for record in measured)
    assert all(len(record.extra["cpu_percents"]) == 2 for record in measured)


@pytest.mark.long
def test_osu_and_json_lines_go_to_standard_output_alone(tmp_path: Path) -> None:
    arguments = (
        "bench",
        "put_latency",
        "--quick",
        "--sizes",
        "8,64",
        "--device",
        "host",
        "--paths",
        "staged",
    )
    osu = peerway(*arguments, "--format", "osu", home=tmp_path)
    numbers = [line.split() for line in osu.stdout.splitlines() if line and not line.startswith("#")]
    assert {line[0] for line in numbers} == {"8", "64"}
    assert all(float(value) > 0 for line in numbers for value in line)
    lines = peerway(*arguments, "--format", "jsonl", "--repeat", 2, home=tmp_path)
    measured = [records.parse(line) for line in lines.stdout.splitlines()]
    runs = [record.run for record in measured if record.via == "staged"]
    assert runs[0::2] == runs[1::2]  # both sizes in each of two runs, by ranks of its own
    assert len(set(runs)) == 2


def test_the_route_keeps_to_the_paths_that_the_user_allows(tmp_path: Path) -> None:
    allowed = {"PEERWAY_PATHS": "staged,plan/posted"}
    arguments = ("bench", "put_latency", "send_exchange", "--quick", "--sizes", 4096, "--device", "host")
    done = peerway(*arguments, "--paths", "route", "--format", "jsonl", home=tmp_path, **allowed)
    measured = [records.parse(line) for line in done.stdout.splitlines()]
    chosen = {(record.test, record.extra["chosen"]) for record in measured if record.via == "route"}
    assert chosen == {("put_latency", "staged"), ("send_exchange", "plan/posted")}, done.stderr
    assert {record.extra.get("allowed") for record in measured if record.via == "route"} == {
        "staged,plan/posted"
    }


@pytest.mark.long
def test_a_file_is_continued_by_other_paths_that_the_user_allows(tmp_path: Path) -> None:
    out = tmp_path / "halo.jsonl"
    arguments = ("bench", "halo", "--quick", "--device", "host")
    array = ("--grid", "2x1", "--local", "8x8", "--element", 8)
    for paths in ("plan/slots", "plan/straight", "plan/slots"):
        peerway(*arguments, *array, "--out", out, "--append", home=tmp_path, PEERWAY_PATHS=paths)
    measured = {(record.via, record.extra["allowed"]) for record in records.read(out)}
    assert {allowed for _, allowed in measured} == {"plan/slots", "plan/straight"}
    assert len(list(records.read(out))) == len(measured), "none twice"


def test_what_cannot_be_is_refused_with_what_there_is(tmp_path: Path) -> None:
    unknown = peerway("bench", "put_latency", "--sizes", "8", "--paths", "pear", home=tmp_path)
    assert unknown.returncode == 2
    assert "'pear'" in unknown.stderr
    assert "peer/shm" in unknown.stderr
    kept = peerway(
        "bench",
        "put_latency",
        "--quick",
        "--sizes",
        "8",
        "--device",
        "host:malloc",
        "--paths",
        "peer/shm,peer/cma",
        home=tmp_path,
    )
    assert kept.returncode == 0, kept.stderr
    assert "peer/shm (host:malloc to host:malloc)" in kept.stderr


def test_a_table_that_is_broken_is_told_once_and_without_a_traceback(tmp_path: Path) -> None:
    table = tmp_path / "table.json"
    table.write_text("{}")
    for verb in (("bench", "put_latency", "--quick", "--sizes", "8"), ("explain",)):
        done = peerway(*verb, "--table", table, home=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        messages = [
            line for line in done.stderr.splitlines() if not line.startswith("this host: ")
        ]  # is busy
        assert len(messages) == 1, messages
        assert messages[0].startswith(f'peerway: {table}: the key "format" is missing')


@pytest.mark.parametrize("verb", [("bench", "--quick"), ("tune", "--quick")])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        pytest.param(("--device", "cuda"), ("no device cuda", "has: host", "doctor"), id="device"),
    ],
)
def test_what_cannot_be_is_told_before_anything_is_measured(
    verb: tuple[str, ...], options: tuple[str, ...], words: tuple[str, ...], tmp_path: Path
) -> None:
    if "cuda" in options and machine.gpu_kinds():
        pytest.skip("there is a GPU here")
    done = peerway(*verb, *options, home=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "measuring" not in done.stderr
    assert "tuning" not in done.stderr
    assert all(word in done.stderr for word in words), done.stderr


@pytest.mark.long
def test_nothing_is_said_of_paths_that_are_not_made_for_such_memory(
    tmp_path: Path, shared_cache: str
) -> None:
    options = ("bench", "put_latency", "--quick", "--sizes", "8", "--peers", "all")
    done = peerway(*options, "--paths", "peer,route", home=tmp_path, PEERWAY_CACHE=shared_cache)
    assert "note:" not in done.stderr
    named = peerway(*options[:-2], "--paths", "mapped,route", "--peers", "nccl", home=tmp_path)
    assert "mapped (host to host)" in named.stderr
    assert "nccl moves GPU memory only" in named.stderr


def test_what_the_ranks_say_becomes_a_note(tmp_path: Path) -> None:
    done = peerway("explain", "--op", "put", home=tmp_path, PEERWAY_NIC="torus?/none.json")
    assert done.stderr.count("the torus file /none.json cannot be read") == 1
    assert done.stderr.startswith("note: ")
    done = peerway("explain", "--op", "put", home=tmp_path, PEERWAY_PATH="peer")
    assert done.returncode != 0
    assert done.stderr.count("PEERWAY_PATH in the environment is not a setting") == 1
    assert "did you mean PEERWAY_PATHS?" in done.stderr


def test_a_rank_that_dies_ends_the_benchmark_with_a_message(tmp_path: Path) -> None:
    out = tmp_path / "records.jsonl"
    command = [
        *PEERWAY,
        "bench",
        "put_latency",
        "--device",
        "host",
        "--sizes",
        "8:1M",
        "--repeat",
        "50",
        "--out",
        out,
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        workers: list[int] = []  # none between two rounds
        while not (out.exists() and out.stat().st_size > 1 and workers):  # more than the try
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
            workers = _workers(process.pid)
        worker = workers[-1]
        os.kill(worker, signal.SIGKILL)
        _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 1
    assert "ended early" in errors
    assert records.read(out)
    assert not Path(f"/proc/{worker}").exists()


NICS = {"PEERWAY_NIC": "far=torus"}
TUNED = ("staged", "nic:far")


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with a NIC in it."""
    folder = tmp_path_factory.mktemp("tuned")
    table = folder / "routes.json"
    options = ("--quick", "--device", "host", "--paths", ",".join(TUNED))
    done = peerway("tune", *options, "--out", table, home=folder, **NICS, PEERWAY_WAIT="blocking")
    assert done.returncode == 0, done.stderr
    assert "There was no table before." in done.stdout
    return table


def explained(
    table: Path, *options: str, **settings: str
) -> tuple[dict[str, Any], subprocess.CompletedProcess[str]]:
    command = ("explain", "--table", table, "--from", "host", "--to", "host", *options, "--format", "json")
    done = peerway(*command, home=table.parent, **settings)
    return json.loads(done.stdout)[0]["decision"] if done.stdout else {}, done


def test_a_table_is_tuned_followed_and_explained(tuned: Path, tmp_path: Path) -> None:
    table = json.loads(tuned.read_text())
    assert {(cost["op"], cost["path"]) for cost in table["costs"]} == set(product(["put", "get"], TUNED))
    assert table["staging chunk"] > 0
    decision, _ = explained(tuned, "--op", "put", **NICS)
    assert decision["measured"] == table["date"]
    assert decision["rows"][0]["from"] == 1
    assert decision["rows"][-1]["to"] is None
    assert not [note for note in decision["notes"] if "nic:" in note]
    out = tmp_path / "records.jsonl"
    peerway(
        "bench", "put_latency", "--quick", "--sizes", "8,1M", "--device", "host", "--paths", "route",
        "--table", tuned, "--out", out, home=tmp_path, **NICS,
    )  # fmt: skip
    for record in records.read(out):
        if record.via == "route":
            rows = [row for row in decision["rows"] if row["to"] is None or record.bytes < row["to"]]
            assert record.extra["chosen"] == rows[0]["via"], (record.bytes, decision, table["costs"])
    printed = peerway("explain", "--table", tuned, "--op", "get", home=tmp_path)
    assert "next best" in printed.stdout
    assert "get host to host" in printed.stdout


LAGGING_WORKER = """
import time

from peerway_measure.bench import worker


class Lagging(worker.Links):
    def decision(self, case, link, shape):
        if self._context.rank == 0:
            time.sleep(0.5)
        return super().decision(case, link, shape)


worker.Links = Lagging
worker.main()
"""


def test_no_rank_closes_while_another_explains(tmp_path: Path) -> None:
    """A NIC does not lead to a rank that closed: the decision of a slow rank 0 would be another one."""
    (tmp_path / "lagging_worker.py").write_text(LAGGING_WORKER)
    all_cases = cases.make([("host", "host")], [contiguous(8)], ["put_latency"])
    plan = Plan(2, all_cases, explain=["contiguous"])
    environment = {
        **NICS,
        "PYTHONPATH": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path),
    }
    with session.started(plan, environment, "lagging_worker") as messages:
        decisions = [message["decision"] for message in messages if message["kind"] == "explained"]
    assert len(decisions) == 1
    assert not [path for path in decisions[0]["unavailable"] if path["path"].startswith("nic:")]


def test_a_nic_that_a_table_names_and_a_context_lacks_is_told(tuned: Path) -> None:
    """Its rows fall to the next path, for which it must not be the runner-up either; being strict, nothing
    goes on."""
    message = "the route table has costs of nic:far, and this context has no such NIC: set PEERWAY_NIC"
    decision, _ = explained(tuned, "--op", "put")
    assert [message in note for note in decision["notes"] if "nic:" in note] == [True]
    for row in decision["rows"]:
        assert row["via"] != "nic:far"
        assert row["next"] is None or row["next"]["via"] != "nic:far"
        assert row["us_from"] is not None or row["why"] == "not measured; first in the order of preference"
    _, done = explained(tuned, "--op", "put", PEERWAY_STRICT="on")
    assert done.returncode == 1
    assert message in done.stderr


@pytest.mark.parametrize("paths", [pytest.param("nic:torus", marks=pytest.mark.long), "peer/shm+nic:torus"])
def test_a_nic_that_is_not_set_is_told_with_the_setting(paths: str, tmp_path: Path) -> None:
    done = peerway("bench", "put_latency", "--quick", "--sizes", "8", "--paths", paths, home=tmp_path)
    assert done.returncode == 2
    assert "no NIC 'torus' in this context; set PEERWAY_NIC=torus" in done.stderr


def test_the_methods_of_a_collective_are_explained(tmp_path: Path) -> None:
    command = ("explain", "--collective", "all_reduce", "--ranks", "8", "--order", "any")
    done = peerway(*command, "--from", "host", "--to", "host", "--format", "json", home=tmp_path)
    (message,) = json.loads(done.stdout)
    decision = message["decision"]
    assert decision["op"] == "all_reduce in any order among 8 ranks"
    methods = [row["via"] for row in decision["rows"]]
    assert (methods[0], methods[-1]) == ("tree", "two-shot")
    printed = peerway(*command, home=tmp_path).stdout
    assert printed.startswith("all_reduce in any order among 8 ranks host to host, contiguous (host->host)")


def test_explain_without_a_table_says_so(tmp_path: Path) -> None:
    done = peerway("explain", "--op", "put", home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "peerway tune" in done.stdout


def _workers(parent: int) -> list[int]:
    """The processes below `parent` that run the worker."""
    processes, below = [], {parent}
    for entry in sorted(int(name) for name in os.listdir("/proc") if name.isdecimal()):
        try:
            status = Path(f"/proc/{entry}/status").read_text()
            command = Path(f"/proc/{entry}/cmdline").read_text()
        except OSError:
            continue
        above = int(status.split("PPid:")[1].split()[0])
        if above in below:
            below.add(entry)
            if "peerway_measure.bench.worker" in command and "\0run\0" not in command:
                processes.append(entry)
    return processes
