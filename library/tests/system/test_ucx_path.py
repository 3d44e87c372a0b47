"""The ucx path between real processes: with the system's UCX and the wheel's, over everything and over TCP
alone as between hosts; what is missing or broken is told, and nothing hangs."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from ranks import Ranks
from ucx_builds import LIBRARIES, PAIRS, TRANSPORTS, needs_some, settings_of


def start(
    scenario: str, size: int = 1 << 20, transports: str = "tcp", far: bool = True, **settings: object
) -> Ranks:
    environment = {"UCX_TLS": TRANSPORTS[transports], "PEERWAY_UCX": "on"}
    if far:
        environment["FAR_RANKS"] = "1"
    environment |= {name: str(value) for name, value in settings.items()}
    return Ranks("ucx_ranks.py", 2, scenario, size, **environment)


def answers_of(scenario: str, **options: object) -> list[dict[str, object]]:
    with start(scenario, **options) as ranks:  # type: ignore[arg-type]
        answers = ranks.read_all()
        ranks.end()
    return answers


@pytest.mark.parametrize("library", LIBRARIES)
def test_one_ucx_is_loaded_whole(library: Path) -> None:
    folder = str(library.resolve().parent)
    for answer in answers_of("paths", PEERWAY_UCX_LIBRARY=library):
        assert "ucx/direct" not in answer["unavailable"]  # type: ignore[operator]
        parts = [
            path
            for path in answer["libraries"]
            if Path(path).name.startswith(("libucp", "libucs", "libuct", "libucm"))
        ]  # type: ignore[attr-defined]
        assert parts
        assert {str(Path(part).resolve().parent) for part in parts} <= {folder, f"{folder}/ucx"}


@needs_some
def test_a_ucx_is_found_with_no_setting() -> None:
    for answer in answers_of("paths"):
        assert "ucx/direct" not in answer["unavailable"]  # type: ignore[operator]


@pytest.mark.parametrize(
    ("library", "transports"),
    [
        pytest.param(
            *one.values, transports, id=f"{one.id}-{transports}",
            marks=[*one.marks, *([] if at == by else [pytest.mark.long])],
        )
        for at, one in enumerate(LIBRARIES)
        for by, transports in enumerate(TRANSPORTS)
    ],
)  # fmt: skip
def test_a_signal_never_overtakes_its_data(library: Path, transports: str) -> None:
    for far in (True, False):
        for answer in answers_of(
            "order",
            size=200_000,
            transports=transports,
            far=far,
            PEERWAY_PATHS="ucx",
            PEERWAY_UCX_LIBRARY=library,
        ):
            assert answer == {"wrong": 0, "value": 200}


@pytest.mark.parametrize("library", LIBRARIES)
def test_threads_share_the_path(library: Path) -> None:
    for answer in answers_of("threads", PEERWAY_UCX_LIBRARY=library):
        assert answer == {"failures": [], "arrived": True, "back": True}


@needs_some
def test_notifications_go_on_after_an_earlier_import() -> None:
    for answer in answers_of("signals"):
        assert answer == {"reached": "", "beyond": "Timeout", "value": 15}


def found_while_stopped(ranks: Ranks) -> Any:
    """What rank 0 finds while rank 1 is stopped; both continue afterwards."""
    stopped = ranks.read_all()[1]["process"]
    os.kill(stopped, signal.SIGSTOP)
    ranks.send_line(0)
    answer = ranks.read(0)
    os.kill(stopped, signal.SIGCONT)
    ranks.send_line(0)
    ranks.send_line(1)
    return answer


@pytest.mark.parametrize("library", LIBRARIES)
def test_flush_of_a_stopped_rank_times_out_and_can_be_repeated(library: Path) -> None:
    with start("stopped", size=32 << 20, PEERWAY_UCX_LIBRARY=library) as ranks:
        assert found_while_stopped(ranks)["kind"] == "Timeout"
        assert ranks.read(0)["kind"] == ""
        assert ranks.read(1) == {"arrived": True}
        ranks.end()


@pytest.mark.parametrize(
    "library",
    [
        pytest.param(*one.values, id=one.id, marks=[*one.marks, *([pytest.mark.long] if at else [])])
        for at, one in enumerate(LIBRARIES)
    ],
)
def test_no_flush_of_a_stopped_rank_ends_while_another_thread_flushes(library: Path) -> None:
    with start("stopped_by_two", size=32 << 20, PEERWAY_UCX_LIBRARY=library) as ranks:
        assert found_while_stopped(ranks) == {"ends": ["Timeout"]}
        assert ranks.read(0)["kind"] == ""
        ranks.end()


# Half of all combinations have ranks on two hosts, half on one; so it is in short runs, too.
@pytest.mark.parametrize(("library", "transports", "path"), PAIRS)
def test_a_killed_rank_is_told_within_two_seconds(path: str, library: Path, transports: str) -> None:
    far = (path == "ucx/direct") == (transports == "tcp")
    options = {"PEERWAY_PATHS": path, "PEERWAY_UCX_LIBRARY": library}
    with start("lost", size=32 << 20, transports=transports, far=far, **options) as ranks:  # type: ignore[arg-type]
        ranks.read_all()
        killed = ranks.kill(1)
        during, waiting, after = ranks.read(0), ranks.read(0), ranks.read(0)
        ranks.end(1)
    assert [error["kind"] for error in (during, waiting, after)] == ["PeerLost"] * 3
    assert "rank 1" in during["text"]
    assert after["at"] - killed < 2


@pytest.mark.parametrize("library", LIBRARIES)
def test_gpu_memory_is_staged_where_ucx_does_not_see_it(library: Path, doubles: dict[str, str]) -> None:
    for answer in answers_of("devices", size=3_000_001, PEERWAY_UCX_LIBRARY=library, **doubles):
        assert answer["home"]
        assert answer["staged"] == ""
        assert "sees no cuda memory; install a UCX that does (for cuda: libucx-cu13; " in str(
            answer["direct"]
        )


# In one of six such deaths UCX ended a survivor's process, when it answered a put of the dead rank.
@pytest.mark.parametrize("library", LIBRARIES)
def test_deaths_of_ranks_that_put_leave_the_others_at_work(library: Path) -> None:
    environment = {"PEERWAY_PATHS": "ucx/direct", **settings_of(library, "tcp")}
    for victims in ((1, 2), (3, 1)):
        with Ranks("ucx_deaths.py", 4, 1 << 20, **environment) as ranks:
            assert ranks.read_all() == ["working"] * 4
            alive = [0, 1, 2, 3]
            for victim in victims:
                ranks.kill(victim)
                alive.remove(victim)
                assert [ranks.read(rank) for rank in alive] == [{"lost": victim}] * len(alive)
            for rank in alive:
                ranks.send_line(rank)
            ranks.end(*victims)


@pytest.mark.parametrize("library", LIBRARIES)
def test_over_tcp_closed_memory_is_left_alone(library: Path) -> None:
    first, second = answers_of(
        "closed", size=200_000, PEERWAY_PATHS="ucx/direct", PEERWAY_UCX_LIBRARY=library
    )
    assert [first[of]["kind"] for of in ("put", "get", "signal")] == ["StaleKey", "StaleKey", ""]  # type: ignore[index]
    assert "rank 1" in first["put"]["text"]  # type: ignore[index]
    assert second == {"untouched": True}


@needs_some
def test_damaged_keys_are_refused() -> None:
    for answer in answers_of("damaged"):
        assert answer == {"found": ["BadKey", "ForeignKey"]}  # the latter if the job's number is damaged


def test_without_ucx_the_reason_is_told(tmp_path: Path) -> None:
    for answer in answers_of("unsupported", PEERWAY_UCX="off"):
        for failed in (answer["put"], answer["signal"]):
            assert failed["kind"] == "Unsupported"  # type: ignore[index]
            assert "PEERWAY_UCX=off" in failed["text"]  # type: ignore[index]
    (answer, _) = answers_of("paths", far=False, PEERWAY_UCX="auto")
    assert "PEERWAY_UCX=on" in answer["unavailable"]["ucx/direct"]  # type: ignore[index]
    assert answer["libraries"] == []


@pytest.mark.parametrize("kind", ["absent", "garbage", "another library"])
def test_a_bad_library_is_a_typed_error(kind: str, tmp_path: Path) -> None:
    library = tmp_path / "libucp.so.0"
    if kind == "garbage":
        library.write_bytes(bytes(range(256)) * 100)
    if kind == "another library":
        library = next(iter([*Path("/lib").glob("*-linux-gnu/libm.so.6"), Path("/lib64/libm.so.6")]))
    for answer in answers_of("paths", PEERWAY_UCX_LIBRARY=library):
        assert answer["refused"] == "Unavailable"
        assert str(library) in str(answer["text"])
        assert "libucx-cu13" in str(answer["text"])


def test_a_name_that_is_no_choice_is_refused() -> None:
    for answer in answers_of("paths", PEERWAY_UCX="maybe"):
        assert answer["refused"] == "BadConfig"
        assert "maybe" in str(answer["text"])
