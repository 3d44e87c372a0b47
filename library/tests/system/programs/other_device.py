"""Transfers, plans and halos between memories of a device that the CPU cannot touch. Tells what was wrong.

other_device.py DEVICE SCENARIO...

transfers,PATH,OP,TARGET,SOURCE: by that path, target and source on DEVICE or "host".
methods,BYTES,TO...: of the sends of a plan, of so many bytes each, to the "right" or "self"; a "put" is none.
ring,BYTES,START  puts,BYTES,START: a plan, started from the "host" or "ahead" on a stream of the device.
between,BYTES: a plan that runs in a stream between two copies.
conditional,BYTES: a plan that runs in a stream in every other epoch only, because of a word on the device.
halo,START: of an array on the device.  capsule: the device of memory that comes as a DLPack capsule.
lost: says "running", and what the wait for a rank that ends raises.
"""

from __future__ import annotations

import json
import sys

import numpy as np
from layouts import Bytes, contiguous_cases, moved, noise, strided_cases
from transfers import blocks

import peerway

SPAN = 5 << 20
EPOCHS = 20
SECONDS = 600


class Memory:
    """Memory on a device, written and read with this rank's own puts and gets from host memory."""

    def __init__(self, ctx: peerway.Context, device: str, size: int) -> None:
        self.ctx = ctx
        self.region = ctx.allocate(device, size)
        self._way = ctx.allocate("host", size)
        self._self = ctx.import_key(self.region.key())

    def write(self, values: Bytes) -> None:
        """Write from the first byte on."""
        self._way.array()[: values.nbytes] = values.view(np.uint8).reshape(-1)
        self.ctx.put(self._self[0 : values.nbytes], self._way[0 : values.nbytes])
        self.ctx.flush(self.ctx.rank, SECONDS)

    def read(self, size: int, first: int = 0) -> Bytes:
        """A copy of some bytes."""
        self.ctx.get(self._way[0:size], self._self[first : first + size])
        self.ctx.flush(self.ctx.rank, SECONDS)
        return self._way.array()[:size].copy()


class Job:
    """This rank, and its neighbours in the ring of all ranks."""

    def __init__(self, ctx: peerway.Context, device: str) -> None:
        self.ctx, self.device = ctx, device
        self.previous, self.right = (ctx.rank - 1) % ctx.size, (ctx.rank + 1) % ctx.size

    def key_of(self, thing: peerway.Region | peerway.Signal, rank: int) -> peerway.Remote:
        return self.ctx.import_key(self.ctx.team.all_gather(thing.key(), SECONDS)[rank])

    def transfers(self, path: str, op: str, target: str, source: str) -> object:
        """The labels of the wrong cases, or why the path supports none of them."""
        ctx = self.ctx
        ctx.use()
        to, from_ = Memory(ctx, target, SPAN), Memory(ctx, source, SPAN)
        far = self.key_of(to.region if op == "put" else from_.region, self.right)
        near = from_.region if op == "put" else to.region
        answer = {info.name: info for info in ctx.paths(far, near, op)}[path]
        ctx.team.barrier(SECONDS)  # all ranks have imported what they need
        if not answer.available:
            return answer.why_not
        wrong = []
        giver = self.previous if op == "put" else self.right
        from_.write(noise(ctx.rank, SPAN))
        for case in [*contiguous_cases()[::4], *strided_cases(7, 12, SPAN)]:
            to.write(noise(99, SPAN))
            ctx.team.barrier(SECONDS)
            ctx.use(path)
            if op == "put":
                ctx.put(blocks(far, case.to), blocks(near, case.source))
            else:
                ctx.get(blocks(near, case.to), blocks(far, case.source))
            ctx.flush(self.right, SECONDS)
            ctx.use()
            ctx.team.barrier(SECONDS)
            if not np.array_equal(to.read(SPAN), moved(case, noise(99, SPAN), noise(giver, SPAN))):
                wrong.append(case.label)
        return wrong

    def numbers(self, rank: int, epoch: int, size: int) -> Bytes:
        """The numbers that a rank sends in an epoch."""
        return noise(1000 * rank + epoch, size)

    def epochs(self, plan: peerway.Plan, memory: Memory, size: int, start: str) -> list[str]:
        """The epochs in which the received data was not what the left rank sent."""
        wrong: list[str] = []
        stream = None if start == "host" else self.ctx.stream(self.device)
        for epoch in range(EPOCHS):
            memory.write(self.numbers(self.ctx.rank, epoch, size))
            plan.start(stream)
            plan.finish(stream) if stream else plan.finish(timeout=SECONDS)
            if stream:
                stream.wait(SECONDS)
            if not np.array_equal(memory.read(size, size), self.numbers(self.previous, epoch, size)):
                wrong.append(f"epoch {epoch}")
        plan.check()
        self.ctx.team.barrier(SECONDS)
        return wrong

    def methods(self, size: str, *to: str) -> list[str]:
        """The methods of a plan's sends, with this number of bytes each."""
        ctx, bytes_ = self.ctx, int(size)
        memory = ctx.allocate(self.device, 2 * bytes_ * len(to))
        builder = ctx.plan(self.device)
        for n, target in enumerate(to):
            mine, theirs = (memory[at : at + bytes_] for at in (2 * n * bytes_, (2 * n + 1) * bytes_))
            if target == "put":
                builder.put(self.key_of(memory, self.right)[bytes_ : 2 * bytes_], mine)
            else:
                there, back = (self.right, self.previous) if target == "right" else (ctx.rank, ctx.rank)
                builder.send(there, n, mine).receive(back, n, theirs)
        sends = [line.split(": ")[1] for line in builder.prepare().describe().splitlines() if "send" in line]
        return [how.partition(",")[0] for how in sends]

    def plan_of_ring(self, memory: Memory, size: int) -> peerway.Plan:
        """A plan that sends the first bytes to the right, and receives the next ones from the left."""
        builder = self.ctx.plan(self.device).send(self.right, 3, memory.region[0:size])
        return builder.receive(self.previous, 3, memory.region[size : 2 * size]).prepare()

    def ring(self, size: str, start: str) -> list[str]:
        """Send to the right, receive from the left."""
        bytes_ = int(size)
        memory = Memory(self.ctx, self.device, 2 * bytes_)
        plan = self.plan_of_ring(memory, bytes_)
        return self.epochs(plan, memory, bytes_, start)

    def between(self, size: str) -> list[str]:
        """As ring, but a run in a stream copies what it sends into the plan's memory, and what came out."""
        bytes_ = int(size)
        memory, apart = Memory(self.ctx, self.device, 2 * bytes_), Memory(self.ctx, self.device, 2 * bytes_)
        plan = self.plan_of_ring(memory, bytes_)
        stream = self.ctx.stream(self.device)
        wrong = []
        for epoch in range(EPOCHS):
            apart.write(self.numbers(self.ctx.rank, epoch, bytes_))
            inside, outside = memory.region.address, apart.region.address
            after = (outside + bytes_, inside + bytes_, bytes_) if epoch % 2 else (0, 0, 0)
            plan._core.run_between_on(stream._core.queue, (inside, outside, bytes_), after)
            stream.wait(SECONDS)
            came = apart.read(bytes_, bytes_) if epoch % 2 else memory.read(bytes_, bytes_)
            if not np.array_equal(came, self.numbers(self.previous, epoch, bytes_)):
                wrong.append(f"epoch {epoch}")
        plan.check()
        self.ctx.team.barrier(SECONDS)
        return wrong

    def conditional(self, size: str) -> list[str]:
        """A ring whose runs do nothing in odd epochs."""
        bytes_ = int(size)
        memory, word = Memory(self.ctx, self.device, 2 * bytes_), Memory(self.ctx, self.device, 4)
        plan = self.plan_of_ring(memory, bytes_)
        stream = self.ctx.stream(self.device)
        wrong = []
        for epoch in range(EPOCHS):
            memory.write(self.numbers(self.ctx.rank, epoch, bytes_))
            word.write(np.array([5 if epoch % 2 == 0 else 4], np.int32))
            plan.run_if(stream, word.region.address, 5)
            stream.wait(SECONDS)
            expected = self.numbers(self.previous, epoch // 2 * 2, bytes_)
            if not np.array_equal(memory.read(bytes_, bytes_), expected):
                wrong.append(f"epoch {epoch}")
        plan.check()
        self.ctx.team.barrier(SECONDS)
        return wrong

    def puts(self, size: str, start: str) -> list[str]:
        """The same with puts; the target's plan notifies a signal when its memory may be written again."""
        ctx, bytes_ = self.ctx, int(size)
        memory = Memory(ctx, self.device, 2 * bytes_)
        arrived, ready = ctx.signal(self.previous, self.device), ctx.signal(self.right)
        far = self.key_of(memory.region, self.right)
        far_arrived, far_ready = self.key_of(arrived, self.right), self.key_of(ready, self.previous)
        plan = (
            ctx.plan(self.device)
            .notify(far_ready)
            .after(ready, lead=0)
            .put(far[bytes_ : 2 * bytes_], memory.region[0:bytes_], notify=far_arrived)
            .wait(arrived)
            .prepare(alone=True)
        )
        return self.epochs(plan, memory, bytes_, start)

    def halo(self, start: str) -> list[str]:
        """A ring of rows of 100 numbers, each with a row of its neighbours' at both ends."""
        ctx, rows = self.ctx, 6
        memory = Memory(ctx, self.device, rows * 800)
        stream = None if start == "host" else ctx.stream(self.device)
        field = memory.region.array("f8", (rows, 100))
        halo = ctx.halo(field, grid=(ctx.size,), shadow=1, periodic=True)
        wrong = []
        for epoch in range(EPOCHS):
            memory.write(np.full((rows, 100), 1000.0 * ctx.rank + epoch))
            ctx.team.barrier(SECONDS)  # no neighbour's halo arrives before this rank has its own numbers
            halo.start(stream)
            halo.finish(stream) if stream else halo.finish(timeout=SECONDS)
            if stream:
                stream.wait(SECONDS)
            rows_of_halo = memory.read(rows * 800).view("f8").reshape(rows, 100)
            if (rows_of_halo[0] != 1000 * self.previous + epoch).any() or (
                rows_of_halo[-1] != 1000 * self.right + epoch
            ).any():
                wrong.append(f"epoch {epoch}")
            ctx.team.barrier(SECONDS)
        return wrong

    def capsule(self) -> list[str]:
        """The device of memory that comes as a DLPack capsule, of this kind of device and no more."""

        class OnlyDlpack:
            def __init__(self, of: peerway.Region) -> None:
                self._of = of

            def __dlpack__(self, **options: object) -> object:
                return self._of.__dlpack__(**options)

            def __dlpack_device__(self) -> tuple[int, int]:
                return self._of.__dlpack_device__()

        memory = self.ctx.allocate(self.device, 4096)
        again = self.ctx.register(OnlyDlpack(memory))
        return [again.device.partition(":")[0], str(again.address - memory.address), str(again.bytes)]

    def lost(self) -> object:
        """What the wait for the left rank raises when that rank is killed."""
        memory = Memory(self.ctx, self.device, 512)
        plan = self.plan_of_ring(memory, 256)
        print(json.dumps("running"), flush=True)
        try:
            while True:
                plan.start()
                plan.finish(timeout=SECONDS)
        except peerway.Error as error:
            return [type(error).__name__, str(error)]


def main() -> int:
    """Run all scenarios in one context."""
    device, *scenarios = sys.argv[1:]
    with peerway.Context() as ctx:
        for words in scenarios:
            name, *arguments = words.split(",")
            job = Job(ctx, device)
            print(json.dumps(getattr(job, name)(*arguments)), flush=True)
            if name != "lost":
                ctx.team.barrier(SECONDS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
