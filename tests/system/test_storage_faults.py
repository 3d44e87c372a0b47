"""`peerway storage` on a file system that fails while it measures: every fault is provoked in the kernel, by
a file system of the test's own (failing_file_system.py).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FAILING = Path(__file__).with_name("failing_file_system.py")
LIMIT = 120  # a guard against hangs, no expectation
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0
    or not os.access("/dev/fuse", os.R_OK | os.W_OK)
    or subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode != 0,
    reason="mounts need root, a mount namespace and /dev/fuse",
)


def measured(
    folder: Path, operation: str, why: str, first: int, *words: str
) -> subprocess.CompletedProcess[str]:
    """A measurement on a file system on which an operation fails from a byte on."""
    command = [sys.executable, "-m", "peerway", "storage", str(folder), "write", "read", "--size", "2M"]
    command += ["--block", "256K", "--streams", "1", "--mode", "fsync", *words]
    told = [str(folder), operation, why, str(first)]
    return subprocess.run(
        ["unshare", "-m", sys.executable, str(FAILING), *told, *command],
        capture_output=True, text=True, check=False, timeout=LIMIT,
    )  # fmt: skip


def test_the_file_system_of_these_tests_is_right_where_nothing_fails(tmp_path: Path) -> None:
    done = measured(tmp_path, "write", "EIO", 1 << 40)
    assert done.returncode == 0, done.stderr
    assert "file_read_cold_bw" in done.stdout
    assert done.stdout.splitlines()[-1] == "left: []"


@pytest.mark.parametrize(
    ("operation", "why", "says"),
    [
        ("write", "EIO", "(EIO) after 1 MiB; the device or the server failed"),
        ("write", "ESTALE", "(ESTALE) after 1 MiB; the server no longer knows the file"),
        ("write", "EDQUOT", "(EDQUOT) after 1 MiB; your quota is used up"),
        ("write", "ENOSPC", "(ENOSPC) after 1 MiB; the file system is full"),
        ("write", "EROFS", "(EROFS) after 1 MiB; it is mounted read-only"),
        ("fsync", "EIO", "Input/output error (EIO); the device or the server failed"),
    ],
)
def test_a_write_that_fails_says_why_and_leaves_nothing(
    tmp_path: Path, operation: str, why: str, says: str
) -> None:
    done = measured(tmp_path, operation, why, 1_000_000)
    assert done.returncode == 1
    assert says in done.stderr
    assert done.stdout.splitlines()[-1] == "left: []"


@pytest.mark.parametrize("why", ["EIO", "ESTALE"])
def test_a_read_that_fails_is_not_taken_for_a_file_that_somebody_changed(tmp_path: Path, why: str) -> None:
    done = measured(tmp_path, "read", why, 1_000_000)
    assert done.returncode == 1
    assert "file_write_bw" in done.stdout  # which was measured, and is kept
    assert "read cold by posix (1 streams of 2 MiB, a file for each, fsync) was not measured: " in done.stderr
    assert f"({why}) after 1 MiB" in done.stderr
    assert "did somebody change them" not in done.stderr
    assert "or could not be compared with it" in done.stderr
    assert done.stdout.splitlines()[-1] == "left: []"


def test_a_server_that_goes_away_in_the_middle_is_given_up(tmp_path: Path) -> None:
    done = measured(tmp_path, "write", "hang", 1_000_000, "--limit", "1")
    assert done.returncode == 1
    assert "write did not end within 1 s, so it was given up: the mount may hang" in done.stderr
    assert f"`peerway storage clean {tmp_path}` does it later" in done.stderr
