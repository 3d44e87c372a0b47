"""Placement of ranks, cutting of their output, and whose failure was the first, all as pure data."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from peerway.errors import Unsupported
from peerway.launch.first_failure import End, asked_for, first_failure
from peerway.launch.lines import MOST_HELD_BYTES, Lines
from peerway.launch.output import names
from peerway.launch.places import Host, assign, parse_list, read_host, visible_gpus
from peerway.launch.preload import preload
from peerway.launch.stand_in import agent_command
from peerway.launch.tracebacks import Traceback, lost_ranks


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


# ---- lines and tracebacks ----

LOGGED = b"""Traceback (most recent call last):
  File "x.py", line 1, in <module>
    1 / 0
    ~~^~~
ZeroDivisionError: division by zero
"""
CHAINED = (
    LOGGED
    + b"""
During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "x.py", line 3, in <module>
    ctx.flush(2)
peerway._core.PeerLost: peerway: rank 2 was lost
  more of its text
"""
)
GROUP = b"""  + Exception Group Traceback (most recent call last):
  |   File "x.py", line 1, in <module>
  | ExceptionGroup: two (1 sub-exception)
  +-+---------------- 1 ----------------
    | ValueError: 1
    +------------------------------------
"""


def pieces(text: bytes, size: int) -> tuple[bytes, list[bytes], bytes]:
    """Everything that is shown, the tracebacks in it, and what was shown only at the end."""
    lines = Lines()
    complete = [piece for at in range(0, len(text), size) for piece in lines.feed(text[at : at + size], 0.0)]
    held = lines.let_go()
    texts = [piece if isinstance(piece, bytes) else piece.text for piece in complete + held]
    whole = [piece.text for piece in complete + held if isinstance(piece, Traceback)]
    rest = b"".join(piece if isinstance(piece, bytes) else piece.text for piece in held)
    return b"".join(texts), whole, rest


@pytest.mark.parametrize("size", [1, 2, 7, 64, 10_000])
@pytest.mark.parametrize(
    ("text", "tracebacks", "held"),
    [
        (b"one\n\ntwo\rthree\nlast without end", [], b"last without end"),
        (b"a\nb\n", [], b""),
        (LOGGED, [LOGGED], LOGGED),
        (b"before\n" + LOGGED + b"after\n", [LOGGED], b""),
        (CHAINED, [CHAINED], CHAINED),
        (LOGGED * 3, [LOGGED] * 3, LOGGED),
        (GROUP + b"after\n", [GROUP + b"after\n"], GROUP + b"after\n"),
        (b"Traceback (most recent\nis a word", [], b"is a word"),
    ],
)  # fmt: skip
def test_lines_and_tracebacks_do_not_depend_on_how_the_stream_is_cut(
    text: bytes, tracebacks: list[bytes], held: bytes, size: int
) -> None:
    assert pieces(text, size) == (text, tracebacks, held)


@pytest.mark.parametrize(
    ("text", "interrupt"),
    [
        (LOGGED, False),
        (CHAINED, True),
        (LOGGED.replace(b"ZeroDivisionError: division by zero", b"KeyboardInterrupt"), True),
    ],
)
def test_which_tracebacks_are_of_an_interrupt(text: bytes, interrupt: bool) -> None:
    lines = Lines()
    lines.feed(text, 0.0)
    assert lines.traceback is not None
    assert lines.traceback.of_interrupt == interrupt


def test_a_very_long_line_is_passed_on_in_pieces() -> None:
    lines = Lines()
    long = b"x" * MOST_HELD_BYTES
    assert lines.feed(long, 0.0) == [long]
    assert lines.feed(b"y\n" + LOGGED, 0.0) == [b"y\n"]
    assert lines.traceback is not None
    endless = Lines()
    text = b"Traceback (most recent call last):\n" + b"  deeper\n" * (MOST_HELD_BYTES // 9 + 9)
    assert any(isinstance(piece, Traceback) for piece in endless.feed(text, 0.0))


def test_the_last_lines_of_a_stream() -> None:
    lines = Lines()
    for number in range(2000):
        lines.feed(b"line %d\n\n" % number, 0.0)
    assert lines.last(2) == [b"line 1998", b"line 1999"]
    assert b"".join(lines.last(10_000)) in b"".join(b"line %d" % number for number in range(2000))


@pytest.mark.parametrize(
    ("ranks", "text"),
    [([3], "rank 3"), ([0, 1], "ranks 0, 1"), ([5, 2, 3, 4, 0, 8, 9], "ranks 0, 2-5, 8, 9")],
)
def test_names_of_ranks(ranks: list[int], text: str) -> None:
    assert names(ranks) == text


# ---- whose failure was the first ----


def end(rank: int, code: int, **more: object) -> End:
    return End(rank, abs(code), code < 0, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ends", "first", "expected"),
    [
        ([end(0, 0), end(1, 0)], None, 0),
        ([end(2, 1), end(0, 1)], 2, 0),
        ([end(1, 0), end(2, -11), end(0, -15, ended=True)], 2, 0),
        # A rank that noticed another's loss may end before it.
        ([end(0, 1, lost=frozenset({2})), end(2, 1), end(1, 1, lost=frozenset({0}))], 2, 0),
        ([end(0, 1, lost=frozenset({7})), end(2, 1)], 0, 0),
        ([end(0, 1, lost=frozenset({1})), end(1, 1, lost=frozenset({0}))], 0, 0),
        ([end(1, -2, user_signal=2), end(0, 1, user_signal=2)], None, 2),
        ([end(1, -2, user_signal=2), end(0, -11, user_signal=2)], 0, 2),
        ([end(1, 3), end(0, -2, user_signal=2)], 1, 2),
        ([end(0, 0, user_signal=2), end(1, -9, user_signal=2, ended=True)], None, 2),
        ([end(0, 0, user_signal=2), end(1, 0, user_signal=2)], None, 0),
    ],
)
def test_the_first_failure(ends: list[End], first: int | None, expected: int) -> None:
    failure = first_failure(ends)
    assert (failure and failure.rank) == first
    assert asked_for(ends) == expected


def test_the_last_lines_of_a_rank_say_whose_loss_ended_it() -> None:
    assert lost_ranks([b"x", b"peerway._core.PeerLost: peerway: rank 12 was lost 0.8 s ago"]) == {12}
    assert lost_ranks([b"all_gather: rank 3 is lost: its process (7 on here) ended"]) == {3}
    assert lost_ranks([b"waiting for a signal: rank 1 left the team 0.0 s ago"]) == {1}
    assert lost_ranks([b"all_gather: rank 4 has left the team"]) == {4}
    assert lost_ranks(
        [b"rank 5 ended 0.2 s ago (process 7 on here); whether it left, because rank 0 had left"]
    ) == {5}
    assert lost_ranks([b"rank 3 was lost", b"but", b"we", b"went on"]) == frozenset()


@pytest.mark.parametrize(
    ("folder", "inherited", "variables"),
    [
        ("/opt/lib", {}, {"LD_PRELOAD": "/opt/lib/libx.so"}),
        ("/opt/lib", {"LD_PRELOAD": "liby.so"}, {"LD_PRELOAD": "/opt/lib/libx.so:liby.so"}),
        ("/my home/lib", {}, {"LD_PRELOAD": "libx.so", "LD_LIBRARY_PATH": "/my home/lib"}),
        (
            "/my home/lib",
            {"LD_PRELOAD": "liby.so", "LD_LIBRARY_PATH": "/usr/lib"},
            {"LD_PRELOAD": "libx.so:liby.so", "LD_LIBRARY_PATH": "/my home/lib:/usr/lib"},
        ),
    ],
)
def test_a_library_is_loaded_first_from_any_folder(
    folder: str, inherited: dict[str, str], variables: dict[str, str]
) -> None:
    assert preload(Path(folder) / "libx.so", inherited) == variables


@pytest.mark.parametrize("folder", ["/a:b", "/a;b"])
def test_a_folder_that_no_variable_can_name_is_refused(folder: str) -> None:
    with pytest.raises(Unsupported, match="install Peerway in a folder without them"):
        preload(Path(folder) / "libx.so", {})


def test_the_words_behind_a_host_outlive_the_shell_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent joins them with spaces, as ssh does."""
    monkeypatch.setattr(sys, "executable", "/my home/bin/python")
    assert agent_command("node2", ["ssh"], "peerway.launch.keeper") == [
        "ssh", "node2", "'/my home/bin/python'", "-m", "peerway.launch.keeper"
    ]  # fmt: skip


def test_srun_executes_the_words_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/my home/bin/python")
    command = agent_command("node2", ["srun", "--nodelist"], "peerway.launch.keeper")
    assert command[:4] == ["srun", "--nodelist", "node2", "/my home/bin/python"]
