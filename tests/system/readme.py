"""The Python example of README.md as a program: with the array that it takes for granted, and a check of what
it moved, except where its two puts may meet.
"""

from __future__ import annotations

import re

from launching import ROOT

_BEFORE = """\
import numpy as np, peerway

ny, nx = 32, 40
array = np.arange(float(ny * nx)).reshape(ny, nx)
before = array.copy()
"""
_AFTER = """\
    ctx.team.barrier()
    part = np.arange(512)
    part = part[(part % nx != 0) & ((part + 512) % nx != 0)]
    assert (array.ravel()[part] == before.ravel()[part + 512]).all()
    assert (array[13:, 0] == before[13:, -2]).all()
    assert (array[26:, 1:] == before[26:, 1:]).all()
    print("rank", ctx.rank, "has both")
"""


def example() -> str:
    """The whole program."""
    page = (ROOT / "README.md").read_text()
    (block,) = re.findall(r"```python\n(with peerway\.Context\(\) as ctx:.*?)```", page, re.DOTALL)
    return _BEFORE + str(block) + _AFTER
