"""A batch survives encoding and decoding, and nothing else is accepted as a batch."""

from __future__ import annotations

import json
import random
import re
import zlib
from typing import Any

import pytest

from peerway_jobs.batch import VERSION, Batch, Facts, Gpu, Interval, Note, Samples, encode
from peerway_jobs.batch_check import (
    MOST_REASONS,
    MOST_TEXT,
    NOTES,
    BadBatch,
    decode,
    is_device_name,
    is_node_name,
)
from peerway_jobs.clock import Sent, correction_ms
from peerway_jobs.frames import (
    MOST_BODY,
    MOST_FRAMES,
    MOST_PAYLOAD,
    BadFrame,
    frame,
    post_payloads,
    read_frames,
)
from peerway_jobs.metrics import KINDS, METRICS, of_kind

BOOT = "6f1c2b3a-0000-4000-8000-0123456789ab"
OTHER_BOOT = "11111111-0000-4000-8000-0123456789ab"


def full_batch() -> Batch:
    batch = Batch("cpu01", "0123456789abcdef" * 2, 7, BOOT, 1_795_300_000_000, 86_400_000)
    for kind in KINDS:
        columns = batch.samples[kind] = Samples()
        for device in range(3):
            columns.add(f"d{device}", {metric.name: device * 0.5 for metric in of_kind(kind)[device:]})
    batch.intervals = [
        Interval(
            "4711.1", 4711, 5, end_ms=9, restart=1, uid=1000, user="ann", cpus=2, cores=[0, 1], gpus=["GPU-1"]
        ),
        Interval("4711.0.1", 4711, 6, step="0", slot=0, source="processes"),
    ]
    batch.notes = [Note("leftover", 10, job=4711, uid=1000, pids=[5, 6], text="python3 <b>")]
    batch.facts = Facts(64, 1 << 38, 10_000, "v1", "0.1", gpus=[Gpu("GPU-1", "A100", 1 << 36, 0, 0)])
    return batch


def content(**changes: Any) -> bytes:
    """An encoded batch with fields changed after it was made; a dotted name changes the first item of a
    list.
    """
    fields = json.loads(zlib.decompress(encode(full_batch())))
    for path, value in changes.items():
        *way, last = path.split("__")
        inner = fields
        for step in way:
            inner = inner[0][step] if isinstance(inner, list) else inner[step]
        if isinstance(inner, list):
            inner = inner[0]
        inner[last] = value
    return zlib.compress(json.dumps(fields).encode())


def test_a_batch_comes_back_as_it_was() -> None:
    assert decode(encode(full_batch())) == full_batch()
    least = Batch("n", "0" * 32, 1, BOOT, 0, 0)
    assert decode(encode(least)) == least


def test_a_device_without_a_figure_has_none_and_not_zero() -> None:
    samples = Samples()
    samples.add("a", {"gpu_power_watts": 3})
    samples.add("b", {"gpu_processes": 1})
    assert samples.values == {"gpu_power_watts": [3, None], "gpu_processes": [None, 1]}


HOSTILE: dict[str, dict[str, Any]] = {
    "another version": {"version": VERSION + 1},
    "no node": {"node": None},
    "a path for a node": {"node": "../../etc/cron.d/x"},
    "two dots": {"node": "a..b"},
    "a slash": {"node": "a/b"},
    "an empty node": {"node": ""},
    "a long node": {"node": "a" * 64},
    "letters of others": {"node": "сри01"},
    "a newline after the node": {"node": "cpu01\n"},
    "a stream of other letters": {"stream": "g" * 32},
    "seq 0": {"seq": 0},
    "seq true": {"seq": True},
    "seq as a fraction": {"seq": 1.0},
    "a huge seq": {"seq": 1 << 64},
    "a boot that is no UUID": {"boot": "x"},
    "time before 1970": {"wall_ms": -1},
    "samples as a list": {"samples": [1]},
    "devices as a text": {"samples__core__devices": "abc"},
    "a device named twice": {"samples__core__devices": ["0", "0", "1"]},
    "a device with a quote": {"samples__core__devices": ['0"}', "1", "2"]},
    "a device with a path": {"samples__core__devices": ["../x", "1", "2"]},
    "a column too short": {"samples__core__values": {"core_busy_seconds_total": [1, 2]}},
    "a metric of another kind": {"samples__core__values": {"gpu_power_watts": [1, 2, 3]}},
    "intervals as an object": {"intervals": {"id": 1}},
    "facts as a list": {"facts": [1]},
    "no CPUs": {"facts__cpus": 0},
    "a GPU without a UUID": {"facts__gpus": [{"name": "A100"}]},
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=list(HOSTILE))
def test_what_is_wrong_refuses_the_batch(change: dict[str, Any]) -> None:
    with pytest.raises(BadBatch) as refused:
        decode(content(**change))
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 300


FAULTS = {
    "another version": f"version is {VERSION + 1}, this server reads version {VERSION}",
    "seq 0": "seq is 0, not a whole number from 1 to ",
    "a device named twice": "devices contains 0 2 times",
    "a device with a path": "devices contains '../x', which may not be a device's name",
    "a column too short": "core_busy_seconds_total has 2 values for 3 devices",
    "intervals as an object": "intervals is not a list",
}


@pytest.mark.parametrize("name", FAULTS)
def test_an_error_says_what_was_sent_and_what_may_be(name: str) -> None:
    with pytest.raises(BadBatch, match=re.escape(FAULTS[name])):
        decode(content(**HOSTILE[name]))


# Changes that make a batch's first interval or only note unreadable.
UNREADABLE: dict[str, dict[str, Any]] = {
    "job 0": {"intervals__job": 0},
    "a job beyond 32 bits": {"intervals__job": 1 << 32},
    "a job as a text": {"intervals__job": "4711; drop table"},
    "an end before its start": {"intervals__end_ms": 4},
    "an id with a slash": {"intervals__id": "../x"},
    "a step that is none": {"intervals__step": "1 or 1=1"},
    "a slot without a step": {"intervals__slot": 3},
    "a user with a newline": {"intervals__user": "ann\nroot"},
    "a user with an escape": {"intervals__user": "\x1b[2J"},
    "a long user": {"intervals__user": "a" * 65},
    "cores as texts": {"intervals__cores": ["0"]},
    "too many cores": {"intervals__cores": [0] * 5000},
    "a GPU that is a path": {"intervals__gpus": ["/dev/nvidia0"]},
    "an unknown source": {"intervals__source": "rumour"},
    "pids below 0": {"notes__pids": [-1]},
    "a note with an escape": {"notes__text": "\u202e"},
    "a long note": {"notes__text": "a" * 129},
}


@pytest.mark.parametrize("change", UNREADABLE.values(), ids=list(UNREADABLE))
def test_an_interval_or_note_that_cannot_be_read_costs_only_itself(change: dict[str, Any]) -> None:
    batch, decoded = full_batch(), decode(content(**change))
    in_notes = next(iter(change)).startswith("notes")
    assert decoded.intervals == (batch.intervals if in_notes else batch.intervals[1:])
    assert decoded.notes[:-1] == ([] if in_notes else batch.notes)
    assert decoded.notes[-1].kind == "unreadable"
    entry = "a note of job 4711" if in_notes else "an interval of job "
    assert decoded.notes[-1].text.startswith(entry)
    assert " was left out: " in decoded.notes[-1].text
    assert decoded.notes[-1].text.isprintable()
    assert (decoded.samples, decoded.facts) == (batch.samples, batch.facts)


SIZES = ("cpus", "memory_bytes", "uid", "restart")


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("value", [-1, 1 << 64, 1.5, "many"])
def test_a_size_of_an_interval_that_cannot_be_is_absent_and_the_interval_kept(name: str, value: Any) -> None:
    batch, decoded = full_batch(), decode(content(**{f"intervals__{name}": value}))
    setattr(batch.intervals[0], name, None)
    assert decoded.intervals == batch.intervals
    assert f"{name} is " in decoded.notes[-1].text
    assert decoded.notes[:-1] == batch.notes


# Impossible figures of drivers, and a word of the reason for each.
NONSENSE: dict[str, tuple[str, Any, str]] = {
    "a counter below 0": ("core_busy_seconds_total", -3, "not from 0"),
    "a text": ("core_busy_seconds_total", "N/A", "not a number"),
    "a truth": ("core_busy_seconds_total", True, "not a number"),
    "a list": ("core_busy_seconds_total", [1], "not a number"),
    "a huge value": ("core_busy_seconds_total", 1e300, "not from 0"),
    "not a number": ("core_busy_seconds_total", float("nan"), "finite"),
    "infinity": ("core_busy_seconds_total", float("inf"), "finite"),
    "memory of all ones": ("gpu_memory_used_bytes", (1 << 64) - 1, "not from 0"),
    "more memory than there is": ("gpu_memory_used_bytes", 90 << 30, "more than gpu_memory_total_bytes"),
    "utilization of all ones": ("gpu_utilization_ratio", 42_949_672.95, "not from 0 to 1"),
    "a utilization of 105 %": ("gpu_utilization_ratio", 1.05, "not from 0 to 1"),
    "power of all ones": ("gpu_power_watts", 4_294_967.295, "not from 0 to 10,000"),
    "a temperature of -1": ("gpu_temperature_celsius", -1, "not from 0 to 150"),
    "a negative sum of Lustre": ("filesystem_read_bytes_total", -45, "not from 0"),
    "a port's counter of all ones": ("nic_sent_bytes_total", ((1 << 64) - 1) * 4, "not from 0"),
}


@pytest.mark.parametrize(("metric", "value", "reason"), NONSENSE.values(), ids=list(NONSENSE))
def test_a_figure_that_cannot_be_true_is_left_out_with_its_reason(
    metric: str, value: Any, reason: str
) -> None:
    batch = full_batch()
    kind = METRICS[metric].kind
    batch.samples[kind].values[metric][1] = 0.25
    if metric == "gpu_memory_used_bytes":
        batch.samples[kind].values["gpu_memory_total_bytes"][1] = 80 << 30
    fields = json.loads(zlib.decompress(encode(batch)))
    fields["samples"][kind]["values"][metric][1] = value
    decoded = decode(zlib.compress(json.dumps(fields).encode()))
    batch.samples[kind].values[metric][1] = None
    assert decoded.samples == batch.samples  # all others are kept
    *others, added = decoded.notes
    assert others == batch.notes
    assert added.kind == "unreadable"
    assert added.text.startswith(f"{kind} d1: {metric} is ")
    assert reason in added.text


def test_rounding_of_a_share_is_no_nonsense() -> None:
    batch = full_batch()
    batch.samples["gpu"].values["gpu_sm_activity_ratio"][1] = 1.004
    decoded = decode(encode(batch))
    assert decoded.samples["gpu"].values["gpu_sm_activity_ratio"][1] == 1
    assert decoded.notes == batch.notes


def test_reasons_of_many_figures_are_counted() -> None:
    batch = full_batch()
    batch.samples["core"] = Samples([str(n) for n in range(99)], {"core_busy_seconds_total": [-1] * 99})
    texts = [note.text for note in decode(encode(batch)).notes[1:]]
    assert len(texts) == MOST_REASONS + 1
    assert texts[-1] == "83 more figures were left out"


def test_what_is_new_is_left_out_and_named() -> None:
    batch = full_batch()
    changed = decode(content(
        colour=1, samples__core__values={"core_mood": [1, 2, 3]}, samples__fpga={"devices": [], "values": {}},
        notes=[{"kind": "aliens", "time_ms": 1}], intervals__shade=3,
        facts__gpus=[{"uuid": "GPU-1", "smell": 1}],
    ))  # fmt: skip
    assert sorted(changed.unknown) == [
        "batch.colour", "core metric core_mood", "gpus.smell", "intervals.shade", "notes aliens",
        "samples of fpga",
    ]  # fmt: skip
    assert changed.intervals == batch.intervals
    assert changed.samples["gpu"] == batch.samples["gpu"]


# Bytes that are no batch, and words of the error.
BOMBS: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "cut off after 0 bytes"),
    "not compressed": (b"hello", "not compressed by zlib"),
    "cut off": (encode(full_batch())[:-8], "cut off after "),
    "followed by more": (encode(full_batch()) + b"x", "1 bytes follow the compressed text"),
    "a bomb": (zlib.compress(b" " * (MOST_TEXT + 1)), "or more, allowed are fewer"),
    "too long": (b"x" * (MOST_PAYLOAD + 1), "bytes, allowed are "),
    "deeply nested": (zlib.compress(b"[" * 200_000), "nested too deeply"),
    "deep in samples": (zlib.compress(b'{"version":1,"samples":' + b'{"a":' * 40_000), "nested too deeply"),
    "a list": (zlib.compress(b"[]"), "batch is not an object"),
    "a number of many digits": (zlib.compress(b'{"version":' + b"9" * 100_000 + b"}"), "not JSON: Exceeds"),
    "no text": (zlib.compress(b"\xff\xfe"), "not JSON: "),
    "a lone surrogate": (zlib.compress(b'{"version":1,"node":"\\ud800"}'), "batch: node may not be "),
}


@pytest.mark.parametrize(("payload", "words"), BOMBS.values(), ids=list(BOMBS))
def test_other_bytes_are_refused_with_their_fault(payload: bytes, words: str) -> None:
    with pytest.raises(BadBatch) as refused:
        decode(payload)
    assert words in str(refused.value)
    assert str(refused.value).isprintable()


def test_any_change_of_the_text_is_refused_or_read_as_a_batch() -> None:
    dice = random.Random(4)
    text = bytearray(zlib.decompress(encode(full_batch())))
    for _ in range(300):
        other = bytearray(text)
        for _ in range(dice.randint(1, 4)):
            other[dice.randrange(len(other))] = dice.choice(b'"{}[]:,0919-eE.tfn\\ \x00\xff')
        try:
            decode(zlib.compress(bytes(other)))
        except BadBatch:
            continue


def test_names() -> None:
    for good in ("cpu01", "a", "node-1.cluster.local", "n_1"):
        assert is_node_name(good), good
    for bad in (".", "..", "a/..", "-x", ".x", "a b", "a\0", "%2e%2e"):
        assert not is_node_name(bad), bad
    for good in ("net:eth0", "ib:mlx5_0:1", "GPU-0a1b", "0", "eth0.17", "cciss!c0d0", "lustre:scratch"):
        assert is_device_name(good), good
    assert not is_device_name('x",job="1')


def test_frames_and_where_they_end() -> None:
    three = [b"a", b"bc", b"d" * 1000]
    data = b"".join(frame(payload) for payload in three)
    assert post_payloads(data) == three
    assert post_payloads(b"") == []
    for cut in range(len(data)):
        good: list[bytes] = []
        ends = [0]
        where = cut
        try:
            for end, payload in read_frames(data[:cut]):
                good.append(payload)
                ends.append(end)
        except BadFrame as bad:
            where = bad.good
        assert where == ends[-1]
        assert good == three[: len(good)]


@pytest.mark.parametrize(
    "body",
    [
        b"PWJ2" + frame(b"a")[4:],
        frame(b"a")[:-1] + b"b",
        b"PWJ1\xff\xff\xff\xff\0\0\0\0a",
        frame(b"a") * (MOST_FRAMES + 1),
        b"x" * (MOST_BODY + 1),
    ],
    ids=["magic", "checksum", "length", "too many", "too long"],
)
def test_bad_bodies(body: bytes) -> None:
    with pytest.raises(BadFrame):
        post_payloads(body)


T, HOUR = 1_795_300_000_000, 3_600_000

# the batch's wall clock, time since boot and boot; the node's clocks at sending; time of receipt; expected
# correction
CLOCKS = {
    "right": (T, 1000, BOOT, (T + 5, 1005, BOOT), T + 20, 0),
    "right, an hour late": (T, 1000, BOOT, (T + HOUR, 1000 + HOUR, BOOT), T + HOUR + 20, 0),
    "an hour fast": (T + HOUR, 1000, BOOT, (T + HOUR, 1000, BOOT), T, -HOUR),
    "an hour fast, and late": (T + HOUR, 1000, BOOT, (T + 2 * HOUR, 1000 + HOUR, BOOT), T + HOUR, -HOUR),
    "set right since": (T + HOUR, 1000, BOOT, (T + 60_000, 61_000, BOOT), T + 60_000, -HOUR),
    "set wrong since": (T, 1000, BOOT, (T + HOUR, 61_000, BOOT), T + 60_000, 0),
    "of the last boot, right": (T, 9_000_000, OTHER_BOOT, (T + HOUR, 1000, BOOT), T + HOUR, 0),
    "of the last boot, wrong": (T - HOUR, 9_000_000, OTHER_BOOT, (T, 1000, BOOT), T + HOUR, HOUR),
}  # fmt: skip


@pytest.mark.parametrize("case", CLOCKS.values(), ids=list(CLOCKS))
def test_what_the_server_adds_to_a_nodes_time(case: tuple[Any, ...]) -> None:
    wall, mono, boot, sent, received, expected = case
    assert correction_ms(wall, mono, boot, Sent(*sent), received) == expected


def test_the_header_of_the_clocks() -> None:
    sent = Sent(T, 5, BOOT)
    assert Sent.parse(sent.header()) == sent
    for bad in ("", "wall_ms=1", f"wall_ms=-1, mono_ms=1, boot={BOOT}", sent.header() + "\n"):
        with pytest.raises(ValueError, match="Peerway-Sent"):
            Sent.parse(bad)


def test_the_table_of_metrics() -> None:
    assert {metric.kind for metric in METRICS.values()} == set(KINDS)
    for metric in METRICS.values():
        assert metric.help, metric
        assert not metric.help.endswith("."), metric
        assert metric.type == ("counter" if metric.name.endswith("_total") else "gauge")
    assert all(NOTES.values())
