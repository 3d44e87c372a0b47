"""The engine gds without a GPU: the process that moves the bytes, with doubles of CuPy and KvikIO on host
memory, and what it says of GPUDirect Storage.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from peerway.storage.engines.gds_child import active, moved

DOUBLES = {
    "cupy/__init__.py": """
import numpy
from numpy import uint8
from . import cuda
class Array(numpy.ndarray):
    @property
    def data(self):
        return type("Pointer", (), {"ptr": self.ctypes.data})
def zeros(size, kind):
    return numpy.zeros(size, kind).view(Array)
def asnumpy(array):
    return numpy.asarray(array)
class random:
    class RandomState:
        def __init__(self, seed):
            self._random = numpy.random.RandomState(seed)
        def randint(self, low, high, size, dtype):
            return self._random.randint(low, high, size, dtype=dtype).view(Array)
""",
    "cupy/cuda.py": """
import ctypes
class Device:
    def __init__(self, number): pass
    def use(self): pass
class alloc_pinned_memory:
    def __init__(self, size):
        self._kept = ctypes.create_string_buffer(size)
        self.ptr = ctypes.addressof(self._kept)
class runtime:
    memcpyHostToDevice, memcpyDeviceToHost = 1, 2
    @staticmethod
    def memcpy(to, source, size, kind):
        ctypes.memmove(to, source, size)
""",
    # as of KvikIO 26.10: neither of the two modules comes with the package itself
    "kvikio/__init__.py": """
import enum, os
__version__ = "26.10.00"
class CompatMode(enum.IntEnum):
    OFF, ON, AUTO = 0, 1, 2
class CuFile:
    def __init__(self, name, flags="r"):
        from kvikio import defaults
        if defaults.get("compat_mode") == CompatMode.OFF and not os.environ.get("GDS"):
            raise RuntimeError("cuFile: GPUDirect Storage is not supported on this file")
        self._file = open(name, {"w": "w+b", "r": "rb", "r+": "r+b"}[flags], buffering=0)
    def __enter__(self):
        return self
    def __exit__(self, *_):
        self._file.close()
    def raw_write(self, buffer, size=None, file_offset=0, dev_offset=0):
        return os.pwrite(self._file.fileno(), bytes(buffer), file_offset)
    def raw_read(self, buffer, size=None, file_offset=0, dev_offset=0):
        return os.preadv(self._file.fileno(), [memoryview(buffer).cast("B")], file_offset)
""",
    "kvikio/defaults.py": """
_kept = {"compat_mode": 2}
def set(name, value): _kept[name] = value
def get(name): return _kept[name]
""",
    "kvikio/cufile_driver.py": """
import os
def get(name):
    assert name == "is_gds_available"
    return bool(os.environ.get("GDS"))
""",
}


@pytest.fixture
def doubles(tmp_path: Path) -> Path:
    folder = tmp_path / "doubles"
    for name, text in DOUBLES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def child(
    doubles: Path, setting: str, operation: str, path: Path, gds: bool = False, **more: Any
) -> subprocess.CompletedProcess[str]:
    asked = {"setting": setting, "operation": operation, "path": str(path), "seed": 7, "size": 1 << 20}
    asked |= {"block": 1 << 18, "streams": 2, "shared": False, "first": 0, **more}
    return subprocess.run(
        [sys.executable, "-m", "peerway.storage.engines.gds_child", json.dumps(asked)],
        env={**os.environ, "PYTHONPATH": str(doubles), **({"GDS": "1"} if gds else {})},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize("setting", ["direct", "compat", "bounce"])
@pytest.mark.parametrize("shared", [False, True])
def test_bytes_go_to_the_file_and_back(doubles: Path, tmp_path: Path, setting: str, shared: bool) -> None:
    for operation in ("write", "read"):
        done = child(doubles, setting, operation, tmp_path / "f", gds=True, shared=shared)
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        assert answer["right"] is True
        assert answer["ns"] > 0
    sizes = [path.stat().st_size for path in sorted(tmp_path.glob("f.*"))]
    assert sizes == ([2 << 20] if shared else [1 << 20] * 2)


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
    ("direct", "available", "before", "after", "found"),
    [
        (True, True, 3, 7, True),
        (True, True, 3, 3, False),  # cuFile fell back on POSIX, and said nothing
        (True, True, None, None, "unknown"),
        (True, False, 3, 7, False),
        (False, True, 3, 7, False),  # somebody else's
    ],
)
def test_gds_is_active_only_where_that_is_seen(
    direct: bool, available: bool, before: int | None, after: int | None, found: object
) -> None:
    assert active(direct, available, before, after)["gds_active"] == found


def test_the_study_on_a_gpu_has_every_setting_beside_cat(doubles: Path, tmp_path: Path) -> None:
    study = Path(__file__).resolve().parents[2] / "apps" / "storage" / "gds.py"
    done = subprocess.run(
        [
            sys.executable, study, "--folder", tmp_path, "--size", str(1 << 20), "--block", str(1 << 18),
            "--streams", "1", "--rounds", "2",
        ],
        env={**os.environ, "PYTHONPATH": str(doubles)},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    found = {(line["setting"], line["operation"]): line for line in lines}
    for setting in ("cat", "bounce", "compat"):
        for operation in ("write", "read_cold", "read_warm"):
            if (setting, operation) != ("cat", "write"):
                assert found[setting, operation]["right"] is True
                assert len(found[setting, operation]["MBps_all"]) == 2
    assert "not supported" in found["direct", "write"]["error"]  # told, and no failure of the study
    assert not list(tmp_path.glob("peerway-gds-*"))
