"""The meaning of a campaign's file, and the error of each mistake in it, with line and column."""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Set
from pathlib import Path

import pytest
from click.testing import CliRunner
from synthetic_records import record

from peerway_common.cli import command as peerway
from peerway_common.cli.options import BadInput
from peerway_measure.campaign.journal import Journal
from peerway_measure.campaign.keep import named_alone
from peerway_measure.campaign.outliers import against, cells
from peerway_measure.campaign.plan import Plan, Task, in_window
from peerway_measure.campaign.plan_file import BadPlan, expand, parse
from peerway_measure.campaign.run import Runner
from peerway_measure.campaign.status import status
from peerway_measure.cli.campaign_health import time_of_one
from peerway_measure.records import Record

GOOD = """name = "before"
repeats = 3
seed = 5

[nodes]
v100 = ["node[01-03]", "extra"]
"a 100" = ["gpu1"]

[launch]
by = "hosts"

[limits]
nodes_at_once = 2
time = "90s"
window = "20:00-06:00"

[[tests]]
name = "write"
command = "peerway storage /x write --out -"

[[tests]]
name = "bench"
command = "peerway bench --out -"
types = ["v100"]
"""


def test_a_round_has_each_test_on_each_node_once() -> None:
    plan = parse(GOOD)
    tasks = plan.tasks()
    assert len(tasks) == 3 * (5 + 4) == len({task.id for task in tasks})
    assert [task.round for task in tasks] == sorted(task.round for task in tasks)
    assert Counter(task.node for task in tasks if task.test.name == "bench").keys() == {
        "node01",
        "node02",
        "node03",
        "extra",
    }
    assert (plan.window, plan.time_s, plan.nodes_at_once) == ((1200, 360), 90, 2)
    assert parse(GOOD.replace("20:00-06:00", "00:00-24:00")).window == (0, 1440)


def test_each_combination_of_factors_is_a_test_of_its_own() -> None:
    plan = parse(GOOD.replace("\n[[tests]]", "\n[[tests]]\nfactors = {size = ['1G', '4G'], n = [1, 2]}", 1))
    assert [test.name for test in plan.tests] == [
        *("write-1G-1", "write-1G-2", "write-4G-1", "write-4G-2"),
        "bench",
    ]
    assert plan.tests[1].factors == (("size", "1G"), ("n", "2"))
    assert plan.tests[1].shell == "export size=1G n=2; peerway storage /x write --out -"
    assert plan.tests[4].shell == plan.tests[4].command
    assert len(plan.tasks()) == 3 * (5 * 4 + 4)


@pytest.mark.parametrize(
    ("factors", "says"),
    [
        ("[1]", "factors must be a table such as { size"),
        ("{'a-b' = [1]}", "'a-b' cannot name a variable"),
        ("{PATH = ['/bin']}", "PATH is a variable that the shell of a command needs; give the factor"),
        ("{round = [1, 2]}", "round is what a campaign notes in all records; give the factor another name"),
        ("{size = '1G'}", "size must be a list of at least one string"),
        ("{size = []}", "size must be a list of at least one string"),
        ("{size = ['1G', '1_G', '1 G']}", "two tests are called write-1_G"),
        (f"{{a = {[*range(40)]}, b = {[*range(40)]}}}", "more than 1000 combinations"),
    ],
)
def test_factors_that_are_none_are_told_with_their_line(factors: str, says: str) -> None:
    with pytest.raises(BadPlan, match=rf"campaign.toml:1[89]:\d+: .*{re.escape(says)}"):
        parse(
            GOOD.replace(
                '\n[[tests]]\nname = "write"\n', f'\n[[tests]]\nfactors = {factors}\nname = "write"\n'
            )
        )


def test_each_round_has_an_order_of_its_own_that_the_seed_repeats() -> None:
    def orders(text: str) -> list[list[str]]:
        tasks = parse(text).tasks()
        return [[task.id[5:] for task in tasks if task.round == number] for number in range(3)]

    assert orders(GOOD) == orders(GOOD)
    assert orders(GOOD)[0] != orders(GOOD)[1]
    assert orders(GOOD) != orders(GOOD.replace("seed = 5", "seed = 6"))


def test_a_test_of_two_nodes_takes_another_of_the_type_along() -> None:
    tasks = parse(GOOD.replace('types = ["v100"]', 'types = ["v100"]\nnodes = 2')).tasks()
    pairs = [task.nodes for task in tasks if task.test.name == "bench"]
    assert all(one != other for one, other in pairs)
    assert {node for pair in pairs for node in pair} == {"node01", "node02", "node03", "extra"}
    assert {len(task.nodes) for task in tasks if task.test.name == "write"} == {1}
    assert len(set(pairs)) > 4  # different pairs in different rounds


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("repeats = 3", "repeat = 3", r":2:1: unknown key 'repeat'; there are name, repeats"),
        ("nodes_at_once = 2", "  nodes_at_onec = 2", r":13:3: unknown key 'nodes_at_onec'"),
        ("types =", "type =", r":24:1: unknown key 'type'"),
        ('types = ["v100"]', 'types = ["h100"]', r":24:1: there is no node type 'h100'"),
        ('"a 100" = ["gpu1"]', '"a 100" = []', r":7:1: the node type 'a 100' has no node"),
        ('"a 100" = ["gpu1"]', '"a 100" = ["node02"]', r":7:1: node02 already has the type v100"),
        ('"gpu1"', '"$(reboot)"', r":7:1: '\$\(reboot\)' is not a host"),
        ('"gpu1"', '"-oProxyCommand=x"', r":7:1: .* is not a host"),
        ('"node[01-03]"', '"node[03-x]"', r":6:1: 'node\[03-x\]' is not a range of nodes"),
        ('time = "90s"', "time = 90", r"^x.toml:14:1: time is 90, but must be a string"),
        (
            'by = "hosts"',
            'by = "hosts"\noptions = ["-p x"]',
            r':11:1: options is for by = "slurm", and by is',
        ),
        (
            'by = "hosts"',
            'by = "hosts"\nagent = "\'x"',
            r":11:1: ''x' is not a command line: No closing quotation",
        ),
        ('by = "hosts"', 'by = "slurm"\nagent = "x"', r':11:1: agent is for by = "hosts", and by is "slurm"'),
        ("repeats = 3", "repeats = 0", r":2:1: repeats is 0, but must be from 1 to 10000"),
        ("repeats = 3", "repeats = true", r":2:1: repeats is True, but must be a number"),
        ('time = "90s"', 'time = "soon"', r":14:1: "),
        ('"20:00-06:00"', '"night"', r":15:1: 'night' is not a time window; write for example 20:00-06:00"),
        ('"20:00-06:00"', '"24:00-06:00"', r":15:1: '24:00-06:00' is not a time window"),
        ('"20:00-06:00"', '"06:00-6:00"', r":15:1: 06:00-6:00 would never open; omit window, or write"),
        ('by = "hosts"', 'by = "pbs"', r":10:1: 'pbs' is neither hosts nor slurm"),
        ("nodes_at_once = 2", "busy = 0.5", r":13:1: only Slurm knows how busy the cluster is"),
        ('name = "bench"', 'name = "../../etc"', r":22:1: a name may contain only letters, digits, - and _"),
        ('name = "bench"', 'name = "write"', r":22:1: two tests are called write"),
        ('name = "bench"', "", r":21:1: a test needs name"),
        (
            'types = ["v100"]',
            "nodes = 2",
            r":24:1: it needs 2 nodes of one type, but 'a 100' has 1; list the",
        ),
        ('types = ["v100"]', 'types = ["v100"]\nnodes = 3', r":25:1: it needs 3 nodes, but .* is 2"),
        ('types = ["v100"]', "nodes = 0", r":24:1: nodes must be the number of nodes that a test uses"),
        ("repeats = 3", "repeats = 3 3", r":2:13: "),
        ("repeats = 3", 'repeats = "3', r":2:"),
    ],
)
def test_a_mistake_is_told_with_its_place(old: str, new: str, says: str) -> None:
    assert old in GOOD
    with pytest.raises(BadPlan, match=says):
        parse(GOOD.replace(old, new, 1), "x.toml")


@pytest.mark.parametrize(
    "text",
    ["", "[nodes]\n", "[[tests]]\nname='a'\ncommand='b'\n", "nodes = 3\n", "\x00", "[nodes]\na=['n']\n"],
)
def test_what_lacks_the_most_needed_is_refused(text: str) -> None:
    with pytest.raises(BadPlan):
        parse(text)


def test_a_file_that_is_no_campaign_is_told_for_what_it_is(tmp_path: Path) -> None:
    def message() -> str:
        result = CliRunner().invoke(peerway, ["campaign", "status", str(tmp_path)])
        assert result.exit_code == 2
        return result.output

    assert f"{tmp_path} has no campaign, which is a file campaign.toml; `peerway campaign init" in message()
    (tmp_path / "campaign.toml").write_bytes(b"name = 'a'\nseed = \xff\n")
    assert f"{tmp_path}/campaign.toml:2: the byte 0xff is not UTF-8" in message()
    (tmp_path / "campaign.toml").write_bytes(b"#" * ((1 << 20) + 1))
    assert f"{tmp_path}/campaign.toml: it has more than 1,048,576 bytes" in message()
    (tmp_path / "campaign.toml").unlink()
    (tmp_path / "campaign.toml").mkdir()
    assert f"cannot read {tmp_path}/campaign.toml: Is a directory" in message()


def test_busy_is_a_share() -> None:
    slurm = GOOD.replace('by = "hosts"', 'by = "slurm"')
    assert parse(slurm.replace("nodes_at_once = 2", "busy = 0.8")).busy == 0.8
    for text in ("80", "0", "-0.5"):
        with pytest.raises(BadPlan, match="busy must be a share of the CPUs, above 0 and at most 1"):
            parse(slurm.replace("nodes_at_once = 2", f"busy = {text}"))


def test_ranges_of_nodes() -> None:
    assert expand("n[08-11,3]-ib") == ["n08-ib", "n09-ib", "n10-ib", "n11-ib", "n3-ib"]
    assert expand("node7") == ["node7"]


@pytest.mark.parametrize(
    ("window", "minute", "inside"),
    [
        (None, 0, True),
        ((480, 1080), 600, True),
        ((480, 1080), 1080, False),
        ((1200, 360), 1439, True),
        ((1200, 360), 0, True),
        ((1200, 360), 360, False),
        ((1200, 360), 720, False),
        ((0, 1440), 0, True),
        ((0, 1440), 1439, True),
    ],
)
def test_a_window_may_go_over_midnight(window: tuple[int, int] | None, minute: int, inside: bool) -> None:
    assert in_window(window, minute) is inside


@pytest.mark.parametrize(
    ("rates", "odd"),
    [
        ([100, 101, 99, 100, 102], []),
        ([100, 101, 99, 100, 70], [4]),
        ([100, 100, 100, 100, 104], []),  # all alike; 4 % is not worth a report
        ([100, 100, 100, 100, 120], [4]),  # being faster is odd, too
        ([100, 101, 99, 40], []),  # too few to say which is odd
        ([100, 60, 140, 80, 120, 100], []),  # a type with a large spread
    ],
)
def test_an_odd_node_is_named_by_a_rule_that_it_does_not_move(rates: list[int], odd: list[int]) -> None:
    made = [
        record(test="file_write_bw", host=f"n{i}", bandwidth_MBps=rate, extra={"node_type": "t"})
        for i, rate in enumerate(rates)
    ]
    assert [cell.node for cell in cells(made) if cell.odd] == [f"n{i}" for i in odd]


@pytest.mark.parametrize(("now", "odd"), [(100, False), (96, False), (80, True), (130, True)])
def test_one_node_is_judged_by_earlier_measurements_of_its_type(now: int, odd: bool) -> None:
    def record_of(host: str, rate: float) -> Record:
        return record(test="file_write_bw", host=host, bandwidth_MBps=rate, extra={"node_type": "t"})

    baseline = [record_of(host, rate) for host in ("a", "b") for rate in (99, 100, 102)]
    (cell,) = against(baseline, [record_of("new", now)])
    assert (cell.judged, cell.odd, cell.of_type) == (True, odd, 100)
    (cell,) = against(baseline[:4], [record_of("new", now)])
    assert (cell.judged, cell.odd) == (False, False)


def test_init_takes_a_list_of_hosts_with_their_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["campaign", "init", str(tmp_path / "new"), "--nodes", "v100=node[01-03] a100=gpu1 v100=extra b"]
    assert CliRunner().invoke(peerway, words).exit_code == 0
    assert parse((tmp_path / "new" / "campaign.toml").read_text()).nodes == {
        "v100": ("node01", "node02", "node03", "extra"),
        "a100": ("gpu1",),
        "all": ("b",),
    }
    ranges = CliRunner().invoke(peerway, ["campaign", "init", str(tmp_path / "x"), "--nodes", "a=node[1-x]"])
    assert ranges.exit_code == 2
    assert "'node[1-x]' is not a range of nodes; write for example node[01-16]" in ranges.output
    (tmp_path / "file").write_text("")
    below = tmp_path / "file" / "below"
    made = CliRunner().invoke(peerway, ["campaign", "init", str(below), "--nodes", "n1"])
    assert made.exit_code == 1
    assert f"cannot make {below}/campaign.toml: Not a directory; name another folder" in made.output
    wrong = CliRunner().invoke(peerway, ["campaign", "init", str(tmp_path / "x"), "--nodes", "v100="])
    assert wrong.exit_code == 2
    assert "--nodes has 'v100='; write for example v100=node[01-16]" in wrong.output
    joined = ["campaign", "init", str(tmp_path / "x"), "--nodes", "v100=node[01-16],a100=gpu1"]
    wrong = CliRunner().invoke(peerway, joined)
    assert wrong.exit_code == 2
    assert "separate several types by spaces" in wrong.output
    sinfo = tmp_path / "bin" / "sinfo"
    sinfo.parent.mkdir()
    sinfo.write_text("#!/bin/sh\n")
    sinfo.chmod(0o755)
    monkeypatch.setenv("PATH", str(sinfo.parent))
    none = CliRunner().invoke(peerway, ["campaign", "init", str(tmp_path / "x")])
    assert none.exit_code == 1
    assert "Slurm has no nodes here (sinfo lists none); name them with --nodes" in none.output
    beside = CliRunner().invoke(peerway, ["campaign", "init", str(tmp_path / "y"), "--nodes", "n1"])
    assert "its measurements begin by ssh, beside what Slurm runs on these nodes" in beside.output
    assert not (tmp_path / "x").exists()


def test_the_expected_end_counts_each_test_with_its_own_time_and_nodes(tmp_path: Path) -> None:
    """Half of the measurements are quick ones of one node; most of the time is spent on those of two
    nodes.
    """
    text = 'repeats = 2\n[nodes]\nkind = ["n[1-4]"]\n[limits]\nnodes_at_once = 4\n'
    text += '[[tests]]\nname = "quick"\ncommand = "true"\n'
    text += '[[tests]]\nname = "pair"\ncommand = "true"\nnodes = 2\n'
    plan, journal = parse(text), Journal(tmp_path)
    journal.results.mkdir()
    assert status(plan, journal).remaining_s is None
    for task in plan.tasks():
        if task.round == 0:
            seconds = 1 if task.test.name == "quick" else 100
            journal.note({"event": "done", "id": task.id, "seconds": seconds})
            journal.result(task.id).write_text("")
    assert status(plan, journal).remaining_s == (4 * 1 + 4 * 100 * 2) / 4


@pytest.mark.parametrize(("tests", "seconds"), [(1, 280), (2, 135), (10, 19), (26, 290 / 26 - 10)])
def test_a_node_has_its_health_in_under_five_minutes_if_all_tests_hang(tests: int, seconds: float) -> None:
    def plan(count: int) -> Plan:
        listed = "".join(f'[[tests]]\nname = "t{i}"\ncommand = "true"\n' for i in range(count))
        return parse(f'[nodes]\nkind = ["n1"]\n{listed}')

    assert time_of_one(plan(tests)) == pytest.approx(seconds)
    assert tests * (time_of_one(plan(tests)) + 10) < 300
    with pytest.raises(BadInput, match=r"would have 27 measurements; .* room for 26;"):
        time_of_one(plan(27))


@pytest.mark.parametrize("seed", range(20))
def test_a_node_that_many_others_drew_has_its_health_in_under_five_minutes(seed: int) -> None:
    text = f'seed = {seed}\n[nodes]\nkind = ["n[1-6]"]\n[limits]\nnodes_at_once = 4\n'
    plan = parse(f'{text}[[tests]]\nname = "pair"\ncommand = "true"\nnodes = 2\n')
    drawn = Counter(node for task in plan.tasks() for node in task.nodes)
    assert max(drawn.values()) > 2
    assert max(drawn.values()) * (time_of_one(plan) + 10) == pytest.approx(290)


def test_a_report_of_nothing_says_so(tmp_path: Path) -> None:
    folder, page = tmp_path / "new", tmp_path / "page.html"
    assert CliRunner().invoke(peerway, ["campaign", "init", str(folder), "--nodes", "n1"]).exit_code == 0
    result = CliRunner().invoke(peerway, ["campaign", "report", str(folder), "-o", str(page)])
    assert result.exit_code == 0
    again = f"`peerway campaign run {shlex.quote(str(folder))}`"
    assert f"no measurement is finished yet, so the page has no results; {again}" in result.output
    assert "No measurement is finished yet" in page.read_text()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["sinfo: error: no controller"], "sinfo: error: no controller; name them"),
        (
            ["sinfo: error: DNS SRV lookup failed", "sinfo: fatal: no configuration"],
            "sinfo: error: DNS SRV lookup failed; fatal: no configuration; name them",
        ),
    ],
)
def test_init_says_what_sinfo_said(
    lines: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sinfo = tmp_path / "sinfo"
    sinfo.write_text("#!/bin/sh\n" + "".join(f"echo '{line}' >&2\n" for line in lines) + "exit 1\n")
    sinfo.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    result = CliRunner().invoke(peerway, ["campaign", "init", str(tmp_path / "new")])
    assert result.exit_code == 1
    assert f"cannot get the nodes from Slurm: {message}" in result.output
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("nodes", "text", "named"),
    [
        (["n1"], "whatever", ["n1"]),
        (["n1", "n2"], "host n2 cannot be reached", ["n2"]),
        (["n1", "n2"], "rank 1 on n2.site failed", ["n2"]),
        (["n1", "me@n2.site"], "(n2): No space left on device", ["me@n2.site"]),
        (["n1", "n2"], "ssh n1: host n2 cannot be reached", []),
        (["n1", "n2"], "rank 1 failed on n22, n1-ib and gpu-n2", []),
        (["n1", "n2"], "", []),
    ],
)
def test_an_error_names_the_node_that_failed_or_leaves_it_open(
    nodes: list[str], text: str, named: list[str]
) -> None:
    assert list(named_alone(nodes, text)) == named


class Started:
    """A starter whose measurements end at once, on a cluster of which others use a share."""

    def __init__(self, journal: Journal, busy: list[float]) -> None:
        self._journal, self._busy = journal, busy

    def start(self, task: Task) -> None:
        assert not self._busy, "it was started while the cluster was busy"
        self._journal.note({"event": "done", "id": task.id, "seconds": 1})
        self._journal.result(task.id).write_text("")

    def running(self, names: Set[str]) -> set[str]:
        return set()

    def returned(self, names: Set[str], others: Callable[[], Set[str]]) -> set[str]:
        return set()

    def away(self) -> dict[str, str]:
        return {}

    def occupied(self) -> set[str]:
        return set()

    def wait(self) -> None:
        pass

    def share_busy(self) -> float | None:
        return self._busy.pop(0) if self._busy else 0.5


def test_a_closed_window_and_a_cluster_that_is_busier_than_the_limit_are_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("peerway_measure.campaign.run._WAIT_S", 0)
    looks = iter([False, False])
    monkeypatch.setattr(Plan, "is_open", property(lambda _: next(looks, True)))
    text = 'repeats = 2\n[nodes]\nkind = ["n1"]\n[launch]\nby = "slurm"\n'
    text += '[limits]\nbusy = 0.8\nwindow = "20:00-6:30"\n'
    plan, journal, said = parse(f'{text}[[tests]]\nname = "t"\ncommand = "true"\n'), Journal(tmp_path), []
    journal.results.mkdir()
    left = Runner(plan, journal, Started(journal, [0.95, 0.81]), said.append).run()
    assert said == [  # each once, not repeatedly
        "waiting: the time window 20:00-06:30 is closed",
        "waiting: 95% of the cluster is busy",
    ]
    assert not left.why
    assert len(journal.finished()) == 2
