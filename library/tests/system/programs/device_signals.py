"""Two ranks with GPUs that are the driver's double, whose memory the CPU sees: puts by plans notify
signals in GPU memory, handles for kernels are made and given back, and what a kernel would post into a FIFO
is put. One line of JSON a rank.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import struct
import sys

import peerway

WAIT = 600.0
BYTES = 5000
TURNS = 20


def refusal(error: type[peerway.Error], body: object, *arguments: object) -> str:
    """The message with which the call is refused."""
    try:
        body(*arguments)  # type: ignore[operator]
    except error as refused:
        return str(refused)
    raise AssertionError(f"{body} was not refused")


def put_and_wait(ctx: peerway.Context) -> dict[str, object]:
    """Two plans on a stream: a put with a signal, and the wait; returns what arrived and where the signal
    is.
    """
    gpu, partner = f"cuda:{ctx.rank}", 1 - ctx.rank
    out, into = ctx.allocate(gpu, BYTES), ctx.allocate(gpu, BYTES)
    arrived, used = ctx.signal(partner, gpu), ctx.signal(partner, gpu)
    keys = [ctx.team.all_gather(thing.key(), WAIT)[partner] for thing in (into, arrived, used)]
    target, far_arrived, notify_used = map(ctx.import_key, keys)
    put = ctx.plan(gpu).put(target, out, notify=far_arrived, by=2).after(used, lead=1).prepare(alone=True)
    wait = ctx.plan(gpu).wait(arrived, by=2).prepare(alone=True)
    done = ctx.plan(gpu).notify(notify_used).prepare(alone=True)
    mine = (ctypes.c_uint8 * BYTES).from_address(out.address)
    theirs = (ctypes.c_uint8 * BYTES).from_address(into.address)
    ctx.team.barrier(WAIT)
    right = 0
    for turn in range(TURNS):
        ctypes.memset(mine, 10 * ctx.rank + turn, BYTES)
        for plan in (put, wait):
            plan.start()
            plan.finish(timeout=WAIT)
        right += bytes(theirs) == bytes([10 * partner + turn]) * BYTES
        done.run()
    refused = refusal(peerway.Unsupported, ctx.notify, far_arrived)
    put.close()
    handle = far_arrived.notify_handle(gpu)
    total = ctypes.c_uint64.from_address(int.from_bytes(handle[16:24], sys.byteorder))
    began_at = total.value
    ctx.team.barrier(WAIT)
    value = arrived.value
    far_arrived.release_notify_handle()
    return {
        "right": right,
        "value": value,
        "began_at": began_at,
        "refused": refused,
        "handles": [len(handle), len(target.handle(gpu)), len(arrived.handle(gpu, timeout=1.0))],
    }


class Entry(ctypes.Structure):
    """pw_fifo_entry of peerway/handles.h."""

    _fields_ = [
        (name, ctypes.c_uint64)
        for name in ("number", "to_offset", "from_offset", "bytes", "by", "to_from", "signal", "unused")
    ]


def lanes_and_fifo(ctx: peerway.Context) -> dict[str, object]:
    """The ends of lanes, and puts that are posted as a kernel posts them."""
    gpu, partner = f"cuda:{ctx.rank}", 1 - ctx.rank
    out, into = ctx.allocate(gpu, BYTES), ctx.allocate(gpu, BYTES)
    plan = ctx.plan(gpu).send(partner, 7, out[0:512]).receive(partner, 7, into[0:512]).prepare()
    ends = [struct.unpack_from("IIPQi", lane(partner, 7)) for lane in (plan.send_lane, plan.receive_lane)]
    lanes = [(slots, slot_bytes, unit, rank) for _version, unit, slots, slot_bytes, rank in ends]
    refused = refusal(peerway.InvalidArgument, plan.send_lane, partner, 8)

    arrived = ctx.signal(partner)
    keys = [ctx.team.all_gather(thing.key(), WAIT)[partner] for thing in (into, arrived)]
    fifo = ctx.fifo(list(map(ctx.import_key, keys)), [out], gpu, entries=4)
    _version, entries, count = struct.unpack_from("IPQ", fifo.handle())
    ctypes.memset(out.address, 10 + ctx.rank, BYTES)
    for number in range(1, count + 1):
        entry = Entry.from_address(entries + (number - 1) * ctypes.sizeof(Entry))
        entry.to_offset, entry.from_offset, entry.bytes, entry.by = 1000 * number, 0, 500, 2
        entry.to_from, entry.signal = 0, 1
        entry.number = number  # after the other fields, as stores of one thread to host memory become visible
    arrived.wait(2 * count, WAIT)
    fifo.check()
    theirs = (ctypes.c_uint8 * BYTES).from_address(into.address)
    right = [bytes(theirs[at : at + 500]) == bytes([10 + partner]) * 500 for at in range(1000, BYTES, 1000)]
    ctx.team.barrier(WAIT)
    return {"lanes": [lane[1:] for lane in lanes], "refused": refused, "right": right, "shown": repr(fifo)}


def lost(ctx: peerway.Context) -> dict[str, object]:
    """Rank 1 dies; rank 0's wait for its signal in GPU memory ends."""
    gpu = f"cuda:{ctx.rank}"
    arrived = ctx.signal(1 - ctx.rank, gpu)
    arrived.handle(gpu)
    arrived.check()
    ctx.team.barrier(WAIT)
    if ctx.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    waited = refusal(peerway.PeerLost, arrived.wait, 1, WAIT)
    return {"wait": waited, "check": refusal(peerway.PeerLost, arrived.check)}


if __name__ == "__main__":
    with peerway.Context() as ctx:
        said = {"put_and_wait": put_and_wait, "lanes_and_fifo": lanes_and_fifo, "lost": lost}[sys.argv[1]](
            ctx
        )
        print(json.dumps(said), flush=True)
        if sys.argv[1] != "lost":
            ctx.team.barrier(WAIT)
