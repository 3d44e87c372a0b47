"""How a run of `peerway storage` ends, and what it leaves: interrupted, killed, on a full disk, on a mount
that hangs.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from launching import LIMIT, run_command

from peerway_measure.storage.folder import Owner
from peerway_measure.storage.operation import GaveUp, operate

SMALL = ("--size", "2M", "--block", "256K", "--streams", "1")
PEERWAY = (sys.executable, "-m", "peerway")
AS_ROOT = pytest.mark.skipif(
    os.geteuid() != 0
    or subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode != 0,
    reason="mounts need root and a mount namespace",
)


def storage(*words: object, folder: Path, inside: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command; `inside` are shell commands to prepare its own mount namespace."""
    command = [*PEERWAY, "storage", str(folder), *map(str, words)]
    if inside:
        command = ["unshare", "-m", "sh", "-c", f'{inside}; "$@"', "sh", *command]
    return run_command(command)


class Running:
    """A measurement that is under way in a folder."""

    def __init__(self, place: Path, *words: str) -> None:
        self.process = subprocess.Popen(
            [
                *PEERWAY,
                "storage",
                str(place),
                "write",
                "--size",
                "64M",
                "--streams",
                "1",
                "--repeat",
                "1000",
                *words,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        until = time.monotonic() + 60
        while not any(p.name.endswith(".0") for f in place.glob("peerway-storage-*") for p in _names(f)):
            assert self.process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.01)

    def end(self, number: int) -> tuple[int, str]:
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=LIMIT)
        return self.process.returncode, err


def _names(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_nothing(tmp_path: Path, number: int) -> None:
    status, err = Running(tmp_path).end(number)
    assert status == 128 + number, err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_an_interrupted_run_of_several_nodes_leaves_nothing(
    tmp_path: Path, two_nodes: list[str], number: int
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    status, err = Running(place, *two_nodes).end(number)
    assert status == 128 + number, err
    assert list(place.iterdir()) == []


def test_what_a_killed_run_left_is_removed_by_the_next_and_nothing_else(tmp_path: Path) -> None:
    Running(tmp_path).end(signal.SIGKILL)
    remains = list(tmp_path.iterdir())
    assert [p.name.startswith("peerway-storage-") for p in remains] == [True]
    foreign = remains[0] / "thesis.tex"
    foreign.write_text("precious")
    (remains[0] / "link").symlink_to(tmp_path / "elsewhere")
    done = storage("write", *SMALL, folder=tmp_path)
    assert done.returncode == 0
    assert "has files that no run made, and was left: " in done.stderr
    assert foreign.read_text() == "precious"
    assert {p.name for p in remains[0].iterdir()} == {"thesis.tex", "link", "manifest.json"}
    foreign.unlink()
    (remains[0] / "link").unlink()
    cleaned = subprocess.run(
        [*PEERWAY, "storage", "clean", tmp_path], capture_output=True, text=True, check=True
    )
    assert "removed" in cleaned.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_lives_keeps_its_files(tmp_path: Path) -> None:
    running = Running(tmp_path)
    running.process.send_signal(signal.SIGSTOP)
    if not list(tmp_path.iterdir()):
        pytest.skip("it was stopped between two runs")
    done = storage("write", *SMALL, folder=tmp_path)
    assert f"process {running.process.pid}" in done.stderr
    assert "may still run" in done.stderr
    assert running.process.poll() is None
    running.process.send_signal(signal.SIGCONT)
    running.end(signal.SIGTERM)


def test_of_another_host_it_is_not_known_whether_a_run_lives(tmp_path: Path) -> None:
    manifest = json.dumps(vars(Owner("elsewhere", "b", 1, 1)))
    operate("make", 10, place=tmp_path, token="0123456789ab", manifest=manifest)
    listed = subprocess.run(
        [*PEERWAY, "storage", "clean", tmp_path], capture_output=True, text=True, check=True
    )
    assert "process 1 of elsewhere, which may still run" in listed.stdout
    subprocess.run(
        [*PEERWAY, "storage", "clean", "--others", tmp_path], capture_output=True, text=True, check=True
    )
    assert list(tmp_path.iterdir()) == []


@AS_ROOT
@pytest.mark.parametrize(
    ("mount", "words", "says"),
    [
        (
            "mount -t tmpfs -o size=6m,nr_inodes=40 tmpfs {}",
            ("metadata", "--small-files", "300"),
            "the file system is full",
        ),
        ("mount -t tmpfs -o ro tmpfs {}", ("write",), "is mounted read-only"),
    ],
)
def test_a_file_system_that_takes_no_more(
    tmp_path: Path, mount: str, words: tuple[str, ...], says: str
) -> None:
    done = storage(*SMALL, *words, folder=tmp_path, inside=mount.format(tmp_path))
    assert done.returncode != 0
    assert says in done.stderr


FULL = """
import sys, subprocess, pathlib
from peerway_measure.storage.folder import RunFolder
from peerway_measure.storage.operation import operate, OperationFailed
place = pathlib.Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", place], check=True)
folder = RunFolder.make(place, 10)
try:
    how = dict(size=8 << 20, block=65536, streams=2, depth=4, direct=0, fsync=0, shared=0, seed=1)
    operate("write", 10, path=folder.prefix("w"), **how)
except OperationFailed as error:
    print(error.errno, error)
print(folder.remove(), list(place.iterdir()))
"""


@AS_ROOT
def test_a_disk_that_fills_meanwhile_is_cleaned(tmp_path: Path) -> None:
    done = subprocess.run(
        ["unshare", "-m", sys.executable, "-c", FULL, tmp_path], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("ENOSPC write: write: No space left on device (ENOSPC)")
    assert done.stdout.splitlines()[-1] == "[] []"


# A file system whose daemon accepts requests and answers none, so every access to it waits.
HANGS = """
import ctypes, os, sys
fd = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={fd},rootmode=40000,user_id=0,group_id=0".encode()
if ctypes.CDLL(None, use_errno=True).mount(b"hangs", sys.argv[1].encode(), b"fuse.hangs", 0, options):
    sys.exit(os.strerror(ctypes.get_errno()))
os.set_inheritable(fd, False)
import subprocess
done = subprocess.run(sys.argv[2:], capture_output=True, text=True, timeout=600)
sys.stdout.write(done.stdout); sys.stderr.write(done.stderr)
sys.exit(done.returncode)
"""


@AS_ROOT
@pytest.mark.skipif(not os.access("/dev/fuse", os.R_OK | os.W_OK), reason="no /dev/fuse")
def test_a_mount_that_hangs_is_given_up(tmp_path: Path) -> None:
    command = [*PEERWAY, "storage", str(tmp_path), "write", "--limit", "0.5", "--streams", "1"]
    done = subprocess.run(
        ["unshare", "-m", sys.executable, "-c", HANGS, tmp_path, *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )
    assert "did not end within 0.5 s, so it was given up: the mount may hang" in done.stderr, done.stderr
    assert done.returncode == 1


@AS_ROOT
@pytest.mark.skipif(not os.access("/dev/fuse", os.R_OK | os.W_OK), reason="no /dev/fuse")
def test_a_campaign_goes_on_where_the_mount_of_one_node_hangs(tmp_path: Path) -> None:
    campaign, agent = tmp_path / "campaign", tmp_path / "agent"
    for folder in (campaign, tmp_path / "n1", tmp_path / "n2"):
        folder.mkdir()
    agent.write_text('#!/bin/sh\nshift\neval "$*"\n')
    agent.chmod(0o755)
    measure = f"peerway storage {tmp_path}/$CAMPAIGN_NODES write --size 1M --streams 1 --limit 1 --out -"
    (campaign / "campaign.toml").write_text(
        f'repeats = 2\n[nodes]\nkind = ["n[1-2]"]\n[launch]\nagent = "{agent}"\n[limits]\ntries = 1\n'
        f'[[tests]]\nname = "t"\ncommand = "{measure}"\n'
    )
    run = [*PEERWAY, "campaign", "run", campaign]
    done = subprocess.run(
        ["unshare", "-m", sys.executable, "-c", HANGS, tmp_path / "n2", *run],
        capture_output=True, text=True, check=False, timeout=LIMIT,
    )  # fmt: skip
    assert done.returncode == 1
    assert "2 of 4 measurements are done" in done.stdout, done.stdout + done.stderr
    assert "did not end within 1 s, so it was given up: the mount may hang" in done.stderr
    assert {path.name.split(".")[2] for path in (campaign / "results").iterdir()} == {"n1"}
    assert list((tmp_path / "n1").iterdir()) == []


def test_a_folder_that_is_not_there_is_all_that_is_told(tmp_path: Path) -> None:
    """The number of streams that share the CPUs is not reported then."""
    done = storage("--streams", "64", folder=tmp_path / "no")
    assert done.returncode == 1
    message = f"peerway: {tmp_path / 'no'}: open of a folder: No such file or directory (ENOENT); "
    assert done.stderr.startswith(message)
    assert len(done.stderr.splitlines()) == 1


def test_an_operation_that_does_not_end_is_given_up(tmp_path: Path) -> None:
    fifo = tmp_path / "w.0"
    os.mkfifo(fifo)  # opening it waits for a writer
    with pytest.raises(GaveUp, match="did not end within"):
        operate(
            "read",
            0.2,
            path=tmp_path / "w",
            size=4096,
            block=4096,
            streams=1,
            depth=0,
            direct=0,
            fsync=0,
            shared=0,
            seed=1,
        )
