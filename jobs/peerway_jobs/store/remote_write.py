"""Encodes batches for Prometheus' remote write 1.0: three messages of protocol buffers with two fields each.

    WriteRequest{timeseries: [{labels: [{name, value}], samples: [{value, timestamp}]}]}

3,000 nodes send 110,000 samples a second. Batches of the same devices and metrics differ only in the node's
name, the time and the values, so the rest is encoded once, and these are written into a copy of it.
"""

from __future__ import annotations

import struct
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain
from typing import Any

import numpy as np

from peerway_jobs.batch import Samples
from peerway_jobs.store.samples import Filed, time_ms

_MOST_BYTES = 64 << 20  # of all shapes that are kept
_STAMP = 6  # bytes of a time in ms, from 1971 to 2109
_SAMPLE = b"\x12\x10\x09" + bytes(8) + b"\x10" + bytes(_STAMP)  # a value and a time, to be written over
_VALUE = len(_SAMPLE) - 3  # bytes from the value's first to the end of a series

_Bytes = np.ndarray[Any, np.dtype[np.uint8]]
_Places = np.ndarray[Any, np.dtype[np.intp]]
# Of a part of a batch: its metrics, the names of its devices or their length and number, and which figures
# are absent.
_PartKey = tuple[tuple[str, ...], tuple[int, int] | tuple[bytes, ...], bytes]
_Key = tuple[int, _PartKey | tuple[_PartKey, ...]]  # the length of the node's name, one part or several


@dataclass(slots=True)
class _Shape:
    """The series of some samples without names of equal length, values and times, and the places of these."""

    samples: int
    text: _Bytes
    nodes: _Places
    devices: _Places
    values: _Places
    stamps: _Places

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        arrays = (self.text, self.nodes, self.devices, self.values, self.stamps)
        return sum(each.nbytes for each in arrays)

    def filled(self, node: bytes, devices: bytes, values: _Bytes, stamp: bytes) -> _Bytes:
        """A copy with these."""
        text = self.text.copy()
        text[self.nodes] = np.frombuffer(node * self.samples, np.uint8)
        text[self.devices] = np.frombuffer(devices, np.uint8)
        text[self.values] = values
        text[self.stamps] = np.frombuffer(stamp * self.samples, np.uint8)
        return text


class RemoteWrite:
    """Encodes requests; threads may share it."""

    def __init__(self) -> None:
        self._shapes: OrderedDict[_Key, _Shape] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def request(self, batches: Iterable[Filed]) -> bytes:
        """The WriteRequest of all samples of these batches; empty if there are none."""
        parts: list[memoryview] = []
        for filed in sorted(batches, key=time_ms):  # samples of a series come in the order of their times
            stamp = _varint(time_ms(filed))
            if len(stamp) != _STAMP:
                raise ValueError(f"a batch of {time_ms(filed)} ms since 1970 cannot be written")
            if filed.batch.samples:
                series = self._series(filed.batch.node.encode(), stamp, filed.batch.samples.values())
                parts.append(series.data)
        return b"".join(parts)

    def _series(self, node: bytes, stamp: bytes, parts: Iterable[Samples]) -> _Bytes:
        columns = [column for part in parts for column in part.values.values()]
        values = np.array([*chain.from_iterable(columns)], "<f8")  # None becomes NaN
        absent = np.isnan(values)
        is_whole = not absent.any()
        keys: list[_PartKey] = []
        devices: list[bytes] = []
        begin = 0
        for part in parts:
            names = [device.encode() for device in part.devices]
            end = begin + len(names) * len(part.values)
            missing = b"" if is_whole else absent[begin:end].tobytes()
            begin = end
            # If so, other nodes have the same shape, whatever their names are.
            same = len({*map(len, names)}) == 1
            keys.append((tuple(part.values), (len(names[0]), len(names)) if same else tuple(names), missing))
            if same:
                several = names * len(part.values)
                if missing:
                    several = [name for name, gone in zip(several, missing, strict=True) if not gone]
                devices += several
        shape = self._shape(len(node), tuple(keys))
        return shape.filled(node, b"".join(devices), values[~absent].view(np.uint8), stamp)

    def _shape(self, node: int, keys: tuple[_PartKey, ...]) -> _Shape:
        """The shape of a batch with these parts, for a node's name of that length."""
        return self._kept((node, keys), lambda: _joined([self._part(node, each) for each in keys]))

    def _part(self, node: int, key: _PartKey) -> _Shape:
        return self._kept((node, key), lambda: _shape_of(node, *key))

    def _kept(self, key: _Key, make: Callable[[], _Shape]) -> _Shape:
        with self._lock:
            if key in self._shapes:
                self._shapes.move_to_end(key)
                return self._shapes[key]
        shape = make()
        with self._lock:
            before = self._shapes.pop(key, None)  # of another thread
            self._shapes[key] = shape
            self._bytes += shape.nbytes - (before.nbytes if before else 0)
            while self._bytes > _MOST_BYTES:
                _, oldest = self._shapes.popitem(last=False)
                self._bytes -= oldest.nbytes
        return shape


def _shape_of(
    node: int, metrics: tuple[str, ...], devices: tuple[int, int] | tuple[bytes, ...], absent: bytes
) -> _Shape:
    """The shape of one part of a batch."""
    length = 0  # of names that are to be filled in
    if devices and isinstance(devices[0], int):
        length, count = devices
        names: list[bytes] = [bytes(length)] * int(count)
    else:
        names = [name for name in devices if isinstance(name, bytes)]
    of_node = _label(b"node", bytes(node))
    # The protocol requires labels sorted by name.
    series = [
        _field(1, _label(b"__name__", metric.encode()) + _label(b"device", name) + of_node + _SAMPLE)
        for metric in metrics
        for name in names
    ]
    if absent:
        series = [text for text, missing in zip(series, absent, strict=True) if not missing]
    ends = np.cumsum([len(text) for text in series], dtype=np.intp).reshape(-1, 1)

    def places(before_end: int, size: int) -> _Places:
        return (ends - before_end + np.arange(size)).reshape(-1)

    return _Shape(
        len(series),
        np.frombuffer(b"".join(series), np.uint8),
        places(len(_SAMPLE) + node, node),
        places(len(_SAMPLE) + len(of_node) + length, length),
        places(_VALUE, 8),
        places(_STAMP, _STAMP),
    )


def _joined(shapes: Sequence[_Shape]) -> _Shape:
    """One shape of several, one after another."""
    begins = [0, *accumulate(each.text.size for each in shapes)]

    def places(of: Callable[[_Shape], _Places]) -> _Places:
        return np.concatenate([of(each) + begin for each, begin in zip(shapes, begins, strict=False)])

    return _Shape(
        sum(each.samples for each in shapes),
        np.concatenate([each.text for each in shapes]),
        places(lambda each: each.nodes),
        places(lambda each: each.devices),
        places(lambda each: each.values),
        places(lambda each: each.stamps),
    )


@lru_cache(4096)
def _label(name: bytes, value: bytes) -> bytes:
    return _field(1, _field(1, name) + _field(2, value))


def _field(number: int, content: bytes) -> bytes:
    return struct.pack("B", number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
