"""Where records go while something is measured: nothing that was measured before is lost, nor half of it."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from synthetic_records import record

from peerway_measure import records
from peerway_measure.bench import resume
from peerway_measure.bench.plan import Case
from peerway_measure.bench.shapes import contiguous
from peerway_measure.record_output import RecordFile, Unusable, WriteFailed


def test_records_that_are_there_are_neither_overwritten_nor_added_to_unasked(tmp_path: Path) -> None:
    out = tmp_path / "a.jsonl"
    records.write(out, [record(bytes=size) for size in (8, 16)])
    before = out.read_bytes()
    with pytest.raises(Unusable, match=r"has 2 records already; --append"):
        RecordFile(out, append=False)
    assert out.read_bytes() == before
    file = RecordFile(out, append=True)
    assert [each.bytes for each in file.before] == [8, 16]
    file.add(record(bytes=32))
    file.close()
    assert [each.bytes for each in records.read(out)] == [8, 16, 32]


@pytest.mark.parametrize("append", [False, True])
@pytest.mark.parametrize("text", ["my thesis\n", '{"test": "put_la'])
def test_what_is_no_file_of_records_is_left_alone(text: str, append: bool, tmp_path: Path) -> None:
    out = tmp_path / "a.jsonl"
    out.write_text(text)
    with pytest.raises(Unusable, match=r"a\.jsonl:1: "):
        RecordFile(out, append)
    assert out.read_text() == text


def test_a_file_that_was_made_for_nothing_goes_again(tmp_path: Path) -> None:
    created, there = tmp_path / "made", tmp_path / "there"
    there.touch()
    for path in (created, there):
        RecordFile(path, append=False).close()
    assert (created.exists(), there.exists()) == (False, True)


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """As on a disk with so much room: what is written beyond it fails, after a part."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_record_for_which_there_is_no_room_leaves_no_half(tmp_path: Path) -> None:
    out = tmp_path / "a.jsonl"
    file, line = RecordFile(out, append=False), len(record(bytes=8).as_json())
    with largest_file(2 * line):
        file.add(record(bytes=8))
        with pytest.raises(WriteFailed, match=f"cannot write {out}: File too large"):
            file.add(record(bytes=8))
    file.close()
    assert len(records.read(out)) == 1


def test_a_file_that_cannot_take_a_byte_is_found_before(tmp_path: Path) -> None:
    with largest_file(0), pytest.raises(OSError, match="File too large"):
        RecordFile(tmp_path / "a.jsonl", append=False)
    assert not list(tmp_path.iterdir())
    with pytest.raises(OSError, match="No space left"):
        RecordFile(Path("/dev/full"), append=False)


def test_a_run_that_goes_on_makes_the_records_that_lack() -> None:
    here = {"host": "node01", "version": "0.1.0"}
    case = Case("put_latency", contiguous(8), "host", "cuda", ((0, 1),))
    gpus = record(bytes=8, via="staged", source="host", target="cuda:1", **here)
    other = [record(bytes=8, via="staged", source="host", target="cuda:1", **{**here, **change})
             for change in ({"host": "node02"}, {"version": "0.0.9"})]  # fmt: skip
    have = resume.of_records([gpus, gpus, *other], here, peers=())
    point = resume.of_case(case, "staged", 2)
    assert [resume.lacks(have, point) for _ in range(3)] == [False, False, True]
    peer = resume.of_records([record(via="openmpi", version="4.1.6", host="node01")], here, ["openmpi"])
    assert sum(peer.values()) == 1
