"""The spool returns batches in order, even after a crash; it keeps its size limit and counts losses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from peerway_jobs.agent.spool import FILE_BYTES, Spool
from peerway_jobs.frames import read_frames

MOST = 8 << 20
PAYLOAD = os.urandom(100_000)


def payloads(frames: list[bytes]) -> list[bytes]:
    return [payload for _, payload in read_frames(b"".join(frames))]


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.frames"))


def drain(spool: Spool) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []
    while True:
        first, frames = spool.unsent()
        if not frames:
            return found
        found += list(enumerate(payloads(frames), first))
        spool.acknowledge(first + len(frames) - 1)


def test_first_in_first_out_with_numbers_from_one(tmp_path: Path) -> None:
    spool = Spool(tmp_path, MOST)
    sent = [b"%d" % n for n in range(200)]
    for payload in sent:
        spool.append(payload)
    assert spool.waiting() == 200
    assert drain(spool) == list(enumerate(sent, 1))
    assert spool.waiting() == 0


def test_a_new_process_goes_on_where_the_last_was_killed(tmp_path: Path) -> None:
    before = Spool(tmp_path, MOST)
    for n in range(30):
        before.append(b"%d" % n + PAYLOAD)
    before.acknowledge(25)
    after = Spool(tmp_path, MOST)  # the first spool was not closed
    assert after.stream == before.stream
    assert after.next_seq == 31
    again = drain(after)
    assert [n for n, _ in again][-5:] == [26, 27, 28, 29, 30]
    after.append(b"x")
    assert drain(after) == [(31, b"x")]


def test_half_a_frame_of_a_loss_of_power_is_cut_off(tmp_path: Path) -> None:
    spool = Spool(tmp_path, MOST)
    spool.append(b"whole")
    spool.append(b"torn")
    path = tmp_path / files(tmp_path)[-1]
    path.write_bytes(path.read_bytes()[:-2])
    after = Spool(tmp_path, MOST)
    assert after.next_seq == 2  # the server cannot have it, because it is sent only after it is on disk
    after.append(b"next")
    assert drain(after) == [(1, b"whole"), (2, b"next")]


def test_numbers_go_on_when_all_was_sent(tmp_path: Path) -> None:
    spool = Spool(tmp_path, MOST)
    for _ in range(40):
        spool.append(PAYLOAD)
    drain(spool)
    assert len(files(tmp_path)) == 1
    assert Spool(tmp_path, MOST).next_seq == 41


def test_a_full_spool_drops_the_oldest_and_counts(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 2 * FILE_BYTES)
    for _ in range(100):
        spool.append(PAYLOAD)
        assert sum(path.stat().st_size for path in tmp_path.glob("*.frames")) <= 2 * FILE_BYTES
    kept = [n for n, _ in drain(spool)]
    assert kept == list(range(kept[0], 101))
    assert spool.dropped == kept[0] - 1
    assert 10 <= len(kept) <= 20


def test_what_was_sent_is_not_counted_as_dropped(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 2 * FILE_BYTES)
    for _ in range(100):
        spool.append(PAYLOAD)
        drain(spool)
    assert spool.dropped == 0


def test_a_full_disk_drops_the_oldest_then_the_new_and_leaves_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = Spool(tmp_path, MOST)
    for _ in range(25):
        spool.append(PAYLOAD)
    real, full = os.write, [True]

    def write(file: int, data: bytes) -> int:
        if full[0] and len(data) > 50_000:
            return real(file, data[:10])  # a short write, as the kernel makes when the disk fills up
        return real(file, data)

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(OSError, match="No space left on device"):
        spool.append(PAYLOAD)
    full[0] = False
    spool.append(b"after")
    kept = dict(drain(spool))
    assert kept[27] == b"after"
    assert 26 not in kept
    assert set(kept) <= set(range(1, 28))
    assert spool.dropped == 27 - len(kept)
    assert dict(drain(Spool(tmp_path, MOST))).get(27, b"after") == b"after"


def test_a_batch_that_the_server_refuses_is_kept_aside(tmp_path: Path) -> None:
    spool = Spool(tmp_path, MOST)
    for n in range(3):
        spool.append(b"%d" % n)
    _, frames = spool.unsent()
    spool.acknowledge(1)
    spool.refuse(2, frames[1])
    assert drain(spool) == [(3, b"2")]
    assert payloads([(tmp_path / "refused" / f"{2:020d}.frames").read_bytes()]) == [b"1"]


def test_without_its_name_a_spool_is_another_stream(tmp_path: Path) -> None:
    before = Spool(tmp_path, MOST)
    before.append(b"x")
    (tmp_path / "stream").unlink()
    after = Spool(tmp_path, MOST)
    assert after.stream != before.stream
    assert after.next_seq == 1


@pytest.mark.parametrize("place", [0, 1])
def test_a_file_that_was_damaged_on_the_disk_holds_up_no_other(tmp_path: Path, place: int) -> None:
    spool = Spool(tmp_path, MOST)
    sent = [b"%d" % n + PAYLOAD for n in range(30)]
    for payload in sent:
        spool.append(payload)
    path = tmp_path / files(tmp_path)[1]
    of_file = [payload for _, payload in read_frames(path.read_bytes())]
    data = bytearray(path.read_bytes())
    data[100 + place * (len(of_file[0]) + 12)] ^= 1
    path.write_bytes(data)
    assert [payload for _, payload in drain(spool)] == [each for each in sent if each not in of_file[place:]]
    assert spool.dropped == len(of_file) - place
