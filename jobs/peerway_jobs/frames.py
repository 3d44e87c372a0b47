"""Frames: how encoded batches follow one another, in the spool's files and in the body of a POST.

    magic "PWJ1" · length of the payload (u32, little-endian) · CRC-32 of the payload (u32) · payload

After a power loss the spool may end with half a frame; `read_frames` says where the good frames end.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

MAGIC = b"PWJ1"
_HEAD = struct.Struct("<4sII")
HEAD_BYTES = _HEAD.size

MOST_PAYLOAD = 1 << 20  # bytes of one encoded batch
MOST_FRAMES = 64  # in one POST
MOST_BODY = 8 << 20  # bytes of one POST


class BadFrame(ValueError):
    """A wrong magic or checksum, a wrong length, or a cut-off frame. `good` is the offset at which it
    begins.
    """

    def __init__(self, why: str, good: int) -> None:
        super().__init__(f"{why} at byte {good}")
        self.good = good


def frame(payload: bytes) -> bytes:
    """The payload with its header. Raises ValueError if it is too long or empty."""
    if not payload or len(payload) > MOST_PAYLOAD:
        raise ValueError(f"a frame holds 1 to {MOST_PAYLOAD:,} bytes, not {len(payload):,}")
    return _HEAD.pack(MAGIC, len(payload), zlib.crc32(payload)) + payload


def read_frames(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the offset after each frame and its payload. Raises BadFrame where the good frames end."""
    at = 0
    while at < len(data):
        if len(data) - at < HEAD_BYTES:
            raise BadFrame("a frame's head is cut off", at)
        magic, length, checksum = _HEAD.unpack_from(data, at)
        if magic != MAGIC:
            raise BadFrame("no frame begins", at)
        if not 0 < length <= MOST_PAYLOAD:
            raise BadFrame(f"a frame of {length:,} bytes, allowed are 1 to {MOST_PAYLOAD:,},", at)
        payload = data[at + HEAD_BYTES : at + HEAD_BYTES + length]
        if len(payload) < length:
            raise BadFrame("a frame is cut off", at)
        if zlib.crc32(payload) != checksum:
            raise BadFrame("a frame's checksum is wrong", at)
        at += HEAD_BYTES + length
        yield at, payload


def post_payloads(body: bytes) -> list[bytes]:
    """The encoded batches of a POST's body. Raises BadFrame for anything else, and for too many frames."""
    if len(body) > MOST_BODY:
        raise BadFrame(f"a body of {len(body):,} bytes, allowed are {MOST_BODY:,},", 0)
    payloads: list[bytes] = []
    for end, payload in read_frames(body):
        if len(payloads) == MOST_FRAMES:
            raise BadFrame(f"more than {MOST_FRAMES} frames in one body", end)
        payloads.append(payload)
    return payloads
