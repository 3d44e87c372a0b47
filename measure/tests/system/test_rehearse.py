"""`peerway rehearse` as a user runs it: one copy, on which all of these tests work in turn. The study
has fewer rounds than the shipped one, except in make test-long.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from launching import peerway, run_command

from peerway_measure.campaign.journal import Journal
from peerway_measure.rehearse import holder
from peerway_measure.rehearse.cluster import read, why_not
from peerway_measure.rehearse.scenario import BadScenario
from peerway_measure.rehearse.scenario import read as read_scenario
from peerway_measure.storage.states import STATES

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "rehearsal"
LIMIT_S = 900  # a guard against hangs, no expectation

pytestmark = pytest.mark.cluster


class Rehearsed:
    """A copy that is up."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def verb(self, verb: str, *words: str) -> subprocess.CompletedProcess[str]:
        return run_command(peerway("rehearse", verb, str(self.folder), *words), timeout=LIMIT_S)

    def on(self, host: str, command: str, *words: str) -> str:
        done = self.verb("shell", "--host", host, *words, "sh", "-c", command)
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout

    def last(self, name: str) -> list[dict[str, object]]:
        place = max(self.folder.glob(f"{name}-*"))
        return [json.loads(line) for line in (place / "upgrade.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsed]:
    if why := why_not(read(EXAMPLE / "cluster.toml")):
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("rehearsal") / "copy"
    shutil.copytree(EXAMPLE, folder)
    rehearsed = Rehearsed(folder)
    try:
        started = rehearsed.verb("start")
        assert started.returncode == 0, started.stderr
        yield rehearsed
    finally:
        rehearsed.verb("remove")
        assert not (folder / "disk.img").exists()


def test_a_user_writes_on_one_node_and_reads_on_another_over_the_network(copy: Rehearsed) -> None:
    before = int(copy.on("cpu-2", "cat /sys/class/net/eth0/statistics/rx_bytes"))
    copy.on(
        "cpu-1", "head -c 3000000 /dev/urandom > /scratch/ann/data; sha256sum < /scratch/ann/data > ~/sum"
    )
    assert copy.on("cpu-2", "sha256sum < /scratch/ann/data") == copy.on("head", "cat ~/sum")
    assert int(copy.on("cpu-2", "cat /sys/class/net/eth0/statistics/rx_bytes")) - before > 3_000_000
    assert set(copy.on("head", "srun -N3 hostname").split()) == {"cpu-1", "cpu-2", "gpu-1"}
    assert not Path("/scratch").exists()  # on this machine


def test_a_rollback_brings_back_files_packages_and_configuration(copy: Rehearsed) -> None:
    copy.on("cpu-1", "echo kept > /scratch/ann/kept")
    assert copy.verb("snapshot", "clean").returncode == 0
    copy.on(
        "head", "rm /usr/bin/dpkg /scratch/ann/kept; echo x >> /etc/hosts; touch /etc/of-the-copy", "--root"
    )
    assert not Path("/etc/of-the-copy").exists()
    assert Path("/usr/bin/dpkg").exists()
    again = copy.verb("snapshot", "clean")
    assert again.returncode == 1
    assert "there is a snapshot 'clean' already" in again.stderr
    back = copy.verb("rollback", "clean")
    assert back.returncode == 0, back.stdout
    assert copy.on(
        "cpu-2", "cat /scratch/ann/kept; ls /usr/bin/dpkg /etc/of-the-copy 2>/dev/null || true"
    ) == ("kept\n/usr/bin/dpkg\n")
    up = copy.on("head", "cat /proc/1/stat", "--root").split()[21]
    wrong = copy.verb("rollback", "never")
    assert wrong.returncode == 1
    assert "peerway: there is no snapshot 'never'; there are: clean" in wrong.stderr
    assert "peerway: 'a/b' is not a name for a snapshot" in copy.verb("snapshot", "a/b").stderr
    # Whoever misspells a name loses no running job.
    assert copy.on("head", "cat /proc/1/stat", "--root").split()[21] == up


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            '[[steps]]\nname = "s"\non = "haed"\nrun = "true"\n',
            "'haed' is not a host of this copy; there are head",
        ),
        (
            '[[steps]]\nname = "s"\non = "head"\nrun = "true"\nuser = "root"\n',
            "the copy has no user 'root'; there are ann, ben",
        ),
        ('name = "../s"\n[[steps]]\nname = "s"\non = "head"\nrun = "true"\n', "a folder is named by it"),
        (
            '[campaign]\nfile = "gone.toml"\nuser = "ann"\nfolder = "/scratch/ann"\n'
            '[[steps]]\nname = "s"\non = "head"\nrun = "true"\n',
            "gone.toml, which [campaign] names",
        ),
    ],
)
def test_an_upgrade_that_cannot_be_done_touches_nothing(copy: Rehearsed, text: str, says: str) -> None:
    before = copy.verb("status").stdout
    wrong = copy.folder / "wrong.toml"
    wrong.write_text(text)
    done = copy.verb("upgrade", str(wrong))
    assert done.returncode == 1
    assert says in done.stderr
    assert done.stdout == ""  # no folder of results is promised
    assert copy.verb("status").stdout == before
    assert not list(copy.folder.glob("*-2*"))


def test_a_fault_at_step_3_rolls_back_and_harms_no_file(copy: Rehearsed) -> None:
    copy.on("cpu-1", "for i in 1 2 3; do head -c 100000 /dev/urandom > /scratch/ann/file$i; done")
    sums = copy.on("head", "cd /scratch/ann; sha256sum file*")
    done = copy.verb("upgrade", str(copy.folder / "fault.toml"))
    assert done.returncode == 1
    assert "step 3 (migrate the files and the configuration)" in done.stdout
    counts = re.findall(r"the users' files(?:: | \()(\d+)", done.stdout)
    assert len(counts) == 2
    assert counts[0] == counts[1]
    assert int(counts[0]) > 3 + 2 * 10  # those of this test, and what each of two users has from the start
    assert [event["event"] for event in copy.last("fault")] == [
        "step",
        "step",
        "step",
        "failed",
        "rolled back",
    ]
    assert copy.on("head", "cd /scratch/ann; sha256sum file*") == sums
    assert set(copy.on("head", "srun -N3 hostname").split()) == {"cpu-1", "cpu-2", "gpu-1"}


def test_an_upgrade_that_changes_a_file_of_a_user_has_failed(copy: Rehearsed) -> None:
    copy.on("cpu-1", "echo mine > /scratch/ann/mine")
    sly = copy.folder / "sly.toml"
    changes = (
        "echo his > /scratch/ann/mine",
        "chown ann /scratch/ben/project/model",
        "chmod 600 /scratch/ann/project/model",
        "touch /scratch/ann/project/done",
        "printf '\\\\377'",  # not UTF-8
    )
    sly.write_text(f'[[steps]]\nname = "s"\non = "head"\nrun = "{"; ".join(changes)}"\n')
    done = copy.verb("upgrade", str(sly))
    assert done.returncode == 1
    assert (
        "files of users have changed: 1 changed: /scratch/ann/mine; 1 with another owner: "
        "/scratch/ben/project/model; 1 with other permissions: /scratch/ann/project/model; "
        "1 with another time: /scratch/ann/project/done\n"
    ) in done.stdout
    back = copy.on("head", "cat /scratch/ann/mine; stat -c %U /scratch/ben/project/model", "--root")
    assert back == "mine\nben\n"


@pytest.mark.long
def test_the_study_finds_that_rereads_gained(copy: Rehearsed, pytestconfig: pytest.Config) -> None:
    campaign = copy.folder / "campaign.toml"
    shipped = "repeats = 5\n"
    assert shipped in campaign.read_text()
    rounds = 5 if pytestconfig.getoption("--long") else 3
    campaign.write_text(campaign.read_text().replace(shipped, f"repeats = {rounds}\n"))
    done = copy.verb("upgrade", str(copy.folder / "cache.toml"))
    assert done.returncode == 0, done.stdout
    assert [event["event"] for event in copy.last("cache")] == ["step"] * 9 + ["done"]
    assert all(isinstance(event["seconds"], float) for event in copy.last("cache")[:9])
    place = max(copy.folder.glob("cache-*"))
    words = ["campaign", "compare", str(place / "before"), str(place / "after"), "--format", "json"]
    command = [sys.executable, "-m", "peerway", *words]

    def rows(*more: str) -> dict[str, Any]:
        done = subprocess.run([*command, *more], capture_output=True, text=True, check=True)
        return {row["test"]: row for row in json.loads(done.stdout)}

    journals = [Journal(place / side) for side in ("before", "after")]
    notes = [note for journal in journals for each in journal.past().notes.values() for note in each]
    assert not [note for note in notes if "was not measured" in note]
    by_test = rows("--factor", "state")
    assert {*by_test} == {"file_write_bw", *(f"file_read_{state}_bw" for state in STATES)}
    each = 4 * rounds  # each of two nodes takes the other along: none is lost
    assert {tuple(row["n"]) for row in by_test.values()} == {(each, each)}
    for side in ("before", "after"):
        page = copy.folder / f"{side}.html"
        subprocess.run(
            [sys.executable, "-m", "peerway", "campaign", "report", str(place / side), "-o", str(page)],
            check=True,
        )
        assert f"{2 * rounds} of {2 * rounds} measurements are done" in page.read_text()
        assert "storage, cpu: cold was not proved: " in page.read_text()  # FUSE counts no bytes
    for journal in journals:
        all_records = journal.records()
        assert {(r.host, r.extra["nodes"]) for r in all_records} == {("cpu-1", 2), ("cpu-2", 2)}
        tests = Counter(
            r.test for r in all_records
        )  # of a state that the evidence contradicts it is another one
        assert tests["file_read_warm_elsewhere_bw"] == tests["file_read_after_drop_bw"] == each
    again = by_test["file_read_warm_here_bw"]
    assert again["speedup_percent"] > 50  # a page cache beside a network
    # Writes and cold reads may differ either way: other tests share the disk with one of the two campaigns.
    unnamed = rows()["file_read_warm_here_bw"]
    assert "state changed: unknown -> warm_here" in unnamed["besides"]
    if rounds == 5:  # fewer are too few for a verdict on one of five tests
        # One campaign ran after the other, with fewer rounds than tell an effect from what time changed.
        assert again["verdict"] == "confounded with time"
        assert again["interval_percent"][0] > 50
        assert unnamed["verdict"] == "not attributable"


def test_a_copy_whose_process_was_killed_starts_where_it_was(copy: Rehearsed) -> None:
    copy.on("cpu-1", "echo there > /scratch/ann/there; sync")
    holders = _holders(copy.folder)
    assert len(holders) == 1
    os.kill(holders[0], 9)
    gone = copy.verb("status")
    assert "no copy runs" in gone.stderr
    assert copy.verb("start").returncode == 0
    assert copy.on("cpu-2", "cat /scratch/ann/there") == "there\n"


def test_an_upgrade_in_which_the_copy_was_killed_is_named_at_the_next_start(copy: Rehearsed) -> None:
    slow = copy.folder / "slow.toml"
    slow.write_text(
        '[[steps]]\nname = "s"\non = "head"\nlimit = "900s"\nrun = "touch /etc/half; sleep 1000"\n'
    )
    command = [sys.executable, "-m", "peerway", "rehearse", "upgrade", str(copy.folder), str(slow)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as upgrade:
        deadline = time.monotonic() + LIMIT_S
        while "half" not in copy.verb("shell", "ls", "/etc").stdout:  # it fails while hosts start anew
            assert upgrade.poll() is None
            assert time.monotonic() < deadline
        os.kill(_holders(copy.folder)[0], 9)
        upgrade.communicate(timeout=LIMIT_S)
    started = copy.verb("start").stdout
    assert "an upgrade neither ended nor was rolled back" in started
    snapshot = max(word for word in started.replace("`", " ").split() if word.startswith("before-slow-"))
    assert "half" in copy.on("head", "ls /etc")
    assert copy.verb("rollback", snapshot).returncode == 0
    assert "half" not in copy.on("head", "ls /etc")
    assert "neither ended" not in copy.verb("status").stdout


def _holders(folder: Path) -> list[int]:
    return [
        int(p.name)
        for p in Path("/proc").glob("[0-9]*")
        if _line(p).endswith(["peerway_measure.rehearse.holder", str(folder)])
    ]


class _Words(list[str]):
    def endswith(self, words: list[str]) -> bool:
        return self[-len(words) :] == words


def _line(process: Path) -> _Words:
    try:
        return _Words((process / "cmdline").read_text(errors="replace").split("\0")[:-1])
    except OSError:
        return _Words()


def test_a_copy_that_cannot_start_says_why_and_leaves_no_host(tmp_path: Path) -> None:
    if why := why_not(read(EXAMPLE / "cluster.toml")):
        pytest.skip(why)
    folder = tmp_path / "copy"
    shutil.copytree(EXAMPLE, folder)
    file = folder / "cluster.toml"
    file.write_text(file.read_text().replace('"800mbit"', '"0bit"'))
    wrong = Rehearsed(folder)
    try:
        started = wrong.verb("start")
        assert started.returncode == 1
        assert started.stderr.startswith("peerway: the copy does not start: tc in ")
        assert "rate 0bit" in started.stderr
        assert "Traceback" not in started.stderr
        assert "no copy runs" in wrong.verb("status").stderr
    finally:
        assert wrong.verb("remove").returncode == 0
    assert {path.name for path in folder.iterdir()} == {path.name for path in EXAMPLE.iterdir()}


STEP = '[[steps]]\nname = "s"\non = "head"\n'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", ":1:1: there is no step"),
        (STEP, r":2:1: step 1 \(s\) has neither run nor check"),
        (f'{STEP}run = "true"\ncolour = 1\n', ":5:1: step 1 has no key 'colour'"),
        (f'{STEP}run = "true"\n{STEP}  colour = 1\n', ":8:3: step 2 has no key 'colour'"),
        (f"{STEP}run = 3\n", ":4:1: step 1 needs run, a string"),
        (f'{STEP}run = "true"\nlimit = "soon"\n', ":5:1: step 1 has an invalid limit: "),
        ("[[steps", ":its end: Expected ']]'"),
        (f'{STEP}run = "true"\n[campaign]\nuser = "ann"\n', ":5:1: campaign needs file"),
        (f'{STEP}run = "true"\n[campaign]\nfactors = 3\n', ":6:1: campaign has factors that are not a list"),
    ],
)
def test_a_wrong_scenario_is_refused(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "s.toml"
    file.write_text(text)
    with pytest.raises(BadScenario, match=f"s.toml{why}"):
        read_scenario(file)


def test_a_folder_that_is_no_copy_is_refused_and_keeps_its_files(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("precious")
    for verb in ("start", "shell", "remove"):
        done = subprocess.run(
            [sys.executable, "-m", "peerway", "rehearse", verb, str(tmp_path)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2
        assert f"peerway: {tmp_path} has no cluster.toml, the description of the cluster" in done.stderr
    assert (tmp_path / "log").read_text() == "precious"


def test_where_no_copy_is_up_it_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(holder.Gone, match="peerway rehearse start"):
        list(holder.ask(tmp_path, verb="status"))
