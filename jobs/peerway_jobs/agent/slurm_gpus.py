"""Finds the GPUs of a job by their UUIDs, from the numbers and names that Slurm gives."""

from __future__ import annotations

from collections.abc import Iterable

from peerway_jobs.agent.records import Record
from peerway_jobs.batch import RENDER_MINORS, Gpu

_NO_GPU = ("", "NoDevFiles")  # in CUDA_VISIBLE_DEVICES or ROCR_VISIBLE_DEVICES of a prolog


def gpus_of_record(record: Record, gpus: list[Gpu]) -> tuple[list[str], bool]:
    """The UUIDs of the job's GPUs among the node's `gpus`, and whether these are all GPUs that it has."""
    known = {gpu.uuid for gpu in gpus}
    words = [word for word in dict.fromkeys(record.visible.split(",")) if word not in _NO_GPU]
    named = [word for word in words if word in known]
    if named:
        return named, len(named) == len(words)
    numbers = [int(word) for word in record.gpus.split(",") if word.isdigit()]
    uuids = gpus_by_number(numbers, gpus)
    # A job that sees GPUs but has no numbers of whole GPUs has shares of them: gres/shard, gres/mps.
    return uuids, len(uuids) == len(numbers) and bool(numbers or not words)


def gpus_by_number(numbers: Iterable[int], gpus: list[Gpu]) -> list[str]:
    """The UUIDs of GPUs by Slurm's numbers.

    Slurm's number N is that of the device file: /dev/nvidiaN (NVML's minor number, not its index), or
    /dev/dri/renderDN of an AMD GPU, which begins at 128. Where Slurm gives places in its own list of GPUs
    instead, AMD's are in the order of these files. Each partition of an AMD GPU has such a file, the GPU then
    has none. On a node with MIG instances, or with GPUs of both makers, a small number may mean several
    things, and identifies nothing.
    """
    divided = {gpu.parent for gpu in gpus}
    whole = [gpu for gpu in gpus if gpu.uuid not in divided]
    if any(gpu.parent is not None and (gpu.minor or 0) < RENDER_MINORS for gpu in whole):
        return []
    by_minor = {gpu.minor: gpu.uuid for gpu in whole if gpu.minor is not None}
    render = sorted(minor for minor in by_minor if minor >= RENDER_MINORS)
    if len(render) == len(whole):
        by_minor |= {place: by_minor[minor] for place, minor in enumerate(render)}
    elif render:
        by_minor = {minor: by_minor[minor] for minor in render}
    return [by_minor[number] for number in numbers if number in by_minor]
