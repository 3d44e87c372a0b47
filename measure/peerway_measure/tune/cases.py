"""The cases that tune measures: operations, shapes and sizes between every pair of memories on this host."""

from __future__ import annotations

from collections.abc import Sequence

from peerway_measure.bench import shapes
from peerway_measure.bench.kinds import KINDS
from peerway_measure.bench.plan import Case, same_kind
from peerway_measure.bench.shapes import Shape

# Times until completion at the target. For sends, both ranks send and receive at once, as in a halo: a method
# can then cost more than for messages in one direction.
TESTS = ("put_latency", "get_latency", "send_exchange")
SIZES = tuple(shapes.parse_sizes("8:256M", factor=4))
QUICK_SIZES = tuple(shapes.parse_sizes("8,512,4K,32K,256K,2M,16M"))
BLOCKS = (8, 64, 512, 4096, 65536)  # bytes of a block, one for each of the router's classes of strided shapes
STRIDED_SIZES = tuple(shapes.parse_sizes("256,4K,64K,512K,4M"))
QUICK_STRIDED_SIZES = tuple(shapes.parse_sizes("512,16K,256K"))
SPLIT_SIZES = tuple(shapes.parse_sizes("4M:256M", factor=4))
QUICK_SPLIT_SIZES = tuple(shapes.parse_sizes("4M,16M"))
CHUNK_BYTES = 16 << 20
CHUNKS = [1 << power for power in range(15, 22)]
FEWEST_BLOCKS = 2


def all_shapes(quick: bool) -> list[Shape]:
    """The contiguous sizes, and for each class of strided shapes its own sizes. The gap after a block is as
    long as the block.
    """
    result = [shapes.contiguous(size) for size in (QUICK_SIZES if quick else SIZES)]
    for block in BLOCKS:
        sizes = QUICK_STRIDED_SIZES if quick else STRIDED_SIZES
        counts = sorted({max(FEWEST_BLOCKS, size // block) for size in sizes})
        result += [shapes.strided(count, block, 2 * block) for count in counts]
    return result


def make(
    memories: Sequence[tuple[str, str]], forms: Sequence[Shape], tests: Sequence[str] = TESTS
) -> list[Case]:
    """Each shape of each operation between each pair of memories, by ranks 0 and 1.

    Sends are routed by their bytes alone, so only contiguous ones between memories of one kind are measured.
    """
    same = same_kind(memories)
    return [
        Case(test, form, source, target, ((0, 1),))
        for source, target in memories
        for test in tests
        for form in forms
        if not KINDS[test].by_methods or ((source, target) in same and form.blocks == 1)
    ]
