"""Two ranks, each with memory of its own GPU, print how each operation between them would go:
one line of JSON a rank.
"""

from __future__ import annotations

import json

import peerway
from peerway import _core

with peerway.Context() as ctx:
    region = ctx.allocate("cuda", 1 << 20)
    remote = ctx.import_key(ctx.team.all_gather(region.key(), 60.0)[1 - ctx.rank])
    decisions = {
        op: json.loads(_core.explain_for(ctx._core, remote._core, region._core, op, "contiguous"))
        for op in ("put", "get", "send")
    }
    print(json.dumps({"rank": ctx.rank, "decisions": decisions, "paths": ctx.paths(remote, region)}))
    ctx.team.barrier(60.0)
