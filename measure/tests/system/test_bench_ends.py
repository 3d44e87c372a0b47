"""How `peerway bench` and `tune` begin and end: outputs are tried first, records kept, signals obeyed, and
nothing is left behind."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from launching import LIMIT, clean_environment, peerway, run_command

from peerway_measure import records

QUICK = ("bench", "put_latency", "--quick", "--device", "host", "--paths", "staged")
LONG = (
    "bench",
    "put_latency",
    "--device",
    "host",
    "--paths",
    "staged",
    "--sizes",
    "64:64K",
    "--repeat",
    "50",
)


# Longer than the path of a socket may be.
TEMPORARY = "temporary" * 14


def environment(home: Path) -> dict[str, str]:
    temporary = home / TEMPORARY
    temporary.mkdir(exist_ok=True)
    return clean_environment(XDG_CONFIG_HOME=str(home), TMPDIR=str(temporary))


def start(arguments: Sequence[object], home: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        peerway(*map(str, arguments)), env=environment(home), cwd=home,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def run(arguments: Sequence[object], home: Path) -> subprocess.CompletedProcess[str]:
    return run_command(peerway(*map(str, arguments)), environment(home), home)


def leftovers(home: Path) -> list[str]:
    return os.listdir(home / TEMPORARY)


def test_records_are_kept_and_what_they_lack_is_measured(tmp_path: Path) -> None:
    out = tmp_path / "a.jsonl"
    first = run((*QUICK, "--sizes", "64,512", "--out", out), tmp_path)
    assert first.returncode == 0, first.stderr
    before = out.read_text()
    refused = run((*QUICK, "--sizes", "64,512,4K", "--out", out), tmp_path)
    assert (refused.returncode, refused.stdout, out.read_text()) == (2, "", before)
    assert refused.stderr.count("\n") == 1
    assert "a.jsonl has 2 records already; --append" in refused.stderr
    more = run((*QUICK, "--sizes", "64,512,4K", "--out", out, "--append"), tmp_path)
    assert more.returncode == 0, more.stderr
    assert out.read_text().startswith(before)
    assert [(record.via, record.bytes) for record in records.read(out)[2:]] == [("staged", 4096)]
    assert "3 records in" in more.stderr
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("verb", ["bench", "tune"])
@pytest.mark.parametrize(
    ("out", "why"),
    [
        pytest.param("/dev/full", "No space left on device", id="full"),
        pytest.param("no/such/folder/file", "there is no folder no/such/folder", id="folder"),
    ],
)
def test_an_output_is_tried_before_anything_is_measured(
    verb: str, out: str, why: str, tmp_path: Path
) -> None:
    done = run((verb, "--quick", "--out", out), tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"peerway: cannot write {out}: {why}; name another file with --out\n"
    assert not (tmp_path / "no").exists()
    assert Path("/dev/full").is_char_device()


def test_tune_replaces_no_file_that_is_no_table(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.write_text("weeks of work\n")
    done = run(("tune", "--quick", "--out", notes), tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith(f"peerway: {notes}: is not JSON")
    assert done.stderr.endswith(
        ". tune replaces route tables only: name another file with --out, or remove this one\n"
    )
    assert "run `peerway tune`" not in done.stderr
    assert notes.read_text() == "weeks of work\n"


def test_records_come_as_they_are_made_and_a_reader_that_goes_ends_it(tmp_path: Path) -> None:
    with start((*LONG, "--out", "-"), tmp_path) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert records.parse(process.stdout.readline())
        assert process.poll() is None
        process.stdout.close()
        errors = process.stderr.read()
        assert process.wait(LIMIT) == 1
    assert errors.splitlines()[-1] == "peerway: cannot write to standard output: Broken pipe"
    assert "Traceback" not in errors
    assert leftovers(tmp_path) == []


def test_a_full_standard_output_is_one_line(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            peerway(*QUICK, "--sizes", "64", "--format", "jsonl"), env=environment(tmp_path), cwd=tmp_path,
            stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=LIMIT,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "peerway: cannot write to standard output: No space left on device"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        pytest.param(signal.SIGTERM, marks=pytest.mark.long),
        pytest.param(signal.SIGHUP, marks=pytest.mark.long),
        signal.SIGKILL,
    ],
)
def test_a_signal_keeps_the_records_and_leaves_nothing(number: signal.Signals, tmp_path: Path) -> None:
    out = tmp_path / "my records.jsonl"
    with start((*LONG, "--out", out), tmp_path) as process:
        while not (out.exists() and out.stat().st_size > 1):  # more than the try
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        ranks = workers(tmp_path)
        assert len(ranks) == 2
        process.send_signal(number)
        printed, errors = process.communicate(timeout=LIMIT)
    measured = records.read(out)
    assert measured
    assert leftovers(tmp_path) == []
    if number == signal.SIGKILL:
        wait_for_the_end_of(ranks)
        return
    assert process.returncode == 128 + number
    assert not any(map(alive, ranks))
    assert "put_latency" in printed
    *_, reason, command = errors.splitlines()
    count = f"{len(measured)} record{'s' if len(measured) > 1 else ''}"
    assert reason.startswith(f"peerway: ended by {number.name} after {count}; they are in {out}")
    assert shlex.split(command) == ["peerway", *map(str, (*LONG, "--out", out)), "--append"]
    assert "Traceback" not in errors


@pytest.mark.alone
def test_a_time_is_divided_and_what_did_not_fit_is_named(tmp_path: Path) -> None:
    ranks = 2 * len(os.sched_getaffinity(0))
    arguments = (
        *QUICK,
        "--sizes",
        "64:1M",
        "--repeat",
        "2",
        "--ranks",
        ranks,
        "--time",
        "5s",
        "--out",
        "a.jsonl",
    )
    done = run(arguments, tmp_path)
    assert f"oversubscribed: {ranks} ranks share" in done.stderr.splitlines()[0]
    measured = len(records.read(tmp_path / "a.jsonl")) if (tmp_path / "a.jsonl").exists() else 0
    named = re.search(r"no time was left for (\d+) of \d+ measurements: put_latency ", done.stderr)
    left_out = 15 if "no time was left for run 2 of 2" in done.stderr else 0
    assert measured == 2 * 15 - left_out - (int(named[1]) if named else 0), (
        done.stderr
    )  # of both runs together
    assert measured > 0


def test_tune_that_is_ended_leaves_the_table_as_it_was(tmp_path: Path) -> None:
    table = tmp_path / "routes.json"
    with start(("tune", "--device", "host", "--out", table), tmp_path) as process:
        assert process.stderr is not None
        assert any(line.startswith("tuning: ") for line in iter(process.stderr.readline, ""))
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 128 + signal.SIGTERM
    assert errors.endswith(f"peerway: ended by SIGTERM; {table} is as it was\n")
    assert (table.exists(), leftovers(tmp_path), workers(tmp_path)) == (False, [], [])


def workers(home: Path) -> list[int]:
    """The ranks of a benchmark that was started in this folder."""
    processes = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            here = (folder / "cwd").resolve() == home
        except OSError:
            continue
        if here and b"peerway_measure.bench.worker" in words and b"run" not in words:
            processes.append(int(folder.name))
    return processes


def alive(process: int) -> bool:
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return stat[stat.rindex(")") + 2] not in "ZX"


def wait_for_the_end_of(processes: Sequence[int]) -> None:
    """The guardian ends ranks that a killed launcher cannot end;
    a hang ends at the limit of the tests' runner.
    """
    while any(map(alive, processes)):
        os.sched_yield()
