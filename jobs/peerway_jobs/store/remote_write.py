"""Encodes batches for Prometheus' remote write 1.0: three messages of protocol buffers with two fields each.

    WriteRequest{timeseries: [{labels: [{name, value}], samples: [{value, timestamp}]}]}

3,000 nodes send 110,000 samples a second. Batches of the same devices and metrics differ only in the node's
name, the time and the values, so the rest is encoded once, and these are written into a copy of it.
"""

from __future__ import annotations

import struct
import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from peerway_jobs.batch import Samples
from peerway_jobs.store.samples import Filed, time_ms

_MOST_BYTES = 32 << 20  # of all shapes that are kept
_STAMP = 6  # bytes of a time in ms, from 1971 to 2109
_SAMPLE = b"\x12\x10\x09" + bytes(8) + b"\x10" + bytes(_STAMP)  # a value and a time, to be written over
_FROM_END = {"value": len(_SAMPLE) - 3, "stamp": _STAMP}  # where they begin, before the end of a series

_Bytes = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(slots=True)
class _Shape:
    """A part of a batch without its names, values and time."""

    text: _Bytes
    ends: np.ndarray[Any, np.dtype[np.int64]]  # of the series of each sample, as a column


class RemoteWrite:
    """Encodes requests; threads may share it."""

    def __init__(self) -> None:
        self._shapes: OrderedDict[tuple[object, ...], _Shape] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def request(self, batches: Iterable[Filed]) -> bytes:
        """The WriteRequest of all samples of these batches; empty if there are none."""
        parts: list[bytes] = []
        for filed in sorted(batches, key=time_ms):  # samples of a series come in the order of their times
            stamp, node = _varint(time_ms(filed)), filed.batch.node.encode()
            if len(stamp) != _STAMP:
                raise ValueError(f"a batch of {time_ms(filed)} ms since 1970 cannot be written")
            parts += [self._part(node, stamp, part) for part in filed.batch.samples.values()]
        return b"".join(parts)

    def _part(self, node: bytes, stamp: bytes, part: Samples) -> bytes:
        values = np.array(list(part.values.values()), "<f8").reshape(-1)  # None becomes NaN
        absent = np.isnan(values)
        if not values.size or absent.all():
            return b""
        names = [device.encode() for device in part.devices]
        same = len({*map(len, names)}) == 1  # then other nodes have the same shape, whatever their names are
        shape = self._shape(
            len(node), tuple(part.values), (len(names[0]), len(names)) if same else tuple(names),
            absent.tobytes() if absent.any() else b"",
        )  # fmt: skip
        text = shape.text.copy()
        before_node = len(_SAMPLE) + len(node)
        _put(text, shape.ends - before_node, node)
        if same:
            devices = np.frombuffer(b"".join(names) * len(part.values), np.uint8).reshape(len(values), -1)
            before = len(_SAMPLE) + len(_label(b"node", bytes(len(node)))) + devices.shape[1]
            _put(text, shape.ends - before, devices[~absent])
        _put(text, shape.ends - _FROM_END["value"], values[~absent].view(np.uint8).reshape(-1, 8))
        _put(text, shape.ends - _FROM_END["stamp"], stamp)
        return text.tobytes()

    def _shape(
        self, node: int, metrics: tuple[str, ...], devices: tuple[int, int] | tuple[bytes, ...], absent: bytes
    ) -> _Shape:
        """The shape for a node's name of that length, and devices of these names or of one length."""
        key = (node, metrics, devices, absent)
        with self._lock:
            if key in self._shapes:
                self._shapes.move_to_end(key)
                return self._shapes[key]
        names = [bytes(devices[0])] * devices[1] if isinstance(devices[0], int) else devices
        of_node = _label(b"node", bytes(node))
        # The protocol requires labels sorted by name.
        series = [
            _field(1, _label(b"__name__", metric.encode()) + _label(b"device", name) + of_node + _SAMPLE)
            for metric in metrics
            for name in names
        ]
        if absent:
            series = [text for text, missing in zip(series, absent, strict=True) if not missing]
        ends = np.cumsum([len(text) for text in series]).reshape(-1, 1)
        shape = _Shape(np.frombuffer(b"".join(series), np.uint8), ends)
        with self._lock:
            self._shapes[key] = shape
            self._bytes += shape.text.nbytes + ends.nbytes
            while self._bytes > _MOST_BYTES:
                _, oldest = self._shapes.popitem(last=False)
                self._bytes -= oldest.text.nbytes + oldest.ends.nbytes
        return shape


def _put(text: _Bytes, begins: np.ndarray[Any, np.dtype[np.int64]], content: bytes | _Bytes) -> None:
    """Write at each of these places: the same bytes, or each a row of them."""
    rows = np.frombuffer(content, np.uint8) if isinstance(content, bytes) else content
    text[begins + np.arange(rows.shape[-1])] = rows


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
