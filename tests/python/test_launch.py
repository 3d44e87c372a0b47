"""Where ranks are placed and how their lines are prefixed: as data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from peerway.launch.lines import LONGEST, Prefixer
from peerway.launch.places import Host, assign, parse_list, read_host, visible_gpus

if TYPE_CHECKING:
    from pathlib import Path


def cores(ranks: int, host: Host) -> list[list[int]]:
    return [sorted(place.cores) for place in assign(ranks, host)]


TWO_NODES = Host(tuple(range(8)), (frozenset(range(4)), frozenset(range(4, 8))))


def test_ranks_get_contiguous_blocks_of_one_node() -> None:
    assert cores(4, TWO_NODES) == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert cores(3, TWO_NODES) == [[0, 1], [2, 3], [4, 5, 6, 7]]


def test_one_rank_gets_all_cores() -> None:
    assert cores(1, TWO_NODES) == [list(range(8))]


def test_too_many_ranks_share_their_node() -> None:
    assert cores(10, TWO_NODES) == [[0, 1, 2, 3]] * 5 + [[4, 5, 6, 7]] * 5


def test_only_allowed_cores_are_used() -> None:
    host = Host((1, 2, 6), (frozenset(range(4)), frozenset(range(4, 8))))
    assert cores(2, host) == [[1, 2], [6]]
    assert cores(2, Host((6, 7), TWO_NODES.nodes)) == [[6], [7]]


def test_with_gpus_ranks_sit_near_theirs_and_share_it() -> None:
    host = Host(tuple(range(8)), TWO_NODES.nodes, (frozenset(range(4, 8)), frozenset(range(4))))
    places = assign(4, host)
    assert [place.gpu for place in places] == [0, 1, 0, 1]
    assert [sorted(place.cores) for place in places] == [[4, 5], [0, 1], [6, 7], [2, 3]]


def test_a_gpu_whose_place_is_unknown_gets_any_core() -> None:
    assert cores(2, Host((0, 1), (), (frozenset(), frozenset({99})))) == [[0], [1]]


def test_visible_devices() -> None:
    gpus = [frozenset({0}), frozenset({1})]
    assert visible_gpus(gpus, None) == tuple(gpus)
    assert visible_gpus(gpus, "1") == (gpus[1],)
    assert visible_gpus(gpus, "") == ()
    assert visible_gpus(gpus, "0,7,1") == (gpus[0],)
    assert visible_gpus(gpus, "GPU-abc,GPU-def") == (frozenset(), frozenset())


def test_read_host(tmp_path: Path) -> None:
    system = tmp_path / "sys/devices/system"
    for core in range(4):
        topology = system / f"cpu/cpu{core}/topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(f"{core % 2},{core % 2 + 2}\n")
    (system / "node/node0").mkdir(parents=True)
    (system / "node/node0/cpulist").write_text("0-3\n")
    (tmp_path / "proc/driver/nvidia/gpus/0000:41:00.0").mkdir(parents=True)
    (tmp_path / "sys/bus/pci/devices/0000:41:00.0").mkdir(parents=True)
    (tmp_path / "sys/bus/pci/devices/0000:41:00.0/local_cpulist").write_text("0,2\n")
    host = read_host(range(4), None, tmp_path)
    assert host.cores == (0, 2, 1, 3)  # threads of one core side by side
    assert host.nodes == (frozenset(range(4)),)
    assert host.gpus == (frozenset({0, 2}),)


def test_parse_list() -> None:
    assert parse_list("0-2,8,10-11\n") == {0, 1, 2, 8, 10, 11}
    assert parse_list("\n") == set()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_prefix_does_not_depend_on_how_the_stream_is_cut(size: int) -> None:
    text = b"one\n\ntwo\rthree\nlast without end"
    prefixer = Prefixer(b"[3] ")
    out = (
        b"".join(prefixer.feed(text[at : at + size]) for at in range(0, len(text), size)) + prefixer.finish()
    )
    assert out == b"[3] one\n[3] \n[3] two\rthree\n[3] last without end\n"


def test_prefix_of_nothing_and_of_whole_lines() -> None:
    assert Prefixer(b"x").finish() == b""
    prefixer = Prefixer(b"[0] ")
    assert prefixer.feed(b"a\nb\n") == b"[0] a\n[0] b\n"
    assert prefixer.finish() == b""


def test_a_very_long_line_is_passed_on_in_pieces_with_one_prefix() -> None:
    prefixer = Prefixer(b"[0] ")
    long = b"x" * LONGEST
    assert prefixer.feed(long) == b"[0] " + long
    assert prefixer.feed(b"y\nz") == b"y\n"
    assert prefixer.finish() == b"[0] z\n"
