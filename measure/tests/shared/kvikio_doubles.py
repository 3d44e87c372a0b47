"""Doubles of CuPy and KvikIO on host memory, for tests of the engine gds where there is no GPU."""

from __future__ import annotations

from pathlib import Path

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
        open("cufile.log", "a").close()  # as cuFile does
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


def make(folder: Path) -> Path:
    """Write the doubles into a folder for PYTHONPATH."""
    for name, text in DOUBLES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder
