"""Plans between ranks that do not map one another's memory, started on a stream of the host far ahead of
what is done. Tells what was wrong with the data of any epoch.

posted.py SCENARIO,EPOCHS,BYTES...

ring: sends and receives.  puts: one-sided, held back by signals.  gets: one-sided, of what the owner changes.
"""

from __future__ import annotations

import json
import sys

import numpy as np

import peerway


def numbers(rank: int, epoch: int, count: int) -> np.ndarray:
    """What a rank sends in an epoch."""
    return np.random.default_rng([rank, epoch]).integers(0, 2**63, count)


class Member:
    """This rank; the first half of its memory is what it sends, the second what it receives."""

    def __init__(self, ctx: peerway.Context, size: int) -> None:
        self.ctx, self.size, self.count = ctx, size, size // 8
        self.previous, self.right = (ctx.rank - 1) % ctx.size, (ctx.rank + 1) % ctx.size
        self.memory = np.zeros(2 * self.count, np.int64)
        self.region = ctx.register(self.memory)
        self.wrong: list[str] = []

    def write(self, epoch: int) -> None:
        """Write new numbers to send."""
        self.memory[: self.count] = numbers(self.ctx.rank, epoch, self.count)

    def check(self, epoch: int) -> None:
        """Check that the numbers of the rank before have arrived."""
        if not np.array_equal(self.memory[self.count :], numbers(self.previous, epoch, self.count)):
            self.wrong.append(f"epoch {epoch}")


def ring(member: Member) -> peerway.Plan:
    """Send to the right, receive from the left."""
    ctx, size = member.ctx, member.size
    builder = ctx.plan().send(member.right, 3, member.region[0:size])
    return builder.receive(member.previous, 3, member.region[size : 2 * size]).prepare()


def puts(member: Member) -> tuple[peerway.Plan, list[object]]:
    """The same with puts; the target's plan notifies a signal at its start: ready to receive."""
    ctx, size = member.ctx, member.size
    arrived, ready = ctx.signal(member.previous), ctx.signal(member.right)
    keys = [ctx.team.all_gather(thing.key()) for thing in (member.region, arrived, ready)]
    far, far_arrived, far_ready = (
        ctx.import_key(keys[0][member.right]),
        ctx.import_key(keys[1][member.right]),
        ctx.import_key(keys[2][member.previous]),
    )
    plan = (
        ctx.plan()
        .notify(far_ready)
        .after(ready, lead=0)
        .put(far[size : 2 * size], member.region[0:size], notify=far_arrived)
        .wait(arrived)
        .prepare(alone=True)
    )
    return plan, [arrived, ready, far, far_arrived, far_ready]


def gets(member: Member) -> tuple[peerway.Plan, list[object]]:
    """Get the left rank's data once it signals that the data is written; signal the left rank when done."""
    ctx, size = member.ctx, member.size
    written = ctx.signal(member.previous)
    keys = [ctx.team.all_gather(thing.key()) for thing in (member.region, written)]
    far, far_written = ctx.import_key(keys[0][member.previous]), ctx.import_key(keys[1][member.right])
    plan = (
        ctx.plan()
        .notify(far_written)
        .after(written, lead=0)
        .get(member.region[size : 2 * size], far[0:size])
        .prepare(alone=True)
    )
    return plan, [written, far, far_written]


def from_the_host(plan: peerway.Plan, member: Member, epochs: int) -> None:
    """Run one epoch after another; an owner changes its data only after the reader has it."""
    for epoch in range(epochs):
        member.write(epoch)
        plan.start()
        plan.finish(timeout=60)
        member.check(epoch)
        member.ctx.team.barrier(60)


def ahead(plan: peerway.Plan, member: Member, epochs: int) -> None:
    """Enqueue all epochs before the first must be done."""
    stream = member.ctx.stream("host")
    for epoch in range(epochs):
        stream.call(lambda epoch=epoch: member.write(epoch))  # type: ignore[misc]
        plan.start(stream)
        plan.finish(stream)
        stream.call(lambda epoch=epoch: member.check(epoch))  # type: ignore[misc]
    stream.wait(timeout=60)


def outcome(ctx: peerway.Context, scenario: str, epochs: int, size: int) -> object:
    """What was wrong in any epoch of a scenario."""
    member = Member(ctx, size)
    made = {"ring": ring, "puts": puts, "gets": gets}[scenario](member)  # type: ignore[operator]
    plan, kept = made if isinstance(made, tuple) else (made, [])
    ctx.team.barrier(60)
    (from_the_host if scenario == "gets" else ahead)(plan, member, epochs)
    plan.check()
    ctx.team.barrier(60)
    plan.close()
    del kept
    return member.wrong[:5]


def main() -> int:
    """Run all scenarios in one context."""
    with peerway.Context() as ctx:
        for words in sys.argv[1:]:
            scenario, epochs, size = words.split(",")
            print(json.dumps(outcome(ctx, scenario, int(epochs), int(size))), flush=True)
        ctx.team.barrier(60)
    return 0


if __name__ == "__main__":
    sys.exit(main())
