"""`peerway campaign` as a user runs it: real keepers, real kills. Nodes are names that an agent of the test
reaches.
"""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from launching import LIMIT, run_command

from peerway_measure import records
from peerway_measure.campaign.plan_file import parse
from peerway_measure.records import Record

PEERWAY = (sys.executable, "-m", "peerway")


def record() -> str:
    """A line that a test prints."""
    measured = Record.from_samples(
        [1e6], test="file_write_bw", via="posix", op="write", shape="sequential 1 MiB", bytes=1 << 20,
        ranks=1, source="host", target="file", validated=True, cpu_percent=None, host="x", device="",
        driver="", version="0", extra={"run": ""},
    )  # fmt: skip
    return measured.as_json() + "\n"


class Campaign:
    """A folder with a campaign, and the agent that reaches its nodes and counts starts."""

    def __init__(
        self,
        folder: Path,
        nodes: str = '"n[1-3]"',
        repeats: int = 2,
        limits: str = "nodes_at_once = 3",
        body: str = "",
    ) -> None:
        self.folder, self.log = folder / "campaign", folder / "starts"
        self.folder.mkdir()
        (folder / "record").write_text(record())
        self.agent = folder / "agent"
        self.agent.write_text(
            f'#!/bin/sh\nnode=$1; shift\necho "$node" >> {shlex.quote(str(self.log))}\n{body}\neval "$*"\n'
        )
        self.agent.chmod(0o755)
        self.toml = self.folder / "campaign.toml"
        self.toml.write_text(
            f"repeats = {repeats}\n[nodes]\nkind = [{nodes}]\n[launch]\n"
            f'agent = "{shlex.quote(str(self.agent))}"\n[limits]\n{limits}\n'
            f'[[tests]]\nname = "t"\ncommand = "cat {shlex.quote(str(folder))}/record"\n'
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*PEERWAY, "campaign", "run", str(self.folder), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.verb("run", *words)

    def verb(self, *words: str) -> subprocess.CompletedProcess[str]:
        return run_command([*PEERWAY, "campaign", words[0], str(self.folder), *words[1:]])

    def starts(self) -> Counter[str]:
        return Counter(self.log.read_text().split()) if self.log.exists() else Counter()

    def results(self) -> set[str]:
        return {path.name for path in (self.folder / "results").glob("*.jsonl")}


def wait_until(condition: object, seconds: float = 300) -> None:
    until = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < until
        time.sleep(0.02)


def test_all_is_measured_once_and_stamped(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path)
    done = campaign.run()
    assert done.returncode == 0, done.stderr
    assert campaign.starts() == {"n1": 2, "n2": 2, "n3": 2}
    measured = [r for path in (campaign.folder / "results").iterdir() for r in records.read(path)]
    assert Counter((r.host, r.extra["round"]) for r in measured) == {
        (f"n{i}", number): 1 for i in (1, 2, 3) for number in (0, 1)
    }
    assert {r.node_type for r in measured} == {"kind"}
    assert list((campaign.folder / "running").iterdir()) == []
    again = campaign.run()
    assert again.returncode == 0
    assert campaign.starts().total() == 6
    assert "6 of 6 measurements are done" in campaign.verb("status").stdout


def test_a_test_of_two_nodes_has_both_and_their_records(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, repeats=4, limits="nodes_at_once = 3")
    each = f'sed "s/\\"host\\": *\\"x\\"/\\"host\\": \\"$node.site\\"/" {tmp_path}/record'
    command = f"IFS=,; for node in $CAMPAIGN_NODES; do {each}; echo $node >> {tmp_path}/seen; done"
    text = campaign.toml.read_text()
    campaign.toml.write_text(
        text[: text.index('command = "cat')] + f"command = {json.dumps(command)}\nnodes = 2\n"
    )
    done = campaign.run()
    assert done.returncode == 0, done.stderr
    assert campaign.starts() == {"n1": 4, "n2": 4, "n3": 4}  # which reach the first of the two
    by_file = {path.name: records.read(path) for path in (campaign.folder / "results").iterdir()}
    assert len(by_file) == 12
    for name, pair in by_file.items():
        first, other = (r.host for r in pair)
        assert name.endswith(f".{first}.jsonl")
        assert other in {"n1", "n2", "n3"} - {first}
    assert Counter(r.host for pair in by_file.values() for r in pair).total() == 24
    partners = {tuple(r.host for r in pair) for pair in by_file.values()}
    assert len(partners) > 3  # not the same ones in each round


@pytest.mark.long
def test_factors_reach_the_command_and_its_records(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, nodes='"n1"', repeats=1)
    text = campaign.toml.read_text()
    # The record knows its block by itself, in its own words, and nothing of the threads.
    command = f'sed \'s/"run"/"block": "\'$block\'iB", "run"/\' {tmp_path}/record'
    factors = 'factors = {block = ["1M", "4M"], threads = [1, 2]}'
    campaign.toml.write_text(
        text[: text.index('command = "cat')] + f"command = {json.dumps(command)}\n{factors}\n"
    )
    done = campaign.run()
    assert done.returncode == 0, done.stderr
    measured = [r for path in (campaign.folder / "results").iterdir() for r in records.read(path)]
    assert {(r.extra["block"], r.extra["threads"], r.shape) for r in measured} == {
        (f"{block}iB", threads, f"sequential 1 MiB threads={threads}")
        for block in ("1M", "4M")
        for threads in ("1", "2")
    }
    words = [*PEERWAY, "campaign", "compare", str(campaign.folder), str(campaign.folder)]
    compared = subprocess.run(
        [*words, "--factor", "threads=1:2", "--factor", "block"], capture_output=True, text=True, check=True
    )
    assert "block was to change, but is 1MiB, 4MiB on both sides" in compared.stdout
    assert "threads was to change" not in compared.stdout
    assert "file_write_bw · posix · sequential 1 MiB · 1 MiB · 1 stream · bandwidth\n" in compared.stdout
    assert "median threads=1" in compared.stdout
    same = subprocess.run(words, capture_output=True, text=True, check=True)
    assert f"both sides are the same campaign, {campaign.folder}: nothing can differ" in same.stderr


def together(campaign: Campaign, command: str) -> None:
    """Make its test one of two nodes."""
    text = campaign.toml.read_text()
    campaign.toml.write_text(
        text[: text.index('command = "cat')] + f"command = {json.dumps(command)}\nnodes = 2\n"
    )


def test_a_failure_of_two_nodes_counts_against_the_one_that_failed(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, nodes='"n[1-4]"', repeats=4, limits="nodes_at_once = 4\ntries = 2")
    fails = "case ,$CAMPAIGN_NODES, in *,n2,*) echo 'host n2 cannot be reached: ssh n2' >&2; exit 1;; esac"
    together(campaign, f"{fails}; cat {tmp_path}/record")
    done = campaign.run()
    assert done.returncode == 1
    assert "n2 is set aside: it was not reached 2 times in a row" in done.stderr
    assert "failed on n2: its command ended with status 1: host n2 cannot be reached" in done.stderr
    assert [line for line in done.stderr.splitlines() if "aside" in line or "no more" in line] == [
        "n2 is set aside: it was not reached 2 times in a row; others go on"
    ]
    pairs = [task.nodes for task in parse(campaign.toml.read_text()).tasks()]
    assert len(campaign.results()) == sum("n2" not in nodes for nodes in pairs)


def test_a_failure_of_nobody_knows_which_node_takes_none_out(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, repeats=6, limits="nodes_at_once = 3\ntries = 2")
    together(campaign, "echo the ranks ended early, on n1 or n2 or n3 >&2; exit 1")
    with campaign.toml.open("a") as toml:
        toml.write('[[tests]]\nname = "twin"\nnodes = 2\ncommand = "exit 1"\n')
        toml.write(f'[[tests]]\nname = "good"\ncommand = "cat {tmp_path}/record"\n')
    done = campaign.run()
    assert done.returncode == 1
    assert "aside" not in done.stderr
    assert {path.split(".")[1] for path in campaign.results()} == {"good"}
    assert len(campaign.results()) == 18  # on all nodes
    assert "t is tried no more on n1: 2 measurements failed" in done.stderr
    assert re.search(r"failed on n1 or n[23]: its command ended with status 1", done.stderr)
    assert re.search(r"not measured: t, kind: .*\(n1 with n[23]", done.stderr)


def test_killed_again_and_again_it_loses_nothing_and_does_nothing_twice(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, repeats=4, body="sleep 0.15")
    for kill in range(3):
        running = campaign.start()
        target = 2 * (kill + 1)
        while len(campaign.results()) < target and running.poll() is None:
            time.sleep(0.02)
        running.kill()
        running.communicate()
    done = campaign.run()
    assert done.returncode == 0, done.stderr
    assert len(campaign.results()) == 12
    assert campaign.starts() == {
        "n1": 4,
        "n2": 4,
        "n3": 4,
    }  # those that ran when the runner was killed went on


def test_a_keeper_that_dies_is_a_measurement_to_be_made_again(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, nodes='"n1"', repeats=1, body=f"[ -e {tmp_path}/second ] || sleep 60")
    running = campaign.start()
    wait_until(campaign.starts)
    keepers = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
    (tmp_path / "second").touch()
    for keeper in keepers:  # as when its host goes down
        os.kill(int(keeper), signal.SIGKILL)
    _, err = running.communicate(timeout=LIMIT)
    assert running.returncode == 0, err
    assert "it ended without a report" in err
    assert len(campaign.results()) == 1
    for sleeper in [p for p in Path("/proc").glob("[0-9]*") if _says(p, str(campaign.agent))]:
        os.kill(int(sleeper.name), signal.SIGKILL)  # the test's own


def _says(process: Path, *words: str) -> bool:
    try:
        text = (process / "cmdline").read_text(errors="replace")
    except OSError:
        return False
    return (
        all(word in text for word in words)
        and int(process.name) != os.getpid()
        and "campaign\0run" not in text
    )


def test_a_node_that_fails_is_set_aside_and_the_others_go_on(tmp_path: Path) -> None:
    campaign = Campaign(
        tmp_path,
        repeats=3,
        limits="nodes_at_once = 3\ntries = 2",
        body='[ $node = n2 ] && { echo "no route to n2" >&2; exit 255; }',
    )
    done = campaign.run()
    assert done.returncode == 1
    assert "n2 is set aside: it was not reached 2 times in a row" in done.stderr
    assert "not measured: n2: its command ended with status 255: no route to n2" in done.stderr
    assert "status 255: no route to n2" in done.stderr
    assert len(campaign.results()) == 6
    assert campaign.starts()["n2"] == 2
    page = tmp_path / "page.html"
    assert campaign.verb("report", "-o", str(page)).returncode == 0
    assert "n2 has no measurement" in page.read_text()
    assert "No type has 5 measured nodes, so no node was judged." in page.read_text()
    assert "no route to n2" in page.read_text()


def test_a_test_that_cannot_work_takes_no_node_out_of_the_others(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, repeats=5, limits="nodes_at_once = 3\ntries = 2")
    with campaign.toml.open("a") as toml:
        toml.write('[[tests]]\nname = "bad"\ncommand = "echo no such GPU >&2; exit 3"\n')
        toml.write('[[tests]]\nname = "worse"\ncommand = "exit 4"\n')
    done = campaign.run()
    assert done.returncode == 1
    assert len(campaign.results()) == 15  # the good one, everywhere
    assert "set aside" not in done.stderr
    lacking = [line for line in done.stderr.splitlines() if line.startswith("not measured: ")]
    assert lacking == [
        "not measured: bad, kind: its command ended with status 3: no such GPU (n1, n2, n3)",
        "not measured: worse, kind: its command ended with status 4: it printed nothing (n1, n2, n3)",
    ]
    assert campaign.starts().total() == 15 + 2 * 3 * 5  # each of the bad ones five times on a node, no more


def test_a_node_where_tests_fail_that_work_on_its_like_is_set_aside(tmp_path: Path) -> None:
    campaign = Campaign(
        tmp_path,
        repeats=6,
        limits="nodes_at_once = 1\ntries = 2",
        body='[ $node = n2 ] && { echo "its disk is broken" >&2; exit 5; }',
    )
    with campaign.toml.open("a") as toml:
        toml.write(f'[[tests]]\nname = "u"\ncommand = "cat {tmp_path}/record"\n')
    done = campaign.run()
    assert done.returncode == 1
    assert len(campaign.results()) == 24
    assert "n2 is set aside: t and u failed in a row, which work on other nodes" in done.stderr
    assert campaign.starts()["n2"] <= 8


def test_what_a_measurement_notes_and_what_is_lacking_is_on_the_page(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, repeats=2, limits="nodes_at_once = 3\ntries = 1")
    text = campaign.toml.read_text()
    notes = "echo chatter >&2; echo 'note: cold was not proved: <b>why</b>' >&2"
    text = text.replace(f"cat {tmp_path}/record", f"{notes}; cat {tmp_path}/record")
    once = f"[ $CAMPAIGN_NODES != n2 ] || mkdir {tmp_path}/once || exit 3; cat {tmp_path}/record"
    campaign.toml.write_text(f"{text}[[tests]]\nname = 'once'\ncommand = '{once}'\n")
    assert campaign.run().returncode == 1
    page = tmp_path / "page.html"
    assert campaign.verb("report", "-o", str(page)).returncode == 0
    section = page.read_text()
    section = section[section.index('id="unmeasured"') :]
    assert "t, kind: cold was not proved: &lt;b&gt;why&lt;/b&gt; (n1, n2, n3)" in section
    assert "once, kind: 1 of 2 measurements (n2)" in section
    assert "status 3" in section
    assert "chatter" not in section


def test_a_measurement_that_hangs_is_ended(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, nodes='"localhost"', repeats=1, limits='time = "1s"\ntries = 1')
    text = campaign.toml.read_text()
    campaign.toml.write_text(
        text.replace(f'[launch]\nagent = "{campaign.agent}"\n', "").replace(
            f"cat {tmp_path}/record", "sleep 1000"
        )
    )
    done = campaign.run()
    assert done.returncode == 1
    assert "it did not end within 1 s and was ended" in done.stderr


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (
            "echo nonsense",
            'printed something that is not a record: line 1, "nonsense": not a line of JSON',
        ),
        ("true", "printed no records; tests print them on standard output"),
        ("echo oops >&2; false", "ended with status 1: oops"),
    ],
)
def test_a_command_that_gives_no_records_says_why(tmp_path: Path, command: str, says: str) -> None:
    campaign = Campaign(tmp_path, nodes='"n1"', repeats=1, limits="tries = 1")
    campaign.toml.write_text(campaign.toml.read_text().replace(f"cat {tmp_path}/record", command))
    assert says in campaign.run().stderr


def test_two_runners_in_one_folder(tmp_path: Path) -> None:
    go = tmp_path / "go"
    body = f"while [ ! -e {go} ]; do sleep 0.05; done"
    campaign = Campaign(tmp_path, nodes='"n1"', repeats=1, body=body)
    first = campaign.start()
    try:
        wait_until(campaign.starts)
        second = campaign.run()
    finally:
        go.touch()
        first.communicate(timeout=LIMIT)
    assert second.returncode == 2
    assert f"another `peerway campaign run` has {campaign.folder}: process {first.pid} of" in second.stderr
    assert first.returncode == 0


def test_a_plan_that_changes_meanwhile_is_refused(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, nodes='"n1"', repeats=1)
    assert campaign.run().returncode == 0
    campaign.toml.write_text(campaign.toml.read_text().replace("repeats = 1", "repeats = 2"))
    done = campaign.run()
    assert done.returncode == 2
    assert "was changed after the campaign began" in done.stderr


def test_a_plan_that_measured_nothing_yet_may_change(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, nodes='"n1"', repeats=1, body="exit 3")
    with Path("/dev/full").open("w") as full:  # a log that takes no more ends no campaign
        done = subprocess.run(
            [*PEERWAY, "campaign", "run", campaign.folder], stdout=subprocess.PIPE, stderr=full, text=True,
            check=False, timeout=LIMIT,
        )  # fmt: skip
    assert done.returncode == 1
    assert "0 of 1 measurements" in done.stdout
    assert campaign.starts() == {"n1": 3}
    campaign.toml.write_text(campaign.toml.read_text().replace("repeats = 1", "repeats = 2"))
    done = campaign.run()
    assert "was changed" not in done.stderr
    assert "0 of 2 measurements" in campaign.verb("status").stdout


def test_a_test_finds_the_peerway_that_runs_the_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = Campaign(tmp_path, nodes='"localhost"', repeats=1)
    text = campaign.toml.read_text().replace(f'agent = "{campaign.agent}"', 'agent = ""')
    campaign.toml.write_text(text.replace('command = "', 'command = "peerway --prefix >/dev/null && '))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    done = campaign.run()
    assert done.returncode == 0, done.stderr


def test_a_journal_that_a_crash_cut_off_is_read(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, nodes='"n1"', repeats=1)
    assert campaign.run().returncode == 0
    with (campaign.folder / "journal.jsonl").open("a") as file:
        file.write('{"event": "fai')
    (campaign.folder / "results" / ".0000.t.n1.99").write_text("half")
    assert campaign.run().returncode == 0
    assert json.loads((campaign.folder / "journal.jsonl").read_text().splitlines()[0])["event"] == "begun"


@pytest.mark.parametrize(
    ("name", "verbs"),
    [("journal.jsonl", ("status", "report", "run")), ("results/0000.t.n1.jsonl", ("report",))],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, verbs: tuple[str, ...]) -> None:
    campaign = Campaign(tmp_path, nodes='"n1"', repeats=1)
    assert campaign.run().returncode == 0
    file = campaign.folder / name
    file.unlink()
    file.mkdir()
    for verb in verbs:
        done = campaign.verb(verb)
        assert done.returncode == 2
        assert done.stderr.startswith(f"peerway: cannot read {file}: Is a directory")


def test_a_result_that_was_cut_short_is_measured_again_once_it_is_deleted(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, nodes='"n[1-2]"', repeats=1)
    assert campaign.run().returncode == 0
    file = next(iter(sorted((campaign.folder / "results").iterdir())))
    whole = file.read_text()
    file.write_text(whole[:-20])
    done = campaign.verb("report", "-o", str(tmp_path / "p.html"))
    assert done.returncode == 2
    assert f"delete {file}, and `peerway campaign run {campaign.folder}` measures that again" in done.stderr
    assert "skip" not in done.stderr
    file.unlink()
    assert campaign.run().returncode == 0
    assert file.read_text().count("\n") == whole.count("\n")
    assert sorted(campaign.starts().values()) == [1, 2]
    assert campaign.verb("report", "-o", str(tmp_path / "p.html")).returncode == 0


@pytest.mark.long
def test_a_terminal_shows_how_far_it_is_and_a_log_does_not(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, repeats=3, body="sleep 0.5; [ $node != n2 ] || exit 1")
    shown, logged = on_a_terminal(campaign), campaign.run().stderr
    assert re.search(r"measuring \S+ 0/9 .*t\.n\d and 2 more", shown)
    assert re.search(r"measuring \S+ [3-6]/9 \d:\d\d left .*t\.n\d", shown)
    for output in (shown, logged):
        assert "t.n2 failed" in output
    assert "measuring" not in logged


def on_a_terminal(campaign: Campaign) -> str:
    """What a run shows there, without what moves the cursor or colours it."""
    ours, theirs = pty.openpty()
    command = [*PEERWAY, "campaign", "run", str(campaign.folder)]
    variables = {**os.environ, "TERM": "xterm", "COLUMNS": "160"}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=variables):
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # as a terminal ends that nobody writes to any more
            while part := os.read(ours, 65536):
                shown += part
    os.close(ours)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())


def test_interrupted_it_says_how_to_go_on(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, nodes='"n1"', repeats=3, body="sleep 0.3")
    running = campaign.start()
    wait_until(campaign.starts)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=LIMIT)
    assert running.returncode == 130
    assert f"`peerway campaign run {campaign.folder}` resumes the campaign" in err
    assert campaign.run().returncode == 0
    assert campaign.starts() == {"n1": 3}


def test_health_says_one_line_a_node(tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    campaign = Campaign(
        tmp_path,
        nodes='"n[1-6]"',
        repeats=9,
        limits="nodes_at_once = 6",
        body=f"[ $node = n4 ] && {{ cat {slow}; exit; }}",
    )
    text = (tmp_path / "record").read_text()
    template = json.loads(text)
    slow.write_text(json.dumps({**template, "bandwidth_MBps": template["bandwidth_MBps"] / 2}) + "\n")
    done = campaign.run("--health")
    lines = done.stdout.splitlines()
    assert done.returncode == 1
    assert [line.split()[:2] for line in lines] == [[f"n{i}", "odd" if i == 4 else "ok"] for i in range(1, 7)]
    slow.write_text(text)
    assert campaign.run("--health").returncode == 0


def test_health_of_one_node_is_judged_by_what_the_campaign_has(tmp_path: Path) -> None:
    now = tmp_path / "now"
    campaign = Campaign(tmp_path, nodes='"n[1-2]"', repeats=4, body=f"[ -e {now} ] && {{ cat {now}; exit; }}")
    early = campaign.run("--health", "--node", "n1")
    assert early.returncode == 2
    assert "has no results of the type kind to compare with" in early.stderr
    assert campaign.run().returncode == 0
    before = sorted(campaign.folder.iterdir())
    well = campaign.run("--health", "--node", "n1")
    assert (well.returncode, well.stdout.split()[:2]) == (0, ["n1", "ok"]), well.stdout + well.stderr
    assert len(well.stdout.splitlines()) == 1
    assert campaign.starts() == {"n1": 5, "n2": 4}
    assert sorted(campaign.folder.iterdir()) == before
    template = json.loads((tmp_path / "record").read_text())
    now.write_text(json.dumps({**template, "bandwidth_MBps": template["bandwidth_MBps"] / 2}) + "\n")
    ill = campaign.run("--health", "--node", "n2")
    assert (ill.returncode, ill.stdout.split()[:2]) == (1, ["n2", "odd"]), ill.stdout
    assert "is not a node of" in campaign.run("--health", "--node", "n9").stderr
    assert len(campaign.results()) == 8  # the campaign itself is as it was


def test_a_file_system_without_locks_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shim = tmp_path / "site"
    shim.mkdir()
    (shim / "sitecustomize.py").write_text(
        "import errno, fcntl\ndef flock(*_):\n    raise OSError(errno.ENOSYS, 'Function not implemented')\n"
        "fcntl.flock = flock\n"
    )
    campaign = Campaign(tmp_path, nodes='"n1"', repeats=1)
    monkeypatch.setenv("PYTHONPATH", str(shim))
    done = campaign.run()
    assert done.returncode == 1
    assert f"{campaign.folder} is on a file system without locks" in done.stderr
    assert "put the campaign's folder on another one" in done.stderr


@pytest.mark.skipif(
    os.geteuid() != 0
    or subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode != 0,
    reason="mounts need root and a mount namespace",
)
def test_a_disk_that_is_full_loses_nothing_that_was_measured(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, nodes='"n[1-3]"', repeats=4, limits="nodes_at_once = 1\ntries = 2")
    large = "0" * 100_000  # of a record; 1 MB has room for fewer than twelve
    template = json.loads((tmp_path / "record").read_text())
    (tmp_path / "record").write_text(json.dumps({**template, "extra": {"ballast": large}}) + "\n")
    disk = tmp_path / "disk"
    disk.mkdir()
    run = shlex.join([*PEERWAY, "campaign", "run", str(disk)])
    script = f"""
    mount -t tmpfs -o size=1m tmpfs disk && cp {shlex.quote(str(campaign.toml))} disk/
    {run} >first 2>&1; echo $?
    ls disk/results | wc -l
    ls -A disk/results | grep -c '^[.]'
    mount -o remount,size=9m disk
    {run} >second 2>&1; echo $?
    ls disk/results | wc -l
    """
    command = ["unshare", "-m", "sh", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    first, held, drafts, second, all_ = map(int, done.stdout.split())
    output = (tmp_path / "first").read_text()
    assert (first, second, drafts, all_) == (1, 0, 0, 12), output + (tmp_path / "second").read_text()
    assert 3 <= held < 12
    assert f"No space left on device; of its file system, {disk}, " in output
    assert "Traceback" not in output
    assert campaign.starts().total() >= 12


HOSTILE = "<script>alert(1)</script>"


def test_the_page_shows_gpudirect_by_node_type_and_obeys_no_name(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, nodes='"n1"', repeats=1)
    campaign.toml.write_text(campaign.toml.read_text().replace("kind =", f'"{HOSTILE}" ='))
    template = json.loads((tmp_path / "record").read_text())
    vias = {"gpudirect:neither": 1, "gpudirect:rdma": 2, "gds/bounce": 4, "gds/direct": 10}
    lines = []
    for via, times in vias.items():
        extra = {"gds_active": "unknown"} if via == "gds/direct" else {}
        rate = template["bandwidth_MBps"] * times
        lines.append(
            json.dumps({**template, "via": via, "bandwidth_MBps": rate, "extra": extra, "shape": HOSTILE})
        )
    gpus = {"source": "cuda:0", "target": "cuda:1", "test": "put_bw"}
    for via, times, ends in (("staged", 1, gpus), ("peer/copy", 8, gpus), ("staged", 1, {})):
        rate = template["bandwidth_MBps"] * times
        lines.append(json.dumps({**template, **ends, "via": via, "bandwidth_MBps": rate, "shape": HOSTILE}))
    (tmp_path / "record").write_text("\n".join(lines) + "\n")
    assert campaign.run().returncode == 0
    page = tmp_path / "page.html"
    assert campaign.verb("report", "-o", str(page)).returncode == 0
    text = page.read_text()
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    matrix = text[text.index('id="gpudirect"') : text.index("</section>", text.index('id="gpudirect"'))]
    cells = re.findall(r"<td>([^<]*)</td>", matrix)
    assert [cell.rpartition(", ")[2] for cell in cells[3:6]] == ["not measured", "2.00 times", "not measured"]
    assert re.findall(r"<h3>([^<]*)</h3>", matrix) == [
        "GPUDirect RDMA and Copy",
        "GPUDirect P2P",
        "GPUDirect Storage",
    ]
    assert "cuda:0 to cuda:1" in cells[6]  # and no row of what is staged between memories of the host
    assert [cell.rpartition(", ")[2] for cell in cells[9:11]] == ["8.00 times", "not measured"]
    assert len(cells) == 6 + 5 + 5
    assert cells[-1].endswith("2.50 times (not known whether active)")


def test_a_clock_that_jumps_changes_nothing(tmp_path: Path) -> None:
    """Limits and durations do not use the wall clock, on which years pass during the measurement."""
    shim = tmp_path / "site"
    shim.mkdir()
    (shim / "sitecustomize.py").write_text(
        "import time\nreal, turn = time.time, iter(range(10**9))\n"
        "time.time = lambda: real() + (-1) ** next(turn) * 10**8\n"
    )
    campaign = Campaign(tmp_path, nodes='"n[1-2]"', repeats=2, limits='nodes_at_once = 2\ntime = "20s"')
    done = subprocess.run(
        [*PEERWAY, "campaign", "run", str(campaign.folder)],
        env={**os.environ, "PYTHONPATH": str(shim)},
        capture_output=True, text=True, check=False, timeout=LIMIT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in (campaign.folder / "journal.jsonl").read_text().splitlines()]
    assert {event["event"] for event in events} == {"begun", "done"}
    assert all(0 <= event["seconds"] < 20 for event in events[1:])


@pytest.mark.long
def test_two_campaigns_are_a_study(tmp_path: Path) -> None:
    folders = []
    for name, rate in (("before", 1.0), ("after", 1.3)):
        (tmp_path / name).mkdir()
        campaign = Campaign(tmp_path / name, nodes='"n[1-2]"', repeats=6, limits="nodes_at_once = 2")
        template = json.loads((tmp_path / name / "record").read_text())
        (tmp_path / name / "record").write_text(
            json.dumps({**template, "bandwidth_MBps": template["bandwidth_MBps"] * rate, "kernel": name})
            + "\n"
        )
        assert campaign.run().returncode == 0
        folders.append(str(campaign.folder))
        ended = int(time.time())
        while int(time.time()) == ended:  # records have the second; the other campaign is to have a later one
            time.sleep(0.05)
    words = [*PEERWAY, "campaign", "compare", *folders]
    compared = subprocess.run(
        [*words, "--factor", "kernel", "-o", tmp_path / "p.html"], capture_output=True, text=True, check=True
    )
    assert "+30.0 %" in compared.stdout
    assert "confounded with time" in compared.stdout  # one ran after the other, for six rounds
    wrong = subprocess.run([*words, "--factor", "nosuch"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "--factor nosuch: no record has it. There are " in wrong.stderr
    assert " kernel, " in wrong.stderr
    refused = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "not attributable" in refused.stdout
    assert "kernel changed: before -> after" in refused.stdout


def test_init_makes_what_run_takes(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    done = subprocess.run(
        [*PEERWAY, "campaign", "init", folder, "--nodes", "n[1-2] m1"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "campaign.toml" in done.stdout
    status = subprocess.run(
        [*PEERWAY, "campaign", "status", folder], capture_output=True, text=True, check=True
    )
    assert "0 of 75 measurements" in status.stdout
