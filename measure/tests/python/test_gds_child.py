"""The process of the engine gds: it moves the bytes, here with doubles of CuPy and KvikIO on host memory, and
says what was used of GPUDirect Storage.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import kvikio_doubles
import pytest

from peerway_measure.storage.engines.gds_child import active, moved


@pytest.fixture
def doubles(tmp_path: Path) -> Path:
    return kvikio_doubles.make(tmp_path / "doubles")


def child(
    doubles: Path, setting: str, operation: str, path: Path, gds: bool = False, **more: Any
) -> subprocess.CompletedProcess[str]:
    request = {"setting": setting, "operation": operation, "path": str(path), "seed": 7, "size": 1 << 20}
    request |= {
        "block": 1 << 18,
        "streams": 2,
        "shared": False,
        "first": 0,
        "mode": "buffered",
        "log": str(doubles),
        **more,
    }
    return subprocess.run(
        [sys.executable, "-m", "peerway_measure.storage.engines.gds_child", json.dumps(request)],
        env={**os.environ, "PYTHONPATH": str(doubles), **({"GDS": "1"} if gds else {})},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("setting", "shared"),
    [
        pytest.param(setting, shared, marks=[] if shared == (at % 2 == 0) else [pytest.mark.long])
        for at, setting in enumerate(("direct", "compat", "bounce"))
        for shared in (False, True)
    ],
)
def test_bytes_go_to_the_file_and_back(doubles: Path, tmp_path: Path, setting: str, shared: bool) -> None:
    for operation in ("write", "read"):
        done = child(doubles, setting, operation, tmp_path / "f", gds=True, shared=shared)
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        assert answer["right"] is True
        assert answer["ns"] > 0
        assert answer["fetched"] is None if setting == "direct" else answer["fetched"] >= 0
    sizes = [path.stat().st_size for path in sorted(tmp_path.glob("f.*"))]
    assert sizes == ([2 << 20] if shared else [1 << 20] * 2)


def test_a_write_with_fsync_has_one(doubles: Path, tmp_path: Path) -> None:
    """Seen by a double of the system call that fails."""
    site = doubles / "sitecustomize.py"
    site.write_text("import os\ndef fsync(file): raise OSError(5, 'fsync was called')\nos.fsync = fsync\n")
    plain = child(doubles, "compat", "write", tmp_path / "f")
    assert plain.returncode == 0, plain.stderr
    synced = child(doubles, "compat", "write", tmp_path / "f", mode="fsync")
    assert "fsync was called" in synced.stderr
    assert child(doubles, "compat", "read", tmp_path / "f", mode="fsync").returncode == 0


def test_direct_fails_where_it_cannot_be_and_the_others_do_not_claim_it(
    doubles: Path, tmp_path: Path
) -> None:
    refused = child(doubles, "direct", "write", tmp_path / "f")
    assert refused.returncode != 0
    assert "GPUDirect Storage is not supported on this file" in refused.stderr
    for setting in ("compat", "bounce"):
        done = child(doubles, setting, "write", tmp_path / "f", gds=True)
        assert json.loads(done.stdout)["extra"]["gds_active"] is False


STATISTICS = """GDS Version: 1.7.0.149
NVFS statistics(ver: 4.0)
IO stats: {}, peer IO stats: Disabled
Reads\t\t\t\t: n={n} ok={n} err=0 readMiB=0 io_state_err=0
Reads\t\t\t\t: Bandwidth(MiB/s)=0 Avg-Latency(usec)=0
Writes\t\t\t\t: n=3 ok=3 err=0 writeMiB=0 io_state_err=0 pg-cache=0
Sparse Reads\t\t\t: n=9 io=0 holes=0 pages=0
"""


def test_what_nvidia_fs_has_counted() -> None:
    assert moved(STATISTICS.format("Enabled", n=4)) == 7
    assert moved(STATISTICS.format("Disabled", n=4)) is None
    assert moved("") is None


@pytest.mark.parametrize(
    ("direct", "available", "before", "after", "expected"),
    [
        (True, True, 3, 7, True),
        (True, True, 3, 3, False),  # cuFile fell back on POSIX, and said nothing
        (True, True, None, None, "unknown"),
        (True, False, 3, 7, False),
        (False, True, 3, 7, False),  # somebody else's
    ],
)
def test_gds_is_active_only_where_that_is_seen(
    direct: bool, available: bool, before: int | None, after: int | None, expected: object
) -> None:
    assert active(direct, available, before, after)["gds_active"] == expected
