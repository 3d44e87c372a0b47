"""What of a job is recorded: within a window of time, from a start to a stop of the running job, and in the
regions that are named.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest
from launching import ROOT, Run, clean_environment, peerway, source_of

from peerway_trace.store import Trace, load


@pytest.fixture(scope="module")
def traced_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """programs/asked.cpp, compiled; it does what its input says."""
    target = tmp_path_factory.mktemp("programs") / "asked"
    flags = [
        "-std=c++20",
        "-O1",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-pthread",
        f"-I{ROOT / 'library' / 'include'}",
    ]
    subprocess.run(["c++", *flags, str(source_of("asked.cpp")), "-o", str(target)], check=True)
    return target


def names(trace: Trace) -> Counter[str]:
    return Counter(trace.names[index] for index in trace["name"])


class Job:
    """A program under `peerway trace` that follows instructions line by line."""

    def __init__(self, folder: Path, program: Path, *options: str) -> None:
        self.folder = folder
        self._process = subprocess.Popen(
            peerway("trace", "-o", str(folder), *options, "--", str(program)),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=clean_environment(),
        )  # fmt: skip

    def tell(self, line: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "done\n"

    def end(self) -> Trace:
        self._process.communicate()
        assert self._process.returncode == 0
        return load(self.folder)


def test_a_running_job_stops_and_starts(traced_program: Path, tmp_path: Path, run: Run) -> None:
    job = Job(tmp_path / "trace", traced_program)
    job.tell("region before")
    done = run(peerway("trace", "stop", str(job.folder)))
    assert "1 process now records nothing" in done.stderr
    job.tell("region between")
    job.tell("child of-stopped")  # begins when recording is stopped
    assert run(peerway("trace", "start", str(job.folder))).returncode == 0
    job.tell("region after")
    assert names(job.end()) == {"before": 1, "after": 1}


def test_a_job_that_is_stopped_from_the_first_waits_for_its_start(
    traced_program: Path, tmp_path: Path, run: Run
) -> None:
    job = Job(tmp_path / "trace", traced_program, "--stopped")
    job.tell("region before")
    assert run(peerway("trace", "start", str(job.folder))).returncode == 0
    job.tell("region after")
    assert names(job.end()) == {"after": 1}


def test_what_was_under_way_at_a_stop_is_whole(traced_program: Path, tmp_path: Path, run: Run) -> None:
    job = Job(tmp_path / "trace", traced_program)
    job.tell("enter outer")
    run(peerway("trace", "stop", str(job.folder)))
    job.tell("region inner")
    job.tell("leave")
    trace = job.end()
    assert names(trace) == {"outer": 1}
    assert trace.open == []


def test_nothing_is_recorded_outside_a_window(traced_program: Path, tmp_path: Path, run: Run) -> None:
    script = (
        f"(echo region early; sleep 2.5; echo region inside; sleep 2.5; echo region late) | {traced_program}"
    )
    folder = tmp_path / "trace"
    words = peerway("trace", "-o", str(folder), "--from", "1.2", "--for", "2.6", "--", "bash", "-c", script)
    assert run(words).returncode == 0
    assert names(load(folder)) == {"inside": 1}


def test_only_regions_of_a_name_are_recorded_with_what_is_in_them(
    traced_program: Path, tmp_path: Path, run: Run
) -> None:
    job = Job(tmp_path / "trace", traced_program, "--region", "solve")
    for line in (
        "region setup",
        "enter solve",
        "region inner",
        "enter solve",
        "leave",
        "leave",
        "region end",
    ):
        job.tell(line)
    assert names(job.end()) == {"solve": 2, "inner": 1}


def test_a_folder_where_nothing_records_is_named(tmp_path: Path, run: Run) -> None:
    done = run(peerway("trace", "stop", str(tmp_path)))
    assert done.returncode == 1
    assert f"no running job records to {tmp_path}" in done.stderr
