"""Plans that one rank cannot prepare. Each rank prints, for each scenario, how its plan ended: in prepare, or
when it was started, by a failure far away. Afterwards all prepare a plan that is right.
"""

from __future__ import annotations

import json
import sys

import numpy
from outcomes import outcome

import peerway


def use(builder: peerway.PlanBuilder) -> None:
    """Prepare and start the plan, as if there were no error."""
    plan = builder.prepare()
    while True:
        plan.start()
        plan.finish(timeout=60)


def main() -> int:
    """Ranks in a chain, each with a lane to the next."""
    with peerway.Context() as context:
        rank, size = context.rank, context.size
        region = context.register(numpy.zeros(64))

        def chain(bytes_of_last: int) -> peerway.PlanBuilder:
            plan = context.plan("host")
            if rank + 1 < size:
                plan.send(rank + 1, 1, region[0:64])
            if rank > 0:
                plan.receive(rank - 1, 1, region[64 : 64 + (bytes_of_last if rank == size - 1 else 64)])
            return plan

        def lonely() -> None:
            plan = context.plan("host")
            if rank == size - 1:
                plan.send(rank - 1, 9, region[0:64])
            plan.prepare()

        def unlisted() -> None:
            if rank > 1:
                return
            plan = context.plan("host")
            if rank == 0:
                plan.send(1, 5, region[0:64]).send(2, 5, region[0:64])
            else:
                plan.receive(0, 5, region[64:128])
            plan.prepare_among([0, 1])

        told = {
            "another length": outcome(lambda: use(chain(32))),
            "nobody receives": outcome(lonely),
            "a partner is not listed": outcome(unlisted),
        }
        plan = chain(64).prepare()
        plan.start()
        plan.finish(timeout=60)
        context.team.barrier(60)
        print(json.dumps(told), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
