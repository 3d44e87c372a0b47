"""The record schema: what is refused, with which words, and that what is written reads back the same."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from synthetic_records import GIVEN, record

from peerway_measure import records
from peerway_measure.records import Record, RecordError

if TYPE_CHECKING:
    from pathlib import Path

FIXED = {name: getattr(record(), name) for name in GIVEN}


def line(**changed: object) -> str:
    values = json.loads(record().as_json()) | changed
    return json.dumps({name: value for name, value in values.items() if value is not ...})


def test_written_records_read_back_the_same(tmp_path: Path) -> None:
    several = [
        record(),
        record(bytes=16, cpu_percent=None, extra={"boundaries": [1, {"a": "b"}]}, via="peer \u2192 µ"),
    ]
    records.write(tmp_path / "a.jsonl", several)
    records.append(tmp_path / "a.jsonl", record(bytes=32))
    assert records.read(tmp_path / "a.jsonl") == [*several, record(bytes=32)]
    assert records.read([tmp_path / "a.jsonl", tmp_path / "a.jsonl"]) == 2 * [*several, record(bytes=32)]


def test_unknown_fields_are_kept_in_extra() -> None:
    parsed = records.parse(line(window=64, extra={"chosen": "staged"}))
    assert dict(parsed.extra) == {"window": 64, "chosen": "staged"}
    assert records.parse(parsed.as_json()) == parsed


@pytest.mark.parametrize(
    ("field", "value", "wanted"),
    [
        ("bytes", 8.5, "whole number"),
        ("bytes", -1, "from 0"),
        ("bytes", True, "whole number"),
        ("bytes", "8", "whole"),
        ("bytes", 1 << 63, "2^63"),
        ("ranks", 0, "from 1"),
        ("p50_us", "fast", "number"),
        ("p50_us", -0.1, "but must be 0, or a number from"),
        ("p99_us", None, "number"),
        ("via", "", "not empty"),
        ("via", 7, "text"),
        ("validated", 1, "true or false"),
        ("time", "yesterday", "UTC"),
        ("time", "2026-11-21T09:30:00", "UTC"),
        ("time", "2026-11-21T09:30:00+01:00", "UTC"),
        ("min_us", 0.9, "at most p50_us"),
        ("p99_us", 0.1, "p50_us"),
        ("extra", [1], "object"),
        ("cpu_percent", "x", "number"),
        ("device", None, "text"),
    ],
)
def test_a_bad_value_is_named_with_its_file_line_and_field(
    tmp_path: Path, field: str, value: object, wanted: str
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(line() + "\n\n" + line(**{field: value}) + "\n")
    with pytest.raises(RecordError) as caught:
        records.read(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:3: field '")
    assert field in message
    assert wanted in message


def test_a_missing_field_is_named(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(line(host=..., time=...) + "\n")
    with pytest.raises(RecordError, match=r"bad.jsonl:1: field 'host' is missing \(and 1 more\)"):
        records.read(path)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"test": NaN}', "NaN"),
        ('{"test": "a", "test": "b"}', "only once"),
        ("[1, 2]", "JSON object"),
        ("{nonsense}", "not a line of JSON"),
        ("1" * 5000, "not a line of JSON"),
        ("[" * 20000, "not a line of JSON"),
    ],
)
def test_what_is_no_record_is_refused(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(text + "\n")
    with pytest.raises(RecordError, match=why):
        records.read(path)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_bytes(b'{"test": "\xff"}\n')
    with pytest.raises(RecordError, match=r"bad.jsonl:1: not a line of JSON"):
        records.read(tmp_path / "bad.jsonl")


def test_a_cut_off_last_line_is_an_error_or_skipped_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "cut.jsonl"
    path.write_text(line() + "\n" + line()[:100])
    with pytest.raises(RecordError, match=r"cut.jsonl:2: the last line is cut off after 100 bytes"):
        records.read(path)
    with pytest.warns(records.TruncatedRecordWarning, match=r"cut.jsonl:2: .* skipped"):
        assert len(records.read(path, truncated="skip")) == 1


def test_skipping_a_cut_off_line_forgives_no_other_line(tmp_path: Path) -> None:
    path = tmp_path / "cut.jsonl"
    path.write_text(line()[:100] + "\n" + line())
    with pytest.raises(RecordError, match=r"cut.jsonl:1"):
        records.read(path, truncated="skip")


def test_writing_is_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    records.write(path, [record()])
    before = path.read_bytes()
    with pytest.raises(RecordError, match="extra"):
        records.write(path, [record(), record(extra={"no": {1, 2}})])
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.jsonl"]


def test_samples_become_one_way_times_of_one_message() -> None:
    samples = np.arange(1, 101) * 1000.0
    record = Record.from_samples(samples, **FIXED)
    assert (record.p50_us, record.min_us, record.mean_us, record.iterations) == (50.5, 1.0, 50.5, 100)
    assert record.p99_us == pytest.approx(float(np.percentile(samples, 99)) / 1e3)
    assert record.messages_per_s == pytest.approx(1e6 / 50.5)
    assert record.bandwidth_MBps == pytest.approx(8 / 50.5)
    round_trip = Record.from_samples(samples * 2, one_way_trips=2, time=record.time, **FIXED)
    assert round_trip == record
    window = Record.from_samples(samples * 64, messages=64, streams=2, time=record.time, **FIXED)
    assert window.p50_us == record.p50_us
    assert window.bandwidth_MBps == pytest.approx(2 * record.bandwidth_MBps)


@pytest.mark.parametrize(
    ("samples", "why"),
    [
        ([], "at least one"),
        ([[1.0]], "flat"),
        ([1.0, -1.0], "negative"),
        ([float("nan")], "not a number"),
        ([0.0, 0.0], "below the clock"),
    ],
)
def test_samples_that_are_no_times_are_refused(samples: list[float], why: str) -> None:
    with pytest.raises(RecordError, match=why):
        Record.from_samples(samples, **FIXED)
