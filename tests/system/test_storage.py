"""`peerway storage` as a user runs it, on this machine's file systems: records, proofs, and what is left
after each kind of end.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from peerway import records
from peerway.storage.folder import Owner, RunFolder
from peerway.storage.operation import GaveUp, OperationFailed, operate

SMALL = ("--size", "2M", "--block", "256K", "--small-files", "20", "--random-blocks", "20")
PEERWAY = (sys.executable, "-m", "peerway")
AS_ROOT = pytest.mark.skipif(
    os.geteuid() != 0
    or subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode != 0,
    reason="mounts need root and a mount namespace",
)


def storage(*words: object, folder: Path, inside: str = "") -> subprocess.CompletedProcess[str]:
    """Run it; `inside`: a shell's preparation in a mount namespace of its own."""
    command = [*PEERWAY, "storage", str(folder), *map(str, words)]
    if inside:
        command = ["unshare", "-m", "sh", "-c", f'{inside}; "$@"', "sh", *command]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def is_disk(folder: Path) -> bool:
    return (
        "tmpfs"
        not in subprocess.run(
            ["stat", "-f", "-c", "%T", folder], capture_output=True, text=True, check=True
        ).stdout
    )


@pytest.fixture(scope="module")
def run(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[list[records.Record], subprocess.CompletedProcess[str], Path]:
    """One measurement of everything, with each engine that is here."""
    folder = tmp_path_factory.mktemp("place")
    out = tmp_path_factory.mktemp("out") / "r.jsonl"
    words = (*SMALL, "--node-type", "t1", "--out", out)
    done = storage(*words, "--streams", "1,2", "--mode", "buffered,direct", folder=folder)
    assert done.returncode == 0, done.stderr
    if shutil.which("fio"):
        more = storage(
            "write",
            "read",
            *words,
            "--append",
            "--engine",
            "fio",
            "--streams",
            "1",
            "--mode",
            "fsync",
            folder=folder,
        )
        assert more.returncode == 0, more.stderr
    return records.read(out), done, folder


def test_all_tests_give_records_and_nothing_is_left(
    run: tuple[list[records.Record], subprocess.CompletedProcess[str], Path],
) -> None:
    found, _, folder = run
    assert {r.test for r in found if r.via == "posix"} >= {
        *("file_write_bw", "file_read_warm_here_bw", "file_random_read_latency", "file_random_write_latency"),
        *("file_create_mr", "file_stat_mr", "file_open_mr", "file_rename_mr", "file_remove_mr"),
    }
    assert {r.ranks for r in found} == {1, 2}
    assert {r.shape for r in found if r.test == "file_write_bw"} >= {
        "sequential 256 KiB",
        "sequential 256 KiB direct",
        "shared 256 KiB",
    }
    assert all(r.validated for r in found if r.via == "posix" or r.op == "read")
    assert {r.extra["node_type"] for r in found} == {"t1"}
    assert all(r.extra["file_system"] and r.extra["mount_options"] and r.extra["kernel"] for r in found)
    assert list(folder.iterdir()) == []


def test_states_are_proved_on_a_local_disk(
    run: tuple[list[records.Record], subprocess.CompletedProcess[str], Path],
) -> None:
    found, _, folder = run
    if not is_disk(folder):
        pytest.skip("the tests' folder is in memory")
    reads = [r for r in found if r.test.startswith("file_read")]
    assert {r.test for r in reads} == {"file_read_cold_bw", "file_read_warm_here_bw"}
    for r in reads:
        assert r.extra["state_proved"], r.extra
        whole = r.bytes * r.ranks
        assert r.extra["fetched_bytes"] >= whole if "cold" in r.test else r.extra["fetched_bytes"] == 0


def test_without_a_state_that_can_be_made_it_says_why(
    run: tuple[list[records.Record], subprocess.CompletedProcess[str], Path],
) -> None:
    assert "O_DIRECT passes the page cache by" in run[1].stderr


def test_files_in_memory_have_no_cold_state(tmp_path: Path) -> None:
    if not os.access("/dev/shm", os.W_OK):
        pytest.skip("no /dev/shm")
    place = Path("/dev/shm") / f"peerway-test-{os.getpid()}"
    place.mkdir()
    try:
        done = storage("write", "read", *SMALL, "--streams", "1", "--out", tmp_path / "r", folder=place)
        assert list(place.iterdir()) == []
    finally:
        place.rmdir()
    assert "the files of tmpfs are its page cache" in done.stderr
    assert {r.test for r in records.read(tmp_path / "r")} == {"file_write_bw", "file_read_warm_here_bw"}


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
        _, err = self.process.communicate(timeout=60)
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


def test_what_a_killed_run_left_is_removed_by_the_next_and_nothing_else(tmp_path: Path) -> None:
    Running(tmp_path).end(signal.SIGKILL)
    left = list(tmp_path.iterdir())
    assert [p.name.startswith("peerway-storage-") for p in left] == [True]
    foreign = left[0] / "thesis.tex"
    foreign.write_text("precious")
    (left[0] / "link").symlink_to(tmp_path / "elsewhere")
    done = storage("write", *SMALL, "--streams", "1", folder=tmp_path)
    assert done.returncode == 0
    assert "has files that no run made, and was left: " in done.stderr
    assert foreign.read_text() == "precious"
    assert {p.name for p in left[0].iterdir()} == {"thesis.tex", "link", "manifest.json"}
    foreign.unlink()
    (left[0] / "link").unlink()
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
    done = storage("write", *SMALL, "--streams", "1", folder=tmp_path)
    assert f"process {running.process.pid}" in done.stderr
    assert "may still run" in done.stderr
    assert running.process.poll() is None
    running.process.send_signal(signal.SIGCONT)
    running.end(signal.SIGTERM)


def test_of_another_host_it_is_not_known_whether_a_run_lives(tmp_path: Path) -> None:
    manifest = json.dumps(vars(Owner("elsewhere", "b", 1, 1)))
    operate("make", 10, place=tmp_path, token="0123456789ab", manifest=manifest)
    said = subprocess.run(
        [*PEERWAY, "storage", "clean", tmp_path], capture_output=True, text=True, check=True
    )
    assert "process 1 of elsewhere, which may still run" in said.stdout
    subprocess.run(
        [*PEERWAY, "storage", "clean", "--others", tmp_path], capture_output=True, text=True, check=True
    )
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_somebody_changed_is_noticed(tmp_path: Path) -> None:
    folder = RunFolder.make(tmp_path, 10)
    words = {
        "size": 1 << 20,
        "block": 1 << 16,
        "streams": 1,
        "depth": 4,
        "direct": 0,
        "fsync": 0,
        "shared": 0,
        "seed": 5,
    }
    path = folder.prefix("w1")
    operate("write", 10, path=path, **words)
    assert operate("read", 10, path=path, **words)["right"]
    with Path(f"{path}.0").open(
        "r+b"
    ) as file:  # between two stamps: only the comparison of all bytes sees it
        file.seek(300_000 // 512 * 512 + 100)
        file.write(b"x")
    assert operate("verify", 10, path=path, **words, overwritten=0)["wrong"] == 1
    with Path(f"{path}.0").open("r+b") as file:
        file.seek(512 * 7)
        file.write(b"somebody")
    assert not operate("read", 10, path=path, **words)["right"]
    assert folder.remove() == []


def test_no_two_sectors_are_alike_and_nothing_compresses(tmp_path: Path) -> None:
    import zlib

    folder = RunFolder.make(tmp_path, 10)
    words = {
        "size": 4 << 20,
        "block": 1 << 20,
        "streams": 2,
        "depth": 1,
        "direct": 0,
        "fsync": 0,
        "shared": 0,
    }
    operate("write", 10, path=folder.prefix("a"), seed=1, **words)
    operate("write", 10, path=folder.prefix("b"), seed=2, **words)
    data = b"".join(Path(f"{folder.prefix(name)}.0").read_bytes() for name in "ab")
    sectors = {data[at : at + 512] for at in range(0, len(data), 512)}
    assert len(sectors) == len(data) // 512
    assert len(zlib.compress(data, 1)) > 0.99 * len(data)
    folder.remove()


def test_it_never_leaves_the_folder(tmp_path: Path) -> None:
    with pytest.raises(OperationFailed, match="token="):
        operate("remove", 10, place=tmp_path, token="../../../tmp", begins="")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "aaaaaaaaaaaa.kept").write_text("kept")
    inner = tmp_path / "peerway-storage-aaaaaaaaaaaa"
    inner.mkdir()
    (inner / "aaaaaaaaaaaa.d").symlink_to(outside)  # a link of ours is removed, what it points to is not
    operate("remove", 10, place=tmp_path, token="aaaaaaaaaaaa", begins="")
    assert (outside / "aaaaaaaaaaaa.kept").exists()
    assert not inner.exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--size", "800000G", "--streams", "1"), "are needed; choose a smaller --size"),
        (("--engine", "gds"), "the engine gds/direct cannot be used"),
        (("--engine", "dd"), "there is no engine 'dd'"),
        (("--states", "lukewarm"), "'lukewarm' is none of cold"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_written(
    tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    if "gds" in words and Path("/proc/driver/nvidia").exists():
        pytest.skip("this machine has a GPU")
    done = storage(*words, folder=tmp_path)
    assert done.returncode != 0
    assert says in done.stderr
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
    done = storage(*SMALL[:4], *words, "--streams", "1", folder=tmp_path, inside=mount.format(tmp_path))
    assert done.returncode != 0
    assert says in done.stderr


FULL = """
import sys, subprocess, pathlib
from peerway.storage.folder import RunFolder
from peerway.storage.operation import operate, OperationFailed
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


# A file system whose daemon takes requests and answers none: whatever touches it waits.
HANGS = """
import ctypes, os, sys
fd = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={fd},rootmode=40000,user_id=0,group_id=0".encode()
if ctypes.CDLL(None, use_errno=True).mount(b"hangs", sys.argv[1].encode(), b"fuse.hangs", 0, options):
    sys.exit(os.strerror(ctypes.get_errno()))
os.set_inheritable(fd, False)
import subprocess
done = subprocess.run(sys.argv[2:], capture_output=True, text=True, timeout=60)
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
        timeout=60,
    )
    assert "did not end within 0.5 s, so it was given up: the mount may hang" in done.stderr, done.stderr
    assert done.returncode == 1


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


@pytest.fixture
def two_nodes(tmp_path: Path) -> list[str]:
    """Hosts that are this one, each reached by a shell."""
    agent = tmp_path / "agent"
    agent.write_text('#!/bin/sh\nshift\nexec sh -c "$*"\n')
    agent.chmod(0o755)
    return ["--hosts", "alpha,beta", "--launch-agent", str(agent)]


def test_nodes_measure_together_and_read_each_others_files(tmp_path: Path, two_nodes: list[str]) -> None:
    place = tmp_path / "place"
    place.mkdir()
    out = tmp_path / "r.jsonl"
    done = storage("write", "read", *SMALL, "--streams", "1", "--out", out, *two_nodes, folder=place)
    assert done.returncode == 0, done.stderr
    found = records.read(out)
    assert sum(r.test == "file_write_bw" for r in found) == 2
    assert all(r.validated and r.extra["nodes"] == 2 for r in found)
    elsewhere = [
        r for r in found if "warm_elsewhere" in str(r.extra.get("state_proof")) or "warm_elsewhere" in r.test
    ]
    assert len(elsewhere) == 2  # here both nodes have one page cache, which the evidence shows
    assert {r.test for r in elsewhere} <= {"file_read_warm_elsewhere_bw", "file_read_unknown_bw"}
    assert list(place.iterdir()) == []
