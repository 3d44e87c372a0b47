"""Batches of many simulated nodes, made so cheaply that the agents do not take the server's CPU.

A batch of an agent is JSON compressed with zlib. Here the figures, which are most of it, come from a few sets
of random ones that were compressed once; only what differs between nodes and rounds is compressed anew. To
the server they are batches as any other: as large, and to be unpacked and checked in full.
"""

from __future__ import annotations

import json
import zlib

from jobs_node import GPUS, batch

_VARIANTS = 16  # sets of figures; nodes and rounds go through them, so no figure stays as it was
_LEVEL = 6  # as in peerway_jobs.batch.encode


class Stream:
    """The batches of nodes in the form in which they are sent."""

    def __init__(self) -> None:
        self._tails = [self._tail() for _ in range(_VARIANTS)]

    def batch(self, node: str, number: int, seq: int, wall_ms: int) -> bytes:
        """The encoded batch of a node's round; `number` is the node's place among all."""
        like = batch(node, seq, wall_ms, figures=False)
        names = {
            name: getattr(like, name) for name in ("node", "stream", "seq", "boot", "wall_ms", "mono_ms")
        }
        uuids = json.dumps([f"GPU-{node}-{n}" for n in range(GPUS)], separators=(",", ":"))
        head = json.dumps({"version": 1, **names}, separators=(",", ":"))[:-1]
        head += f',"samples":{{"gpu":{{"devices":{uuids}'
        text, tail = self._tails[(number + seq) % _VARIANTS]
        deflate = zlib.compressobj(_LEVEL, zlib.DEFLATED, -15)
        begin = deflate.compress(head.encode()) + deflate.flush(zlib.Z_FULL_FLUSH)
        checksum = zlib.adler32(text, zlib.adler32(head.encode()))
        return b"\x78\x9c" + begin + tail + checksum.to_bytes(4, "big")

    @staticmethod
    def _tail() -> tuple[bytes, bytes]:
        """What follows the names of the GPUs: as text, and as the end of a compressed stream."""
        samples = {
            kind: {"devices": part.devices, "values": part.values}
            for kind, part in batch("x", 1, 0).samples.items()
        }
        gpu = json.dumps(samples.pop("gpu")["values"], separators=(",", ":"))
        rest = json.dumps(samples, separators=(",", ":"))[1:]
        text = f',"values":{gpu}}},{rest}}}'.encode()
        deflate = zlib.compressobj(_LEVEL, zlib.DEFLATED, -15)
        return text, deflate.compress(text) + deflate.flush()
