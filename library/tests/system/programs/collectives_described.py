"""Prints the titles of collectives that have several methods or one."""

from __future__ import annotations

import json

import numpy as np

import peerway

with peerway.Context() as ctx:
    array, parts = np.zeros(1000), np.zeros(2 * ctx.size)
    plans = [
        ctx.all_reduce(array),
        ctx.all_reduce(array, order="any"),
        ctx.all_to_all(np.zeros(2 * ctx.size), parts),
    ]
    print(json.dumps([plan.describe().partition("\n")[0] for plan in plans]), flush=True)
    ctx.team.barrier(60)
