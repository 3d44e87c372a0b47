"""The Python interface between real ranks, and its edges: arrays in, views out, typed errors."""

from __future__ import annotations

import array
import signal
import sys

import numpy as np
import pytest
from launching import LIMIT, Run, ranks, source_of

import peerway
from peerway.errors import by_status


def test_ranks_put_around_a_ring_with_signals() -> None:
    said = ranks(
        """
        import numpy as np, peerway
        with peerway.Context() as ctx:
            mine = np.full(1000, ctx.rank, np.int64)
            region = ctx.register(mine)
            inbox = ctx.allocate("host", mine.nbytes)
            left, right = (ctx.rank - 1) % ctx.size, (ctx.rank + 1) % ctx.size
            arrived = ctx.signal(left)
            inboxes = ctx.team.all_gather(inbox.key())
            signals = ctx.team.all_gather(arrived.key())
            to, notified = ctx.import_key(inboxes[right]), ctx.import_key(signals[right])
            ctx.put(to, region, notify=notified)
            arrived.wait(1, timeout=60)
            assert (inbox.array(np.int64) == left).all()
            ctx.flush()
            ctx.team.barrier(60)
            print("rank", ctx.rank, "done")
        """,
        count=3,
    )
    assert sorted(said.split("\n")[:3]) == [f"rank {rank} done" for rank in range(3)]


def test_strided_blocks_reach_their_places_and_get_brings_them_back() -> None:
    ranks(
        """
        import numpy as np, peerway
        with peerway.Context() as ctx:
            cube = np.zeros((6, 7, 8)); back = np.zeros_like(cube)
            if ctx.rank == 0:
                cube[:] = np.random.default_rng(1).random(cube.shape)
            region, returned = ctx.register(cube), ctx.register(back)
            far = ctx.import_key(ctx.team.all_gather(region.key())[1 - ctx.rank])
            face = dict(counts=(6, 7), strides=cube.strides[:2], block_bytes=8, offset=5 * 8)
            if ctx.rank == 0:
                ctx.put(far.block(**face), region.block(**face))
                ctx.flush(1)
                ctx.get(returned.block(**face), far.block(**face))
                ctx.flush(1)
                assert (back[:, :, 5] == cube[:, :, 5]).all()
                assert np.count_nonzero(back) == 42
            ctx.team.barrier(60)
            if ctx.rank == 1:
                assert np.count_nonzero(cube[:, :, 5]) == 42 == np.count_nonzero(cube)
        """
    )


def test_a_team_over_another_broadcast_and_a_stand_in_communicator() -> None:
    class Alone:
        """What from_mpi needs of an mpi4py communicator."""

        def Get_rank(self) -> int:  # noqa: N802
            return 0

        def Get_size(self) -> int:  # noqa: N802
            return 1

        def bcast(self, data: bytes, root: int) -> bytes:
            assert root == 0
            return data

    with peerway.Team.from_mpi(Alone()) as team:
        assert (team.rank, team.size) == (0, 1)
        assert team.all_gather(b"abc", 10) == [b"abc"]


def test_memory_is_seen_where_it_lies(ctx: peerway.Context) -> None:
    array = np.arange(12, dtype=np.int32)
    region = ctx.register(array)
    assert region.address == array.ctypes.data
    region.array(np.int32, (3, 4))[1, 1] = 99
    assert array[5] == 99
    text = bytearray(b"peerway")
    assert bytes(ctx.register(text).array()) == b"peerway"
    with pytest.raises(peerway.InvalidArgument, match="96 bytes, but the region has 48"):
        region.array(np.float64, 12)


def test_negative_offsets_count_from_the_end_as_in_python(ctx: peerway.Context) -> None:
    ours, theirs = np.arange(64, dtype=np.uint8), np.zeros(64, np.uint8)
    region, target = ctx.register(ours), ctx.register(theirs)
    remote = ctx.import_key(target.key())
    for to, source in ((slice(-8, None), slice(0, 8)), (slice(8, -40), slice(-24, -8))):
        expected = theirs.copy()
        expected[to] = ours[source]
        ctx.put(remote[to], region[source])
        ctx.flush()
        assert (theirs == expected).all()
    ctx.put(remote[-32, 4], region[-4, 4])
    ctx.flush()
    assert (theirs[32:36] == ours[60:]).all()


def test_arrays_that_cannot_be_registered_are_refused_with_the_way_out(ctx: peerway.Context) -> None:
    with pytest.raises(peerway.InvalidArgument, match="Register the array it is a view of"):
        ctx.register(np.zeros((4, 4))[:, 1])
    with pytest.raises(peerway.InvalidArgument, match="exposes no memory"):
        ctx.register(object())


def test_a_read_only_array_is_a_source(ctx: peerway.Context) -> None:
    frozen = np.arange(8.0)
    frozen.flags.writeable = False
    target = np.zeros(8)
    source, region = ctx.register(frozen), ctx.register(target)
    ours, theirs = ctx.import_key(source.key()), ctx.import_key(region.key())
    assert (source.read_only, region.read_only, ours.read_only, theirs.read_only) == (
        True,
        False,
        True,
        False,
    )
    ctx.put(theirs.view(float)[:4], frozen[:4])
    ctx.get(target[4:], ours.view(float)[4:])
    ctx.flush()
    assert (target == frozen).all()
    assert not source.array(float).flags.writeable
    assert not np.asarray(source).flags.writeable
    constant = ctx.register(b"constant")
    ctx.put(theirs[:8], constant)
    ctx.flush()
    assert target.view("u1")[:8].tobytes() == b"constant"


def test_memory_may_be_registered_as_source_and_as_target(ctx: peerway.Context) -> None:
    u = np.zeros(8)
    view = u[:]
    view.flags.writeable = False
    source, region = ctx.register(view), ctx.register(u)
    assert (source.read_only, region.read_only) == (True, False)
    ones = ctx.register(np.ones(4))
    ctx.get(u[:4], ctx.import_key(ones.key()).view(float))
    ctx.flush()
    ctx.put(ctx.import_key(region.key()).view(float)[4:], view[:4])
    ctx.flush()
    assert u.tolist() == [1.0] * 8


def test_mistakes_raise_the_type_that_names_them(ctx: peerway.Context) -> None:
    region = ctx.allocate("host", 4096)
    remote = ctx.import_key(region.key())
    with pytest.raises(peerway.OutOfRange, match="4096"):
        ctx.put(remote[4000:5000], region[0:1000])
    with pytest.raises(peerway.InvalidArgument):
        ctx.put(remote[0:10], region[0:20])
    with pytest.raises(peerway.BadKey):
        ctx.import_key(region.key()[:-1])
    with pytest.raises(peerway.InvalidArgument, match="pear"):
        ctx.use("pear")
    with pytest.raises(peerway.InvalidArgument, match="gpu"):
        ctx.allocate("gpu", 8)
    with pytest.raises(peerway.InvalidArgument, match="contiguous range of bytes"):
        region[0:8:2]
    region.close()
    with pytest.raises(peerway.StaleKey):
        ctx.put(remote[0:8], ctx.allocate("host", 8))
    with pytest.raises(peerway.Closed):
        region.key()


def test_a_wait_ends_with_its_timeout(ctx: peerway.Context) -> None:
    signal = ctx.signal(0)
    with pytest.raises(TimeoutError):
        signal.wait(1, timeout=0.05)
    with pytest.raises(peerway.InvalidArgument, match="-1"):
        signal.wait(1, timeout=-1)
    ctx.notify(ctx.import_key(signal.key()), by=3)
    signal.wait(3, timeout=10)
    assert signal.value == 3


def test_closing_the_context_closes_what_was_made_from_it() -> None:
    context = peerway.Context()
    region, signal = context.allocate("host", 64), context.signal()
    context.close()
    context.close()
    for call in (region.key, signal.key, context.flush):
        with pytest.raises(peerway.Closed):
            call()


@pytest.mark.parametrize("shuffles", [3, pytest.param(12, marks=pytest.mark.long)])
def test_nothing_that_has_ended_ends_the_process(run: Run, shuffles: int) -> None:
    program = [str(source_of("lifetimes.py")), "host", str(shuffles)]
    done = run([sys.executable, "-X", "faulthandler", *program], timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "'raised'" in done.stdout


def test_every_status_has_its_exception() -> None:
    names = {
        kind.status for kind in map(by_status, ["timeout", "peer_lost", "stale_key", "bad_table", "denied"])
    }
    assert names == {"timeout", "peer_lost", "stale_key", "bad_table", "denied"}
    assert by_status("of the future") is peerway.Error


def test_what_a_signal_handler_raises_goes_before_the_error_of_the_call(ctx: peerway.Context) -> None:
    def handler(*_: object) -> None:
        raise InterruptedError("by hand")

    def interrupted_wait() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.003)
        waited.wait(1, timeout=0.01)  # shorter than the interval at which it checks for signals

    waited = ctx.signal()
    before = signal.signal(signal.SIGALRM, handler)
    try:
        for _ in range(5):
            with pytest.raises(InterruptedError, match="by hand"):
                interrupted_wait()
    finally:
        signal.signal(signal.SIGALRM, before)


def test_elements_of_arrays_go_to_elements_of_remotes() -> None:
    ranks(
        """
        import numpy as np, peerway
        with peerway.Context() as ctx:
            other = 1 - ctx.rank
            u = np.random.default_rng(ctx.rank).random((6, 8))
            ours, inbox = u.copy(), np.zeros((6, 8), order="F")
            held = [ctx.register(u), ctx.register(inbox)]
            keys = ctx.team.all_gather(held[1].key())
            sums = ctx.team.all_gather(ours.tobytes())
            theirs = np.frombuffer(sums[other]).reshape(6, 8)
            far = ctx.import_key(keys[other])
            transposed = far.view(float, (8, 6))        # of an array in Fortran order
            for column in range(8):
                ctx.put(transposed[column, 1:-1], u[1:-1, column])
            ctx.flush(); ctx.team.barrier(60)
            assert (inbox[1:-1] == theirs[1:-1]).all() and not inbox[0].any()
            back = np.zeros((3, 4))
            keep = ctx.register(back)
            ctx.get(back[:, 1], transposed[2, ::2])
            ctx.flush()
            assert (back[:, 1] == [0, ours[2, 2], ours[4, 2]]).all() and back[:, 0].sum() == 0
            swap = np.zeros((6, 8))
            region = ctx.register(swap)
            plan = ctx.plan().send(other, 0, u[:, 3]).receive(other, 0, swap[:, 5]).prepare()
            plan.run()
            assert (swap[:, 5] == theirs[:, 3]).all() and np.count_nonzero(swap) == 6
            words = far.view("u8")                      # raw words of the same bytes
            ctx.put(words[:4], np.asarray(region).view("u8")[:4])
            ctx.flush(); ctx.team.barrier(60)
        """
    )


def test_a_region_is_an_array_for_other_libraries(ctx: peerway.Context) -> None:
    region = ctx.allocate("host", 64)
    for show in (np.asarray, np.from_dlpack, lambda region: region.array()):
        array = show(region)
        assert (array.dtype, array.shape, array.ctypes.data) == (np.uint8, (64,), region.address)
        array[:] += 1
    assert (region.array() == 3).all()
    assert np.array(region, copy=True).ctypes.data != region.address
    assert region.__dlpack_device__() == (1, 0)
    assert not hasattr(region, "__cuda_array_interface__")
    fields = region.array([("a", "u2"), ("b", "f4")])
    assert fields.dtype.names == ("a", "b")
    assert ctx.register(region.array("f8")).bytes == 64
    with pytest.raises(TypeError, match="no values to go through"):
        list(region)


def test_parts_are_named_by_their_end_or_by_their_length(ctx: peerway.Context) -> None:
    region, source = ctx.allocate("host", 64), np.arange(64, dtype=np.uint8)
    mine = ctx.register(source)
    far = ctx.import_key(region.key())
    assert len(far) == len(region) == 64
    ctx.put(far[8, 4], mine[20:24])  # 4 bytes from byte 8 on
    ctx.put(far[np.int64(0), np.int64(2)], source[30:32])
    ctx.put(far[60:], mine[:4])
    ctx.flush()
    expected = np.zeros(64, np.uint8)
    expected[8:12], expected[0:2], expected[60:] = source[20:24], source[30:32], source[:4]
    assert (region.array() == expected).all()
    ctx.get(mine[32, 16], far[:16])
    ctx.flush()
    assert (source[32:48] == expected[:16]).all()
    for wrong in ((0, 1, 2), (slice(0, 2), 3)):
        with pytest.raises(peerway.InvalidArgument, match=r"\[first, bytes\] does"):
            region[wrong]  # type: ignore[index]


def test_keys_and_arrays_of_any_library_are_taken(ctx: peerway.Context) -> None:
    class OnlyDlpack:
        """An array that supports DLPack only."""

        def __init__(self, of: np.ndarray) -> None:  # type: ignore[type-arg]
            self._of = of

        def __dlpack__(self, **_: object) -> object:
            return self._of.__dlpack__()

        def __dlpack_device__(self) -> object:
            return self._of.__dlpack_device__()

    home = ctx.allocate("host", 64)
    key = home.key()
    keys = (key, bytearray(key), memoryview(key), np.frombuffer(key, np.uint8))
    numbers = (
        array.array("d", range(8)),
        OnlyDlpack(np.arange(8.0)),
        np.arange(8.0),
        bytearray(np.arange(8.0)),
    )
    for one, given in zip(keys, numbers, strict=True):
        far = ctx.import_key(one)
        region = ctx.register(given)
        home.array()[:] = 0
        ctx.put(far, region)
        ctx.put(far[8:16], region.view("f8")[7:])
        ctx.flush()
        assert list(home.array("f8")) == [0, 7, 2, 3, 4, 5, 6, 7]
        region.close()
