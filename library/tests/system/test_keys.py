"""Bad input: keys that are stale, foreign or damaged, spans out of range, strides that cannot be, settings
that cannot
be used. Each is refused with an exception of its own whose message has the value, the range and what to
do."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from launching import source_of
from ranks import Ranks

import peerway

SIZE = 1 << 20


@pytest.fixture
def ctx(own_settings: None) -> Iterator[peerway.Context]:
    """A team of one: this process is its own peer."""
    with peerway.Context() as context:
        yield context


@pytest.fixture
def pair(ctx: peerway.Context) -> tuple[peerway.Region, peerway.Remote]:
    """A region of this rank, and the same region as a peer sees it."""
    region = ctx.allocate("host", SIZE)
    return region, ctx.import_key(region.key())


Pair = tuple[peerway.Region, peerway.Remote]


def says(error: pytest.ExceptionInfo[peerway.Error], *words: object) -> None:
    """Check that the message contains all of these, and begins like every message of the library."""
    message = str(error.value)
    assert message.startswith("peerway: ")
    for word in words:
        assert str(word) in message, message


# ---- keys


@pytest.mark.parametrize("kind", ["allocated", "registered"])
def test_the_key_of_a_closed_region_is_stale(ctx: peerway.Context, kind: str) -> None:
    memory = np.zeros(64, np.uint8)
    region = ctx.allocate("host", 64) if kind == "allocated" else ctx.register(memory)
    mine = ctx.allocate("host", 64)
    key, remote = region.key(), ctx.import_key(region.key())
    region.close()
    for use in (lambda: ctx.put(remote, mine), lambda: ctx.get(mine, remote), lambda: ctx.import_key(key)):
        with pytest.raises(peerway.StaleKey) as error:
            use()
        says(error, "rank 0", "closed", "new key")


def test_the_key_stays_stale_when_another_region_takes_its_place(ctx: peerway.Context) -> None:
    mine = ctx.allocate("host", 64)
    first = ctx.allocate("host", 64)
    key, remote = first.key(), ctx.import_key(first.key())
    first.close()
    second = ctx.allocate("host", 64)
    assert second.key() != key
    with pytest.raises(peerway.StaleKey):
        ctx.put(remote, mine)
    with pytest.raises(peerway.StaleKey):
        ctx.import_key(key)
    ctx.put(ctx.import_key(second.key()), mine)


def test_memory_registered_again_after_its_region_was_closed_has_a_new_key(ctx: peerway.Context) -> None:
    memory, mine = np.zeros(64, np.uint8), ctx.allocate("host", 64)
    first = ctx.register(memory)
    key = first.key()
    first.close()
    second = ctx.register(memory)
    with pytest.raises(peerway.StaleKey):
        ctx.import_key(key)
    mine.array()[:] = 9
    ctx.put(ctx.import_key(second.key()), mine)
    ctx.flush()
    assert memory.tolist() == [9] * 64


def test_two_registrations_of_one_span_end_with_the_second(ctx: peerway.Context) -> None:
    memory, mine = np.zeros(64, np.uint8), ctx.allocate("host", 64)
    first, second = ctx.register(memory), ctx.register(memory)
    assert first.key() == second.key()
    remote = ctx.import_key(first.key())
    first.close()
    ctx.put(remote, mine)
    second.close()
    with pytest.raises(peerway.StaleKey):
        ctx.put(remote, mine)


def test_the_key_of_a_closed_signal_is_stale(ctx: peerway.Context, pair: Pair) -> None:
    signal = ctx.signal()
    key, remote = signal.key(), ctx.import_key(signal.key())
    signal.close()
    with pytest.raises(peerway.StaleKey) as error:
        ctx.notify(remote)
    says(error, "signal of rank 0", "closed")
    with pytest.raises(peerway.StaleKey):
        ctx.put(pair[1], pair[0], remote)
    with pytest.raises(peerway.StaleKey):
        ctx.import_key(key)


def test_the_key_of_another_job_is_foreign() -> None:
    with Ranks("keys.py", 1, "say") as other_job:
        for key in other_job.read(0):
            with Ranks("keys.py", 2, "try", key) as other:
                for kind, message in other.read_all():
                    assert (kind, "another job" in message) == ("ForeignKey", True)
        other_job.send_line(0)
        other_job.end()


def test_a_truncated_key_is_refused_at_every_length(pair: Pair, ctx: peerway.Context) -> None:
    key = pair[0].key()
    for length in range(len(key)):
        with pytest.raises(peerway.BadKey) as error:
            ctx.import_key(key[:length])
        says(error, f"{length} bytes")
    with pytest.raises(peerway.BadKey) as error:
        ctx.import_key(key + b"x")
    says(error, len(key) + 1, len(key))


def test_a_damaged_key_is_refused_wherever_the_damage_is(pair: Pair, ctx: peerway.Context) -> None:
    key = pair[0].key()
    job = range(16, 24)  # with another number here, it looks like a key of another job
    for place in range(len(key)):
        with pytest.raises(peerway.ForeignKey if place in job else peerway.BadKey):
            ctx.import_key(key[:place] + bytes([key[place] ^ 0x40]) + key[place + 1 :])


def test_a_forged_key_is_refused_before_anything_in_it_is_believed() -> None:
    with Ranks("keys.py", 2, "forge") as ranks:
        answers, _ = ranks.read_all()
        ranks.end()
    assert answers.pop("none") == "fine: 2"
    assert len(answers) == 8
    assert set(answers.values()) == {"BadKey"}, answers


def test_region_and_signal_are_not_mixed_up(ctx: peerway.Context, pair: Pair) -> None:
    kept = ctx.signal()
    signal = ctx.import_key(kept.key())
    with pytest.raises(peerway.InvalidArgument) as error:
        ctx.notify(pair[1])
    says(error, "region", "signal")
    with pytest.raises(peerway.InvalidArgument) as error:
        ctx.put(signal, pair[0][0:8])
    says(error, "signal", "region")
    with pytest.raises(peerway.InvalidArgument) as error:
        ctx.notify(signal, 0)
    says(error, "at least 1")


# ---- spans and strides


@pytest.mark.parametrize(
    ("offset", "size"), [(SIZE - 4095, 4096), (SIZE + 1, 0), (0, SIZE + 1), (2**63, 2**63 - 1)]
)
@pytest.mark.parametrize("side", ["remote", "local"])
def test_a_run_past_the_end_is_out_of_range(
    ctx: peerway.Context, pair: Pair, side: str, offset: int, size: int
) -> None:
    region, remote = pair
    far, near = remote.block((), (), size, offset), region.block((), (), size, 0)
    if side == "local":
        far, near = remote.block((), (), size, 0), region.block((), (), size, offset)
    for use in (lambda: ctx.put(far, near), lambda: ctx.get(near, far)):
        with pytest.raises(peerway.OutOfRange) as error:
            use()
        says(error, size, SIZE, "past the end")


BAD_BLOCKS = {
    "negative stride": ((4,), (-8,), 8, 64, peerway.InvalidArgument, ["-8", "dimension 0", "positive"]),
    "zero stride": ((4, 2), (64, 0), 8, 0, peerway.InvalidArgument, ["stride 0", "dimension 1", "positive"]),
    "overlap": ((4,), (7,), 8, 0, peerway.InvalidArgument, ["stride 7", "8 bytes", "overlap"]),
    "outer overlap": ((4, 4), (24, 8), 8, 0, peerway.InvalidArgument, ["stride 24", "dimension 0", "32"]),
    "past the end": ((1024,), (1024,), 8, SIZE - 1023 * 1024 - 7, peerway.OutOfRange, [SIZE, "past the end"]),
    "count overflow": ((2**63, 8), (2**62, 8), 8, 0, peerway.OutOfRange, ["overflows 64 bits"]),
    "size overflow": ((2**40, 2**40), (2**50, 8), 8, 0, peerway.OutOfRange, ["overflows 64 bits"]),
}


@pytest.mark.parametrize("side", ["remote", "local"])
@pytest.mark.parametrize("name", BAD_BLOCKS)
def test_blocks_that_cannot_be_are_refused(ctx: peerway.Context, pair: Pair, side: str, name: str) -> None:
    counts, strides, block, offset, kind, words = BAD_BLOCKS[name]
    region, remote = pair
    bad = (counts, strides, block, offset)
    far = remote.block(*bad) if side == "remote" else remote[0:block]
    near = region.block(*bad) if side == "local" else region[0:block]
    for use in (lambda: ctx.put(far, near), lambda: ctx.get(near, far)):
        with pytest.raises(kind) as error:
            use()
        says(error, *words)
        assert "overflows" in str(error.value) or f"{side} region" in str(error.value)


def test_sides_that_do_not_match_are_refused(ctx: peerway.Context, pair: Pair) -> None:
    region, remote = pair
    with pytest.raises(peerway.InvalidArgument) as error:
        ctx.put(remote[0:100], region[0:99])
    says(error, 100, 99)
    with pytest.raises(peerway.InvalidArgument) as error:
        ctx.put(remote.block((4, 2), (64, 16), 8), region.block((2, 4), (64, 16), 8))
    says(error, "counts", "contiguous")
    with pytest.raises(peerway.InvalidArgument):
        remote.block((1,) * 5, (8,) * 5, 8)


@pytest.mark.parametrize("rank", [1, -2, 77])
def test_a_rank_outside_the_team_is_out_of_range(ctx: peerway.Context, rank: int) -> None:
    with pytest.raises(peerway.OutOfRange) as error:
        ctx.flush(rank)
    says(error, rank, "0 to 0")
    with pytest.raises(peerway.OutOfRange) as error:
        ctx.signal(sender=rank)
    says(error, rank, "0 to 0")


def test_regions_that_cannot_be_are_refused(ctx: peerway.Context) -> None:
    with pytest.raises(peerway.InvalidArgument) as error:
        ctx.allocate("host", 0)
    says(error, "`bytes` is 0", "1 or more")
    with pytest.raises(peerway.NoMemory) as error:
        ctx.allocate("host", 2**62)
    says(error, 2**62)
    with pytest.raises(peerway.InvalidArgument) as error:
        ctx.register_memory(4096, 100)
    says(error, "100 bytes", "0x1000")
    with pytest.raises(peerway.Unavailable) as error:
        ctx.allocate("cuda:77", 64)
    says(error, "cuda:77", "host")


# ---- paths, settings, folders


def test_an_unknown_path_is_named_with_its_neighbour(ctx: peerway.Context) -> None:
    with pytest.raises(peerway.Error) as error:
        ctx.use("peer/shn")
    says(error, "peer/shn", "peer/shm")


def test_a_path_that_cannot_serve_says_why(ctx: peerway.Context, pair: Pair) -> None:
    ctx.use("peer/copy")
    with pytest.raises(peerway.Unsupported) as error:
        ctx.put(pair[1], pair[0])
    says(error, "peer/copy", "GPU")


def run_with(tmp_path: Path, *arguments: str, **settings: str) -> tuple[str, str]:
    """The output of a team of one that tries to import its own key with these settings."""
    with Ranks("keys.py", 1, "try", *(arguments or ("00",)), **settings) as ranks:
        process = ranks.processes[0]
        process.stdin.close()
        return process.stdout.read().decode(), process.stderr.read().decode()


BAD_TABLES = {
    "empty": "",
    "cut off": '{"peerway_routes": 1, "machine": {"cpu": "x"',
    "not json": "routes?\n",
    "other json": '{"hello": [1, 2, 3]}',
    "binary": "\x00\x01\x02",
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_a_route_table_that_was_asked_for_must_be_usable(tmp_path: Path, name: str) -> None:
    file = tmp_path / "table.json"
    file.write_text(BAD_TABLES[name])
    _, err = run_with(tmp_path, PEERWAY_ROUTES=str(file))
    assert "peerway.errors.BadTable: peerway: " in err, err
    assert str(file) in err


def test_a_route_table_that_is_not_there_is_named(tmp_path: Path) -> None:
    _, err = run_with(tmp_path, PEERWAY_ROUTES=str(tmp_path / "none.json"))
    assert "peerway.errors." in err
    assert str(tmp_path / "none.json") in err


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("PEERWAY_PATHS", "peer/shn", ["peer/shn", "peer/shm", "asked for by PEERWAY_PATHS"]),
        ("PEERWAY_STRICT", "maybe", ["PEERWAY_STRICT", "maybe", "on"]),
        ("PEERWAY_TIMEOUT", "soon", ["PEERWAY_TIMEOUT", "soon"]),
        ("PEERWAY_LAUNCHER", "ssh", ["PEERWAY_LAUNCHER", "ssh", "mpirun"]),
        ("PEERWAY_RULES", "/nowhere/rules.json", ["/nowhere/rules.json"]),
    ],
)
def test_settings_that_cannot_be_used(tmp_path: Path, setting: str, value: str, words: list[str]) -> None:
    _, err = run_with(tmp_path, **{setting: value})
    assert "peerway.errors." in err, err
    for word in words:
        assert word in err.splitlines()[-1], err


@pytest.mark.parametrize("kind", ["a file", "read-only"])
def test_folders_that_cannot_be_written_do_no_harm_on_the_host(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "home"
    folder.write_text("") if kind == "a file" else folder.mkdir(mode=0o500)
    settings = {"XDG_CONFIG_HOME": str(folder), "XDG_CACHE_HOME": str(folder), "HOME": str(folder)}
    out, err = run_with(tmp_path, **settings)
    assert "BadKey" in out, err  # of the key 00: everything before it worked
    assert err == ""


def test_a_wrong_secret_is_denied() -> None:
    with Ranks("keys.py", 2, "say", PEERWAY_TIMEOUT="3") as ranks:
        ranks.read_all()
        for rank in range(2):
            ranks.send_line(rank)
        ranks.end()
    settings = {**ranks.job, "PEERWAY_LOCAL_RANK": "0"}
    settings |= {"PEERWAY_RENDEZVOUS": f"unix:@peerway-test-{secrets.token_hex(8)}", "PEERWAY_TIMEOUT": "3"}
    programs = []
    for rank in range(2):
        own = {"PEERWAY_RANK": str(rank), "PEERWAY_SECRET": secrets.token_hex(16)}
        programs.append(
            subprocess.Popen(
                [sys.executable, source_of("keys.py"), "say"],
                env={**os.environ, **settings, **own},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    errors = [program.communicate()[1] for program in programs]
    assert "peerway.errors.Denied: peerway: " in errors[1], errors
    assert "secret" in errors[1]
    assert "peerway.errors." in errors[0], errors


def test_nobody_else_may_open_what_a_rank_shares() -> None:
    with Ranks("keys.py", 1, "say") as ranks:
        ranks.read(0)
        folder = Path(f"/proc/{ranks.processes[0].pid}/fd")
        shared = [entry for entry in folder.iterdir() if "memfd:peerway" in os.readlink(entry)]
        assert shared
        if os.geteuid() != 0:
            pytest.skip("only root can become another user to try")
        script = "import os, sys; os.setuid(65534)\nfor f in sys.argv[1:]:\n open(f, 'rb')"
        for entry in shared:
            done = subprocess.run(
                [sys.executable, "-c", script, str(entry)], capture_output=True, check=False
            )
            assert b"PermissionError" in done.stderr
        ranks.send_line(0)
        ranks.end()
