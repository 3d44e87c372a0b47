"""The sizes for which plans are prepared.

A plan belongs to a size, and making a plan is collective. So the choice of a plan must depend only on what
all ranks of a group know alike: the operation, the type, and the number of elements; never on an address,
which differs between ranks. Sizes are rounded up to one of eight steps in each power of two, so that tensors
of any size need few plans and at most an eighth of what is sent is padding.
"""

from __future__ import annotations


def rounded(count: int) -> int:
    """`count` rounded up to a step; up to 16 as it is."""
    step = 1 << max((count - 1).bit_length() - 4, 0)
    return -(-count // step) * step


def power_of_two(count: int) -> int:
    """`count` rounded up to a power of two."""
    return 1 << (count - 1).bit_length()
