"""`peerway storage` on a file system that fails while it measures: every fault is provoked in the kernel, by
a file system of the test's own (failing_file_system.py).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FAILING = Path(__file__).with_name("failing_file_system.py")
LIMIT = 120  # a guard against hangs, not an expectation
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0
    or not os.access("/dev/fuse", os.R_OK | os.W_OK)
    or subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode != 0,
    reason="mounts need root, a mount namespace and /dev/fuse",
)


def measured(
    folder: Path, operation: str, why: str, first: int, *words: str
) -> subprocess.CompletedProcess[str]:
    """A measurement on a file system whose operation fails from a byte, or a number of calls, on."""
    command = [sys.executable, "-m", "peerway", "storage", str(folder), *(words or ("write", "read"))]
    command += ["--size", "2M", "--block", "256K", "--streams", "1", "--mode", "fsync"]
    arguments = [str(folder), operation, why, str(first)]
    return subprocess.run(
        ["unshare", "-m", sys.executable, str(FAILING), *arguments, *command],
        capture_output=True, text=True, check=False, timeout=LIMIT,
    )  # fmt: skip


def test_the_file_system_of_these_tests_is_right_where_nothing_fails(tmp_path: Path) -> None:
    done = measured(tmp_path, "write", "EIO", 1 << 40)
    assert done.returncode == 0, done.stderr
    assert "file_read_cold_bw" in done.stdout
    assert done.stdout.splitlines()[-1] == "left: []"


LONG = pytest.mark.long


@pytest.mark.parametrize(
    ("operation", "why", "first", "says"),
    [
        ("write", "EIO", 1_000_000, "(EIO) after 1 MiB; the device or the server failed"),
        pytest.param(
            "write",
            "ESTALE",
            1_000_000,
            "(ESTALE) after 1 MiB; the server no longer knows the file",
            marks=LONG,
        ),
        pytest.param("write", "EDQUOT", 1_000_000, "(EDQUOT) after 1 MiB; your quota is used up", marks=LONG),
        ("write", "ENOSPC", 1_000_000, "(ENOSPC) after 1 MiB; the file system is full"),
        pytest.param("write", "EROFS", 1_000_000, "(EROFS) after 1 MiB; it is mounted read-only", marks=LONG),
        ("fsync", "EIO", 1, "fsync: Input/output error (EIO); the device or the server failed"),
        pytest.param(
            "fsync", "EDQUOT", 1, "fsync: Disk quota exceeded (EDQUOT); your quota is used up", marks=LONG
        ),
        # where the quota is of files, or is told only when the file is closed, as NFS does
        ("mkdir", "EDQUOT", 0, ": mkdir: Disk quota exceeded (EDQUOT); your quota is used up"),
        (
            "create",
            "EDQUOT",
            0,
            ": write of the manifest: Disk quota exceeded (EDQUOT); your quota is used up",
        ),
        pytest.param(
            "create",
            "EDQUOT",
            1,
            "write: open: Disk quota exceeded (EDQUOT); your quota is used up",
            marks=LONG,
        ),
        ("close", "EDQUOT", 1, "write: close: Disk quota exceeded (EDQUOT); your quota is used up"),
    ],
)
def test_a_write_that_fails_says_why_and_leaves_nothing(
    tmp_path: Path, operation: str, why: str, first: int, says: str
) -> None:
    done = measured(tmp_path, operation, why, first)
    assert done.returncode == 1
    assert says in done.stderr
    assert "file_write_bw" not in done.stdout  # half a file is no measurement
    assert done.stdout.splitlines()[-1] == "left: []"


def test_a_quota_of_files_that_is_used_up_in_the_middle_leaves_none(tmp_path: Path) -> None:
    done = measured(tmp_path, "create", "EDQUOT", 50, "metadata", "--small-files", "200")
    assert done.returncode == 1
    assert "metadata with 1 stream was not measured: " in done.stderr
    assert "(EDQUOT); your quota is used up" in done.stderr
    assert done.stdout.splitlines()[-1] == "left: []"


@pytest.mark.parametrize("why", ["EIO", pytest.param("ESTALE", marks=LONG)])
def test_a_read_that_fails_is_not_taken_for_a_file_that_somebody_changed(tmp_path: Path, why: str) -> None:
    done = measured(tmp_path, "read", why, 1_000_000)
    assert done.returncode == 1
    assert "file_write_bw" in done.stdout  # which was measured, and is kept
    assert (
        "read cold by posix (1 stream of 2 MiB, a file for each, fsync, blocks of 256 KiB) was not measured: "
        in done.stderr
    )
    assert f"({why}) after 1 MiB" in done.stderr
    assert "did somebody change them" not in done.stderr
    assert "or could not be compared with it" in done.stderr
    assert done.stdout.splitlines()[-1] == "left: []"


def test_a_server_that_goes_away_in_the_middle_is_given_up(tmp_path: Path) -> None:
    done = measured(tmp_path, "write", "hang", 1_000_000, "write", "--limit", "1")
    assert done.returncode == 1
    assert "write did not end within 1 s, so it was given up: the mount may hang" in done.stderr
    assert f"`peerway storage clean {tmp_path}` does it later" in done.stderr


QUOTA = """
set -e
rm -f "$0.img"; truncate -s 256M "$0.img"
mkfs.btrfs -q "$0.img"
mount -o loop "$0.img" "$0"
btrfs quota enable "$0"
btrfs -q subvolume create "$0/mine"
btrfs qgroup limit 4M "$0/mine"
set +e
"$@"
status=$?
echo "left: $(ls -A "$0/mine")"
umount "$0"
exit $status
"""


def why_no_quota() -> str:
    """Why no real file system with a quota can be made here; "" if it can."""
    if "btrfs" not in Path("/proc/filesystems").read_text().split():
        return "this kernel has no btrfs"
    if not all(map(shutil.which, ("mkfs.btrfs", "btrfs"))):
        return "mkfs.btrfs is not installed (apt-get install btrfs-progs)"
    return "" if Path("/dev/loop-control").exists() else "no loop devices"


@pytest.mark.skipif(bool(why_no_quota()), reason=why_no_quota())
def test_a_real_quota_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    """A quota of btrfs, while the file system itself has space."""
    place = tmp_path / "btrfs"
    place.mkdir()
    measure = [sys.executable, "-m", "peerway", "storage", str(place / "mine"), "write", "--streams", "1"]

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = ["unshare", "-m", "sh", "-c", QUOTA, str(place), *measure, *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT)

    within = run("--size", "1M", "--mode", "fsync")
    assert within.returncode == 0, within.stderr
    for mode in ("buffered", "fsync", "direct"):
        beyond = run("--size", "32M", "--mode", mode)
        assert beyond.returncode == 1, beyond.stdout + beyond.stderr
        assert "Disk quota exceeded (EDQUOT)" in beyond.stderr
        assert "your quota is used up" in beyond.stderr
        assert "file_write_bw" not in beyond.stdout
        assert beyond.stdout.splitlines()[-1] == "left: "
