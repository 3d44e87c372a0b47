"""Finds the GPUs of a job by their UUIDs, from the numbers and names that Slurm gives."""

from __future__ import annotations

from collections.abc import Iterable

from peerway_jobs.agent.records import Record
from peerway_jobs.batch import Gpu

_NO_GPU = ("", "NoDevFiles")  # in CUDA_VISIBLE_DEVICES of a prolog


def gpus_of_record(record: Record, gpus: list[Gpu]) -> tuple[list[str], bool]:
    """The UUIDs of the job's GPUs among the node's `gpus`, and whether these are all GPUs that it has."""
    known = {gpu.uuid for gpu in gpus}
    words = [word for word in record.cuda.split(",") if word not in _NO_GPU]
    named = [word for word in words if word in known]
    if named:
        return named, len(named) == len(words)
    numbers = [int(word) for word in record.gpus.split(",") if word.isdigit()]
    uuids = gpus_by_number(numbers, gpus)
    # A job that sees GPUs but has no numbers of whole GPUs has shares of them: gres/shard, gres/mps.
    return uuids, len(uuids) == len(numbers) and bool(numbers or not words)


def gpus_by_number(numbers: Iterable[int], gpus: list[Gpu]) -> list[str]:
    """The UUIDs of GPUs by Slurm's numbers.

    Slurm's number N is that of /dev/nvidiaN, which is NVML's minor number and not its index. On a node
    with MIG instances Slurm numbers the instances too, and a number identifies nothing.
    """
    if any(gpu.parent is not None for gpu in gpus):
        return []
    by_minor = {gpu.minor: gpu.uuid for gpu in gpus if gpu.minor is not None}
    return [by_minor[number] for number in numbers if number in by_minor]
