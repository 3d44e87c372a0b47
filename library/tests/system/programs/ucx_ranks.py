"""What the tests of the ucx path and of NICs have the ranks do; each scenario tells what it saw.

    ucx_ranks.py SCENARIO[,SCENARIO...] [BYTES]

With FAR_RANKS set, every rank takes itself for a host of its own.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path

import numpy as np

if os.environ.pop("FAR_RANKS", ""):
    os.environ["PEERWAY_HOST_ID"] = f"host {os.environ['PEERWAY_RANK']}"

import peerway

PATIENCE = 300.0  # seconds: if nothing is to fail, a slow call does not count as hanging


def say(**words: object) -> None:
    """Print one line of JSON for the test."""
    print(json.dumps(words), flush=True)


def hear() -> str:
    """Read a line from the test."""
    return sys.stdin.readline().strip()


class Pair:
    """Memory and a signal of this rank, and those of the other rank."""

    def __init__(self, ctx: peerway.Context, size: int) -> None:
        self.ctx, self.other, self.size = ctx, (ctx.rank + 1) % ctx.size, size
        self.bytes = np.zeros(size, np.uint8)
        self.source = np.random.default_rng(ctx.rank).integers(0, 256, size, dtype=np.uint8)
        self.target, self.near = ctx.register(self.bytes), ctx.register(self.source)
        self.signal = ctx.signal()
        self.far = ctx.import_key(ctx.team.all_gather(self.target.key())[self.other])
        self.far_signal = ctx.import_key(ctx.team.all_gather(self.signal.key())[self.other])

    def put(self, size: int) -> None:
        """Put and notify."""
        self.ctx.put(self.far[0:size], self.near[0:size], self.far_signal)


def failure(call: object) -> dict[str, object]:
    """How a call ended, and how long it took."""
    began = time.monotonic()
    try:
        call()  # type: ignore[operator]
        kind, text = "", ""
    except peerway.Error as error:
        kind, text = type(error).__name__, str(error)
    return {"kind": kind, "text": text, "seconds": time.monotonic() - began, "at": time.monotonic()}


def paths(ctx: peerway.Context, size: int) -> None:
    """Which paths there are, and which UCX is loaded."""
    pair = Pair(ctx, size)
    answers = {info.name: info.why_not for info in ctx.paths(pair.far, pair.near) if not info.available}
    libraries = {
        line.split(maxsplit=5)[-1]
        for line in Path("/proc/self/maps").read_text().splitlines()
        if "libuc" in line
    }
    say(unavailable=answers, libraries=sorted(libraries))
    ctx.team.barrier(timeout=PATIENCE)


def order(ctx: peerway.Context, size: int) -> None:
    """Data that changes with every notification must be there when the notification is;
    mixed sizes and threads.
    """
    pair, rounds = Pair(ctx, size), 200
    wrong = 0
    sizes = np.random.default_rng(7).integers(1, size, rounds)
    for n in range(1, rounds + 1):
        here = int(sizes[n - 1])
        pair.source[:here] = n % 251
        pair.put(here)
        pair.signal.wait(n, PATIENCE)
        wrong += int(np.count_nonzero(pair.bytes[:here] != n % 251))
        ctx.flush(timeout=PATIENCE)
        ctx.team.barrier(timeout=PATIENCE)
    say(wrong=wrong, value=pair.signal.value)


def threads(ctx: peerway.Context, size: int) -> None:
    """Several threads put and get parts of one region at once."""
    pair, parts = Pair(ctx, size), 4
    part, back = size // parts, np.zeros(size, np.uint8)
    landing = ctx.register(back)
    failures: list[dict[str, object]] = []

    def work(first: int) -> None:
        for at in range(first, first + part, part // 16):
            ctx.put(pair.far[at : at + part // 16], pair.near[at : at + part // 16], pair.far_signal)
        ctx.flush(pair.other, timeout=PATIENCE)
        ctx.get(landing[first : first + part], pair.far[first : first + part])
        ctx.flush(pair.other, timeout=PATIENCE)

    workers = [
        threading.Thread(target=lambda n=n: failures.append(failure(lambda: work(n * part))))
        for n in range(parts)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    pair.signal.wait(parts * 16, PATIENCE)
    ctx.team.barrier(timeout=PATIENCE)
    theirs = np.random.default_rng(pair.other).integers(0, 256, size, dtype=np.uint8)
    say(
        failures=[one for one in failures if one["kind"]],
        arrived=bool(np.array_equal(pair.bytes, theirs)),
        back=bool(np.array_equal(back, pair.source)),
    )
    ctx.team.barrier(timeout=PATIENCE)


def signals(ctx: peerway.Context, size: int) -> None:
    """Notifications continue where an earlier import of the signal stopped."""
    pair = Pair(ctx, size)
    key = ctx.team.all_gather(pair.signal.key())[pair.other]
    for _ in range(3):
        ctx.notify(pair.far_signal, 5)
        ctx.flush(timeout=PATIENCE)
        pair.far_signal.close()
        pair.far_signal = ctx.import_key(key)
    reached = failure(lambda: pair.signal.wait(15, PATIENCE))
    beyond = failure(lambda: pair.signal.wait(16, 0.2))
    say(reached=reached["kind"], beyond=beyond["kind"], value=pair.signal.value)
    ctx.team.barrier(timeout=PATIENCE)


def before_a_stop(ctx: peerway.Context, size: int) -> Pair:
    """A connected pair that has printed which process to stop, and has heard that rank 1 is stopped."""
    pair = Pair(ctx, size)
    pair.put(8)  # the first notification asks the signal's owner for its value
    pair.signal.wait(1, 30)
    ctx.flush(timeout=30)
    say(process=os.getpid())
    hear()
    return pair


def stopped(ctx: peerway.Context, size: int) -> None:
    """Flush to a rank that does not respond; then it responds again."""
    pair = before_a_stop(ctx, size)
    if ctx.rank == 0:
        for _ in range(4):
            pair.put(size)
        say(**failure(lambda: ctx.flush(timeout=0.5)))
        hear()
        say(**failure(lambda: ctx.flush(timeout=30)))
    else:
        pair.signal.wait(5, 30)
        say(arrived=bool(pair.bytes.any()))
    ctx.team.barrier(timeout=30)


def stopped_by_two(ctx: peerway.Context, size: int) -> None:
    """Two threads flush to an unresponsive rank: neither may take the other's flush for its own."""
    pair = before_a_stop(ctx, size)
    if ctx.rank == 0:
        for _ in range(4):
            ctx.put(pair.far[0:size], pair.near[0:size])  # no signal, whose word a flush waits for first
        ends: list[str] = []
        first = threading.Thread(
            target=lambda: ends.append(str(failure(lambda: ctx.flush(timeout=2))["kind"]))
        )
        first.start()
        while first.is_alive():
            ends.append(str(failure(lambda: ctx.flush(timeout=0.2))["kind"]))
        first.join()
        say(ends=sorted(set(ends)))
        hear()
        say(**failure(lambda: ctx.flush(timeout=30)))
    ctx.team.barrier(timeout=30)


def lost(ctx: peerway.Context, size: int) -> None:
    """Rank 0 keeps putting until rank 1 is killed."""
    pair = Pair(ctx, size)
    pair.put(8)
    pair.signal.wait(1, 30)
    say(process=os.getpid())
    if ctx.rank == 1:
        hear()

    def keep_on() -> None:
        while True:
            pair.put(size)
            ctx.flush(timeout=30)

    say(**failure(keep_on))
    say(**failure(lambda: pair.signal.wait(1 << 40, 30)))
    say(**failure(lambda: ctx.flush(1, timeout=30)))


def damaged(ctx: peerway.Context, size: int) -> None:
    """A key with damage anywhere in it is refused before UCX sees it."""
    pair = Pair(ctx, size)
    key = ctx.team.all_gather(pair.target.key())[pair.other]
    found = set()
    for at in range(len(key)):
        bad = bytearray(key)
        bad[at] ^= 0x41
        found.add(failure(lambda bad=bad: ctx.import_key(bytes(bad)))["kind"])
    found |= {failure(lambda end=end: ctx.import_key(key[:end]))["kind"] for end in range(len(key))}
    say(found=sorted(map(str, found)))
    ctx.team.barrier(timeout=30)


def stale(ctx: peerway.Context, size: int) -> None:
    """A staged put into a region that its owner on another host has closed is refused; later operations
    work.
    """
    pair = Pair(ctx, size)
    spare = ctx.register(np.zeros(size, np.uint8))
    far_spare = ctx.import_key(ctx.team.all_gather(spare.key())[pair.other])
    if ctx.rank == 1:
        spare.close()
    ctx.team.barrier(timeout=30)
    if ctx.rank == 0:
        refused = failure(lambda: (ctx.put(far_spare[0:size], pair.near[0:size]), ctx.flush(timeout=30)))
        pair.put(size)
        after = failure(lambda: ctx.flush(timeout=30))
        say(refused=refused["kind"], after=after["kind"])
    else:
        pair.signal.wait(1, 30)
        theirs = np.random.default_rng(pair.other).integers(0, 256, size, dtype=np.uint8)
        say(arrived=bool(np.array_equal(pair.bytes, theirs)))
    ctx.team.barrier(timeout=30)


def devices(ctx: peerway.Context, size: int) -> None:
    """Copy from host memory to the other rank's GPU, to the own GPU, to the other rank's again, and back."""
    pair = Pair(ctx, size)
    far_gpu, near_gpu = ctx.allocate("cuda", size), ctx.allocate("cuda", size)
    remote = ctx.import_key(ctx.team.all_gather(far_gpu.key())[pair.other])
    answers = {info.name: info.why_not for info in ctx.paths(remote, pair.near)}
    ctx.put(remote[0:size], pair.near[0:size], pair.far_signal)
    pair.signal.wait(1, 30)
    ctx.get(near_gpu[0:size], remote[0:size])
    ctx.flush(timeout=30)
    ctx.team.barrier(timeout=30)
    ctx.put(remote[0:size], near_gpu[0:size], pair.far_signal)
    pair.signal.wait(2, 30)
    ctx.flush(timeout=30)
    ctx.get(pair.target[0:size], remote[0:size])
    ctx.flush(timeout=30)
    say(
        home=bool(np.array_equal(pair.bytes, pair.source)),
        staged=answers["ucx/staged"],
        direct=answers["ucx/direct"],
    )
    ctx.team.barrier(timeout=30)


def closed(ctx: peerway.Context, size: int) -> None:
    """A put and a get of memory that its owner has closed, and the result of the next ones."""
    pair = Pair(ctx, size)
    ctx.team.barrier(timeout=30)
    before = pair.bytes.copy()
    if ctx.rank == 1:
        pair.target.close()
    ctx.team.barrier(timeout=30)
    if ctx.rank == 0:

        def put() -> None:
            ctx.put(pair.far[0:size], pair.near[0:size])
            ctx.flush(1, timeout=30)

        def get() -> None:
            ctx.get(pair.near[0:size], pair.far[0:size])
            ctx.flush(1, timeout=30)

        say(put=failure(put), get=failure(get), signal=failure(lambda: ctx.notify(pair.far_signal)))
    else:
        pair.signal.wait(1, 30)
        say(untouched=bool(np.array_equal(pair.bytes, before)))
    ctx.team.barrier(timeout=30)


def unsupported(ctx: peerway.Context, size: int) -> None:
    """The errors of operations if no UCX can be used between hosts."""
    pair = Pair(ctx, size)
    say(put=failure(lambda: pair.put(8)), signal=failure(lambda: ctx.notify(pair.far_signal)))
    ctx.team.barrier(timeout=30)


def main() -> int:
    """Run one scenario in a context, or print why the context could not be made."""
    size = int(sys.argv[2]) if len(sys.argv) > 2 else 1 << 20
    try:
        ctx = peerway.Context()
    except peerway.Error as error:
        say(refused=type(error).__name__, text=str(error))
        return 0
    with ctx:
        for scenario in sys.argv[1].split(","):
            globals()[scenario](ctx, size)
    return 0


if __name__ == "__main__":
    sys.exit(main())
