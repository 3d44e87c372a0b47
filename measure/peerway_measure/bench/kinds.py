"""All tests: what each one does, how its samples become times, and which column its table shows."""

from __future__ import annotations

from dataclasses import dataclass

from peerway_measure.memories import is_gpu

MIB = 1 << 20
BANDWIDTH_WINDOW = 64  # messages in flight, as in the OSU benchmarks
BANDWIDTH_BYTES = 64 * MIB  # about how much a window of large messages moves
FEWEST_IN_WINDOW = 4


@dataclass(frozen=True, slots=True)
class TestKind:
    """One test.

    `loop` is the core's function that takes the samples, `one_way_trips` how many of them a sample has.
    `column` is the field of a record that the table shows. With `touch` the receiver reads the data that
    arrived. `via` is the only `via` of a test that moves no data between ranks.

    `plans` are the values of a record's `via` over plans, to which memory of GPUs adds `gpu_plans`. A test
    that is not `by_paths` has no others, and a benchmark without named tests leaves it out (`usual`). With
    `policies` each is measured once for each wait policy.
    """

    name: str
    summary: str
    op: str
    loop: str
    one_way_trips: int = 1
    windowed: bool = False
    streams_a_pair: int = 1
    all_pairs: bool = False
    column: str = "p50_us"
    touch: bool = False
    via: str = ""
    sized: bool = True
    strided: bool = True
    by_paths: bool = True
    plans: tuple[str, ...] = ()
    gpu_plans: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()

    @property
    def usual(self) -> bool:
        """Whether a benchmark that names no tests includes it."""
        return self.by_paths and not self.by_methods

    @property
    def by_methods(self) -> bool:
        """Whether it compares the methods of plans (docs/library/plans.md) for one kind of memory, instead of
        paths.
        """
        return self.op == SEND

    @property
    def routed_op(self) -> str:
        """The operation whose routes are measured. Signals and registrations use the routes of puts."""
        return self.op if self.op in ("get", SEND) else "put"

    @property
    def tells_latency(self) -> bool:
        """Whether its result is a latency. Waiting is a part of it, so the table also shows the CPU time that
        the waits take.
        """
        return self.column == "p50_us"

    def plan_variants(self, memory: str) -> tuple[str, ...]:
        """The one_way_trips over plans for one kind of memory."""
        return self.plans + self.gpu_plans if is_gpu(memory) else self.plans

    def window(self, size: int) -> int:
        """The number of messages in one sample."""
        if not self.windowed:
            return 1
        return max(FEWEST_IN_WINDOW, min(BANDWIDTH_WINDOW, BANDWIDTH_BYTES // max(size, 1)))


ROUTE = "route"  # the automatic choice
SEND = "send"  # a plan's send
MEMCPY, FLAG = "memcpy", "flag"
LIMITS = (MEMCPY, FLAG)  # limits of the hardware, which move no data between ranks
MBPS, RATE = "bandwidth_MBps", "messages_per_s"

STARTS = ("plan", "plan/stream")  # from the host, in the order of a stream
TWO_SIDED = ("sendrecv", "sendrecv/stream")  # as STARTS, with sends and receives
POLICIES = ("busy-poll", "blocking")
MODES = ("cpu", "transmit", "stream", "kernel")  # library/src/bench/async.h

KINDS = {
    kind.name: kind
    for kind in (
        TestKind("put_latency", "put with signal, half a round trip", "put", "ping_pong", one_way_trips=2),
        TestKind("get_latency", "get and flush: the whole operation", "get", "get_window"),
        TestKind("put_bw", "a window of puts, then a flush", "put", "put_window", windowed=True, column=MBPS),
        TestKind("get_bw", "a window of gets, then a flush", "get", "get_window", windowed=True, column=MBPS),
        TestKind(
            "put_bibw", "windows of puts both one_way_trips at once", "put", "put_both",
            windowed=True, streams_a_pair=2, column=MBPS,
        ),
        TestKind(
            "put_mbw_mr", "windows of puts by all pairs of ranks at once", "put", "put_window",
            windowed=True, all_pairs=True, column=RATE,
        ),
        TestKind(
            "signal_latency", "a signal alone, half a round trip", "signal", "signal_ping_pong",
            one_way_trips=2, via=ROUTE, sized=False, strided=False,
        ),
        TestKind(
            "pingpong", "as put_latency, and the receiver reads the data", "put", "ping_pong",
            one_way_trips=2, touch=True,
        ),
        TestKind(
            "cube", "the faces of a cube of doubles, put with signal, half a round trip", "put", "ping_pong",
            one_way_trips=2, plans=STARTS, gpu_plans=("plan/graph",),
        ),
        TestKind(
            "registration", "registering memory that is registered", "register", "register_again",
            via="cache", strided=False,
        ),
        TestKind(
            "exchange", "put with signal, and wait for the partner's, on both sides at once", "exchange",
            "exchange", strided=False, by_paths=False, plans=STARTS + TWO_SIDED,
            gpu_plans=("plan/graph", "sendrecv/graph"),
        ),
        TestKind(
            "plan_latency", "put with signal, and wait, as two plans, half a round trip", "put",
            "latency", one_way_trips=2, strided=False, by_paths=False, plans=STARTS + TWO_SIDED,
            gpu_plans=("plan/graph", "sendrecv/graph"),
        ),
        TestKind(
            "send_latency", "a send and its receive, as plans, by each method; half a round trip", SEND,
            "latency", one_way_trips=2, strided=False,
        ),
        TestKind(
            "send_exchange", "a send and a receive, as a plan, on both sides at once, by each method", SEND,
            "exchange", strided=False,
        ),
        TestKind(
            "kernel_latency", "put with signal from inside a kernel, half a round trip", "put",
            "latency", one_way_trips=2, strided=False, by_paths=False,
            gpu_plans=("plan/kernel", "sendrecv/kernel", "packets/kernel"),
        ),
        TestKind(
            "halo", "the halo of a distributed array, refreshed", "halo", "halo", sized=False, strided=False,
            by_paths=False, plans=STARTS, gpu_plans=("plan/graph",),
        ),
        TestKind(
            "async_pingpong", "receive, compute, send on each side, half a round trip", "put", "async",
            one_way_trips=2, sized=False, strided=False, by_paths=False, plans=MODES, gpu_plans=("graph",),
            policies=POLICIES,
        ),
    )
}  # fmt: skip

PLAN_WAYS = frozenset(
    part
    for kind in KINDS.values()
    for variant in kind.plans + kind.gpu_plans
    for part in (variant, variant.partition("/")[0], *(f"{variant}/{policy}" for policy in kind.policies))
)
"""Names of one_way_trips over plans that may be asked for as paths are."""

DEFAULT_TESTS = tuple(kind.name for kind in KINDS.values() if kind.usual)
