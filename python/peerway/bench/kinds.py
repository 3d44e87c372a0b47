"""The tests there are: what each one does, how its samples become times, and what its table shows."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20
BANDWIDTH_WINDOW = 64  # messages in flight, as the OSU benchmarks have it
BANDWIDTH_BYTES = 64 * MIB  # a window of large messages moves about this much
FEWEST_IN_WINDOW = 4


@dataclass(frozen=True, slots=True)
class Kind:
    """One test. `loop` is the timed loop of the core, `ways` the one-way trips in a sample.

    `column` is the field of a record that its table shows. `touch`: the receiver reads what arrived. `via`:
    the only way there is, of a test that moves no data between ranks.
    """

    name: str
    summary: str
    op: str
    loop: str
    ways: int = 1
    windowed: bool = False
    streams_a_pair: int = 1
    all_pairs: bool = False
    column: str = "p50_us"
    touch: bool = False
    via: str = ""
    sized: bool = True
    strided: bool = True

    def window(self, size: int) -> int:
        """Messages in one sample."""
        if not self.windowed:
            return 1
        return max(FEWEST_IN_WINDOW, min(BANDWIDTH_WINDOW, BANDWIDTH_BYTES // max(size, 1)))


ROUTE = "route"  # the automatic choice
MEMCPY, FLAG = "memcpy", "flag"
LIMITS = (MEMCPY, FLAG)  # what the hardware allows; no way to move data between ranks
MBPS, RATE = "bandwidth_MBps", "messages_per_s"

KINDS = {
    kind.name: kind
    for kind in (
        Kind("put_latency", "put with signal, there and back, halved", "put", "ping_pong", ways=2),
        Kind("get_latency", "get and flush: the whole operation", "get", "get_window"),
        Kind("put_bw", "a window of puts, then a flush", "put", "put_window", windowed=True, column=MBPS),
        Kind("get_bw", "a window of gets, then a flush", "get", "get_window", windowed=True, column=MBPS),
        Kind(
            "put_bibw", "windows of puts both ways at once", "put", "put_both",
            windowed=True, streams_a_pair=2, column=MBPS,
        ),
        Kind(
            "put_mbw_mr", "windows of puts by all pairs of ranks at once", "put", "put_window",
            windowed=True, all_pairs=True, column=RATE,
        ),
        Kind(
            "signal_latency", "a signal alone, there and back, halved", "signal", "signal_ping_pong",
            ways=2, via=ROUTE, sized=False, strided=False,
        ),
        Kind(
            "pingpong", "as put_latency, and the receiver reads the data", "put", "ping_pong",
            ways=2, touch=True,
        ),
        Kind("cube", "the faces of a cube of doubles, put with signal, halved", "put", "ping_pong", ways=2),
        Kind(
            "registration", "registering memory that is registered", "register", "register_again",
            via="cache", strided=False,
        ),
    )
}  # fmt: skip

DEFAULT_TESTS = tuple(KINDS)
