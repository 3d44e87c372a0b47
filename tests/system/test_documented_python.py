"""Every block of Python that stands in the documents runs, on four ranks without a GPU.

A block that is new in a document fails the first test until it has a line in BEFORE or ALONE.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from documented_code import blocks
from ranks import Ranks

BLOCKS = blocks("python")
HALO = "u = np.zeros((ny + 2, nx + 2)); halo = ctx.halo(u, grid=(2, 2), shadow=1, periodic=True)\n"
STREAM = "stream = ctx.stream()\n"
RING = "row = nx; u = np.zeros((ny + 2) * nx); array = ctx.register(u); u = array\n"
PLAN = "plan = ctx.plan().send(right, 0, region[:8]).receive(left, 0, region[8:16]).prepare()\n"
ARRAY = "cube = np.zeros((n, n, n)); kept = ctx.register(cube)\n"

PARTS = (
    "whole, piece = np.zeros(10), np.zeros([3, 0, 5, 2][ctx.rank])\n"
    "sent = received = [2] * 4; to, source = np.zeros(8), np.zeros(8)\n"
)

# What each block needs before it, besides what tests/system/programs/documented.py gives it.
BEFORE = {
    "README.md 2": f"u = np.zeros((ny + 2, nx + 2))\n{STREAM}",
    "docs/library/collectives.md 1": STREAM + "gradients = np.zeros(9); compute = lambda *_: None\n",
    "docs/library/collectives.md 2": PARTS,
    "docs/library/collectives.md 3": "array = np.zeros(5)\n",
    "docs/library/halo.md 1": "",
    "docs/library/halo.md 2": "u, w = np.zeros((12, 10, 3)), np.zeros((12, 10, 3))\n",
    "docs/library/halo.md 3": HALO + STREAM + "u = 0\n",
    "docs/library/operations-and-signals.md 1": "",
    "docs/library/operations-and-signals.md 2": "",
    "docs/library/operations-and-signals.md 3": ARRAY,
    "docs/library/operations-and-signals.md 4": "other = ctx.start_flush()\n",
    "docs/library/operations-and-signals.md 5": "",
    "docs/library/plans.md 1": RING + STREAM,
    "docs/library/plans.md 2": PLAN,
    "docs/library/plans.md 3": PLAN + STREAM,
    "docs/library/regions-and-keys.md 1": "array = bytearray(64)\n",
    "docs/trace/index.md 1": "import peerway_trace\n",
}
# Programs of their own: what stands before each, and after it.
ALONE = {
    "README.md 1": ("import numpy as np, peerway\nny = nx = 40\narray = np.zeros((ny, nx))\n", ""),
    "docs/library/teams.md 2": ("", ""),
    "docs/reference/python.md 1": ("", ""),
}
# Those that stand for a GPU run on the host; a halo of eight ranks on four; a loop is short.
ON_THIS_HOST = {'"cuda"': '"host"', "grid=(2, 4)": "grid=(2, 2)", "range(1000)": "range(2)"}
NEEDS_MORE = {
    "docs/library/amd.md 1": "an AMD GPU; library/tests/system/test_fake_hip.py does the same on a double",
    "docs/library/jax.md 1": "jaxlib; library/tests/system/test_jax.py has such a step",
    "docs/library/jax.md 2": "GPUs; library/tests/system/programs/jax_plans.py has this line",
    "docs/library/pytorch.md 1": "PyTorch; library/tests/system/test_torch_distributed.py begins so",
    "docs/library/teams.md 1": "mpi4py; test_python_api.py has a communicator that stands in for it",
}


def on_this_host(text: str) -> str:
    for there, here in ON_THIS_HOST.items():
        text = text.replace(there, here)
    return text


def test_every_block_runs_somewhere() -> None:
    assert sorted(BLOCKS) == sorted(BEFORE | ALONE | NEEDS_MORE)


def test_the_blocks_run_on_four_ranks() -> None:
    given = [[name, before, on_this_host(BLOCKS[name])] for name, before in BEFORE.items()]
    with Ranks("documented.py", 4) as ranks:
        for rank in range(4):
            ranks.send_line(rank, json.dumps(given))
        for wrong in ranks.read_all():
            assert wrong == dict.fromkeys(BEFORE, ""), "\n".join(wrong.values())
        ranks.end()


@pytest.mark.parametrize("name", ALONE)
def test_the_programs_run(name: str, tmp_path: Path) -> None:
    program = tmp_path / "documented.py"
    before, after = ALONE[name]
    text = before + BLOCKS[name].replace("np.zeros((ny, nx))", "np.zeros((ny := 40, nx := 40))") + after
    program.write_text(text)
    rest = {key: value for key, value in os.environ.items() if not key.startswith("PEERWAY_")}
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False, env=rest)
    assert done.returncode == 0, done.stderr
