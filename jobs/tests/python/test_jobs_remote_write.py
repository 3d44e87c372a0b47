"""Remote write: what a database reads from a request is what the batches have."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator

import pytest

from peerway_jobs.batch import Batch, Samples
from peerway_jobs.store import remote_write
from peerway_jobs.store.remote_write import RemoteWrite
from peerway_jobs.store.samples import Filed, columns, time_ms

T0 = 1_795_300_000_000
Series = dict[tuple[tuple[str, str], ...], list[tuple[float, int]]]


def varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while content[at] & 128:
        value, shift, at = value | (content[at] & 127) << shift, shift + 7, at + 1
    return value | content[at] << shift, at + 1


def fields(content: bytes) -> Iterator[tuple[int, bytes | int]]:
    """The fields of a message of protocol buffers."""
    at = 0
    while at < len(content):
        key, at = varint(content, at)
        if key & 7 == 0:
            value, at = varint(content, at)
            yield key >> 3, value
            continue
        length, at = (8, at) if key & 7 == 1 else varint(content, at)
        yield key >> 3, content[at : at + length]
        at += length
        assert at <= len(content)


def read(request: bytes) -> Series:
    """The series of a request by their labels."""
    series: Series = defaultdict(list)
    for number, one in fields(request):
        assert number == 1
        assert isinstance(one, bytes)
        labels, samples = [], []
        for kind, part in fields(one):
            assert isinstance(part, bytes)
            values = dict(fields(part))
            if kind == 1:
                labels.append((values[1].decode(), values[2].decode()))  # type: ignore[union-attr]
            else:
                samples.append((struct.unpack("<d", values[1])[0], int(values[2])))  # type: ignore[arg-type]
        assert labels == sorted(labels)
        series[tuple(labels)] += samples
    return series


def of(batches: list[Filed]) -> Series:
    series: Series = defaultdict(list)
    for filed in sorted(batches, key=time_ms):
        for _, device, metric, value in columns(filed):
            labels = (("__name__", metric), ("device", device), ("node", filed.batch.node))
            series[labels].append((value, time_ms(filed)))
    return series


def filed(node: str, seq: int, samples: dict[str, Samples], shift: int = 0) -> Filed:
    return Filed(Batch(node, "0" * 32, seq, "", T0 + seq * 10_000, 0, samples), shift, b"", 10_000)


def gpus(*names: str, use: list[float | int | None]) -> Samples:
    return Samples(
        list(names), {"gpu_utilization_ratio": use, "gpu_memory_used_bytes": [1 << 40] * len(names)}
    )


BATCHES = {
    "nodes and devices of equal names": [
        filed(f"n{n}", 1, {"gpu": gpus(f"GPU-{n}", f"GPU-{n + 5}", use=[0.25 * n, 1])}) for n in range(3)
    ],
    "names of several lengths": [
        filed(
            "n1", 1, {"core": Samples([str(n) for n in range(12)], {"core_busy_seconds_total": [*range(12)]})}
        ),
        filed("a-longer-name.cluster", 1, {"gpu": gpus("GPU-1", "x" * 128, use=[0.5, 0])}),
    ],
    "figures that are absent": [
        filed("n1", 1, {"gpu": gpus("GPU-1", "GPU-2", use=[None, 0.5])}),
        filed("n2", 1, {"gpu": gpus("GPU-3", "GPU-4", use=[0.5, None])}),
        filed("n3", 1, {"gpu": gpus("GPU-5", use=[0])}),
    ],
    "one node several times, the later first, and a clock that is wrong": [
        filed("n1", seq, {"node": Samples(["node"], {"node_running_threads": [seq]})}, shift)
        for seq, shift in ((3, 0), (1, -500), (2, 0))
    ],
}


@pytest.mark.parametrize("batches", BATCHES.values(), ids=BATCHES)
def test_a_request_has_what_the_batches_have(batches: list[Filed]) -> None:
    encoder = RemoteWrite()
    for _ in range(2):  # the second time from shapes that are kept
        assert read(encoder.request(batches)) == of(batches)


def test_there_is_no_request_without_a_figure() -> None:
    nothing = gpus("GPU-1", use=[None])
    nothing.values["gpu_memory_used_bytes"] = [None]
    empty = Samples([], {"gpu_utilization_ratio": []})
    assert RemoteWrite().request([filed("n1", 1, {"gpu": nothing, "core": empty}), filed("n2", 1, {})]) == b""


def test_shapes_take_no_more_memory_than_they_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_write, "_MOST_BYTES", 20_000)
    encoder = RemoteWrite()
    for count in range(1, 30):  # the last alone is larger than all that may be kept
        batches = [filed("n1", 1, {"gpu": gpus(*(f"GPU-{n:02}" for n in range(count)), use=[0.5] * count)})]
        assert read(encoder.request(batches)) == of(batches)
        assert encoder._bytes == sum(each.nbytes for each in encoder._shapes.values())
        assert encoder._bytes <= 20_000
