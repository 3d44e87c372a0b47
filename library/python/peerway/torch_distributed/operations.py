"""The collectives on tensors: chunk by chunk into the memory of a plan, through the plan, and out again.

These functions run in the queue of the host or with the stream of the operation as PyTorch's current one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import torch

from peerway.torch_distributed.engine import Engine, Key
from peerway.torch_distributed.reductions import Reduction

# One for each rank: of a matrix, or flat tensors of any lengths.
Rows: TypeAlias = torch.Tensor | Sequence[torch.Tensor]

_UNIT = 16  # bytes are moved in units of as many


def flat(tensor: torch.Tensor) -> torch.Tensor:
    """The elements in their order: a view, or a copy if the tensor has gaps."""
    return tensor.detach().contiguous().view(-1)


def matrix(tensor: torch.Tensor, rows: int) -> torch.Tensor:
    """The elements in their order (flat), in so many rows."""
    elements = flat(tensor)
    return elements.view(rows, elements.numel() // rows)


def copy_back(tensor: torch.Tensor, elements: torch.Tensor) -> None:
    """Writes `elements` to `tensor`, from which flat() took them, unless they are a view of it."""
    if not tensor.is_contiguous():
        tensor.detach().copy_(elements.view(tensor.shape))


def copy_within(to: torch.Tensor, source: torch.Tensor) -> None:
    """Copies the elements of a tensor of this rank, in their order, to another."""
    to.detach().copy_(source.detach().reshape(to.shape))


def all_reduce(
    engine: Engine, tensors: Sequence[torch.Tensor], reduction: Reduction, root: int | None = None
) -> None:
    """Combines the tensors of all ranks, at all ranks or only at `root`. Several small tensors go as one."""
    flats = [flat(tensor) for tensor in tensors]
    for batch in _batches(flats, engine.chunk(reduction.dtype, 1)):
        _all_reduce_batch(engine, batch, reduction, root)
    for tensor, elements in zip(tensors, flats, strict=True):
        copy_back(tensor, elements)


def _batches(flats: Sequence[torch.Tensor], chunk: int) -> list[list[torch.Tensor]]:
    """The tensors in batches of at most `chunk` elements; those that are larger are cut."""
    if len(flats) == 1 and 0 < flats[0].numel() <= chunk:
        return [list(flats)]
    batches: list[list[torch.Tensor]] = []
    room = 0
    for elements in flats:
        for part in elements.split(chunk) if elements.numel() else ():
            if part.numel() > room:
                batches.append([])
                room = chunk
            batches[-1].append(part)
            room -= part.numel()
    return batches


def _all_reduce_batch(
    engine: Engine, batch: Sequence[torch.Tensor], reduction: Reduction, root: int | None
) -> None:
    sizes = [part.numel() for part in batch]
    plan, whole = engine.place(Key("all_reduce", reduction.op, reduction.dtype, sum(sizes)))
    staged = whole.split(sizes) if len(sizes) > 1 else (whole,)
    for place, part in zip(staged, batch, strict=True):
        _fill(place, part, reduction)
    engine.run(plan)
    if root in (None, engine.rank):
        for place, part in zip(staged, batch, strict=True):
            _drain(part, place, reduction)


def reduce_scatter(engine: Engine, to: torch.Tensor, rows: Rows, reduction: Reduction) -> None:
    """Combines row r of all ranks at rank r, in the flat tensor `to`. Rows of a list may differ in length."""
    length = max(row.numel() for row in rows) if isinstance(rows, list | tuple) else rows[0].numel()
    chunk = engine.chunk(reduction.dtype, engine.size)
    for first in range(0, length, chunk):
        count = min(chunk, length - first)
        prepared = engine.prepared(Key("reduce_scatter", reduction.op, reduction.dtype, count))
        staged = prepared.source.view(engine.size, prepared.elements)
        for place, part in _pairs(staged, rows, first, count):
            _fill(place, part, reduction)
        engine.run(prepared.plan)
        part = to[first : first + count]
        _drain(part, prepared.to[: part.numel()], reduction)


def all_gather(engine: Engine, rows: Rows, source: torch.Tensor) -> None:
    """Writes the flat `source` of rank r to row r. Rows of a list may differ in length."""
    if isinstance(rows, torch.Tensor) and rows.numel() == 0:
        return
    rows, source = _as_words(rows, source)
    length = max(row.numel() for row in rows) if isinstance(rows, list) else rows[0].numel()
    word = source.dtype.itemsize
    chunk = engine.chunk(source.dtype, engine.size)
    for first in range(0, length, chunk):
        count = min(chunk, length - first)
        prepared = engine.prepared(Key("all_gather", "", torch.uint8, units(count * word)))
        staged = prepared.to.view(engine.size, prepared.elements).view(source.dtype)
        part = source[first : first + count]
        staged[engine.rank, : part.numel()].copy_(part)
        engine.run(prepared.plan)
        for place, row in _pairs(staged, rows, first, count):
            row.copy_(place)


def all_to_all(engine: Engine, to: torch.Tensor, source: torch.Tensor) -> None:
    """Writes row `rank` of rank r's matrix `source` to row r of the matrix `to`."""
    if to.numel() == 0:
        return
    to, source = _as_words(to, source)
    word, length = source.dtype.itemsize, source.shape[1]
    chunk = engine.chunk(source.dtype, engine.size)
    for first in range(0, length, chunk):
        count = min(chunk, length - first)
        prepared = engine.prepared(Key("all_to_all", "", torch.uint8, units(count * word)))
        shape = (engine.size, prepared.elements)
        places = prepared.source.view(shape).view(source.dtype)
        places[:, :count].copy_(source[:, first : first + count])
        engine.run(prepared.plan)
        results = prepared.to.view(shape).view(source.dtype)
        to[:, first : first + count].copy_(results[:, :count])


def broadcast(engine: Engine, tensor: torch.Tensor, root: int) -> None:
    """Writes the tensor of rank `root` to that of all ranks."""
    elements = flat(tensor)
    words = _words_of(elements)
    for part in words.split(engine.chunk(words.dtype, 1)) if words.numel() else ():
        bytes_ = part.numel() * part.dtype.itemsize
        prepared = engine.prepared(Key("broadcast", "", torch.uint8, units(bytes_), root))
        staged = prepared.to[:bytes_].view(part.dtype)
        if engine.rank == root:
            staged.copy_(part)
        engine.run(prepared.plan)
        if engine.rank != root:
            part.copy_(staged)
    if engine.rank != root:
        copy_back(tensor, elements)


def barrier(engine: Engine) -> None:
    """Waits for all ranks."""
    engine.run(engine.prepared(Key("barrier", "", torch.uint8, 0)).plan)


def _fill(place: torch.Tensor, part: torch.Tensor, reduction: Reduction) -> None:
    """Copies an operand into the memory of a plan."""
    if reduction.factor is None:
        place.copy_(part)
    elif place.dtype == part.dtype:
        torch.mul(part, reduction.factor, out=place)
    else:
        place.copy_(part).mul_(reduction.factor)


def _drain(part: torch.Tensor, place: torch.Tensor, reduction: Reduction) -> None:
    """Copies a result out of the memory of a plan."""
    if reduction.divisor is not None:
        rounding = None if part.dtype.is_floating_point or part.dtype.is_complex else "trunc"
        place = torch.div(place, reduction.divisor, rounding_mode=rounding)
    part.copy_(place)


def _pairs(
    staged: torch.Tensor, rows: Rows, first: int, count: int
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """The memory of a plan beside the parts from `first` on of the rows: of a matrix, in one piece."""
    if isinstance(rows, torch.Tensor):
        return [(staged[:, :count], rows[:, first : first + count])]
    parts = [row[first : first + count] for row in rows]
    return [(place[: part.numel()], part) for place, part in zip(staged, parts, strict=True)]


def units(bytes_: int) -> int:
    """A number of bytes rounded up to what plans move."""
    return -(-bytes_ // _UNIT) * _UNIT


def _words_of(*tensors: torch.Tensor) -> Any:
    """Contiguous tensors as integers, as wide as their sizes and addresses allow: these are copied faster
    than bytes. One tensor is returned as itself, several as a list.
    """
    width = 8
    for tensor in tensors:
        line = tensor.shape[-1] * tensor.dtype.itemsize
        for number in (line, tensor.data_ptr(), tensor.storage_offset() * tensor.dtype.itemsize):
            while number % width:
                width //= 2
    dtype = {8: torch.int64, 4: torch.int32, 2: torch.int16, 1: torch.uint8}[width]
    words = [tensor.view(torch.uint8).view(dtype) for tensor in tensors]
    return words[0] if len(words) == 1 else words


def _as_words(rows: Rows, source: torch.Tensor) -> tuple[Any, torch.Tensor]:
    """Rows and a source as integers of one type (_words_of)."""
    if isinstance(rows, torch.Tensor):
        matrix, words = _words_of(rows, source)
        return matrix, words
    *parts, words = _words_of(*rows, source)
    return parts, words
