"""The kinds of memory that are measured: the host's, and that of each kind of GPU that Peerway has."""

from __future__ import annotations

GPU_KINDS = ("cuda", "hip")  # the library's list, without the host; importing the library here would be slow
MEMORIES = ("host", "host:malloc", *GPU_KINDS)


def is_gpu(memory: str) -> bool:
    """Whether this memory ("host:malloc", "cuda", "hip:1") is a GPU's."""
    return memory.partition(":")[0] in GPU_KINDS


def kind_of(memory: str) -> str:
    """The memory without the number of its GPU: "cuda" of "cuda:1"."""
    return memory.partition(":")[0] if is_gpu(memory) else memory


def gpudirect_pairs(kind: str) -> list[tuple[str, str]]:
    """The pairs of memories, source first, between which GPUs of this kind take part."""
    return [(kind, kind), (kind, "host"), ("host", kind)]
