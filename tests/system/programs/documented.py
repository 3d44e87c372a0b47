"""A rank that runs blocks of Python of the documents, which come as a line of JSON: for each its name, the
lines that it needs before it, and the block. Prints what became of each.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import sys
import traceback
from typing import Any

import numpy as np

import peerway

N = 64


def surroundings(ctx: peerway.Context) -> dict[str, Any]:
    """The names that blocks use without making them, as on a ring of ranks."""
    right, previous = (ctx.rank + 1) % ctx.size, (ctx.rank - 1) % ctx.size
    region = ctx.allocate("host", 8 * N * N)
    remote = ctx.import_key(ctx.team.all_gather(region.key(), 60)[right])
    mine = ctx.signal(previous)
    theirs = ctx.import_key(ctx.team.all_gather(mine.key(), 60)[right])
    return {
        "np": np, "peerway": peerway, "ctx": ctx, "region": region, "remote": remote, "mine": mine,
        "theirs": theirs, "rank": right, "left": previous, "right": right, "n": 8, "ny": N, "nx": N,
        "steps": 2, "interior": lambda *_: None, "boundary": lambda *_: None,
    }  # fmt: skip


def run(name: str, before: str, block: str, names: dict[str, Any]) -> str:
    """What went wrong with a block, which may await."""
    try:
        exec(compile(before, name, "exec"), names)
        code = compile(block, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        if code.co_flags & inspect.CO_COROUTINE:
            asyncio.run(eval(code, names))
        else:
            exec(code, names)
    except Exception:
        return traceback.format_exc()
    return ""


def main() -> int:
    """Each block in turn; all ranks run the same."""
    wrong = {}
    with peerway.Context() as ctx:
        for name, before, block in json.loads(sys.stdin.readline()):
            names = surroundings(ctx)
            wrong[name] = run(name, before, block, names)
            ctx.flush(timeout=60)
            ctx.team.barrier(60)
    print(json.dumps(wrong), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
