"""The process group: what torch.distributed calls, as operations of an engine.

PyTorch calls these methods by the names of its C++ class, and newer releases by others too; both are here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.distributed import ReduceOp

from peerway.torch_distributed import operations
from peerway.torch_distributed.group_base import GroupBase, Tensors
from peerway.torch_distributed.reductions import as_real, reduction_of
from peerway.torch_distributed.work import JoinedWork


class ProcessGroup(GroupBase):
    """A group of ranks over Peerway, for tensors of the host and of one GPU in each rank.

    Making one is collective over the group. Tensors may have gaps, any type that an operation has a meaning
    for, and any size, also none. Raises torch.distributed.DistBackendError if a rank is lost or the group's
    time limit is over.
    """

    def allreduce(self, tensors: Tensors, opts: Any = None) -> Any:
        return self._all_reduce("all_reduce", tensors, opts)

    def reduce(self, tensors: Tensors, opts: Any = None) -> Any:
        return self._all_reduce("reduce", tensors, opts, _root_of(opts))

    def broadcast(self, tensors: Tensors, opts: Any = None) -> Any:
        if self._run_fast("broadcast", tensors, tensors, opts, root=_root_of(opts)):
            return None

        def call(engine: Any) -> None:
            for tensor in tensors:
                operations.broadcast(engine, tensor, _root_of(opts))

        return self._submit("broadcast", call, tensors, tensors, opts)

    def allgather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any = None) -> Any:
        def call(engine: Any) -> None:
            for to, source in zip(outputs, inputs, strict=True):
                rows = [operations.flat(tensor) for tensor in to]
                operations.all_gather(engine, rows, operations.flat(source))
                for tensor, row in zip(to, rows, strict=True):
                    operations.copy_back(tensor, row)

        everything = [tensor for to in outputs for tensor in to]
        return self._submit("all_gather", call, [*everything, *inputs], everything, opts)

    def allgather_into_tensor_coalesced(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> Any:
        if self._run_fast("all_gather_into_tensor", outputs, inputs, opts):
            return None
        for to, source in zip(outputs, inputs, strict=True):
            self._check_multiple("all_gather_into_tensor", to, source)

        def call(engine: Any) -> None:
            for to, source in zip(outputs, inputs, strict=True):
                rows = operations.matrix(to, self._size)
                operations.all_gather(engine, rows, operations.flat(source))
                operations.copy_back(to, rows.view(-1))

        return self._submit("all_gather_into_tensor", call, [*outputs, *inputs], outputs, opts)

    def reduce_scatter(self, outputs: Tensors, inputs: Sequence[Tensors], opts: Any = None) -> Any:
        op = _operation_of(opts)
        outputs = [as_real(to, op) for to in outputs]
        inputs = [[as_real(source, op) for source in sources] for sources in inputs]
        reduction = reduction_of(op, outputs[0].dtype, self._size)

        def call(engine: Any) -> None:
            for to, sources in zip(outputs, inputs, strict=True):
                result = operations.flat(to)
                rows = [operations.flat(source) for source in sources]
                operations.reduce_scatter(engine, result, rows, reduction)
                operations.copy_back(to, result)

        everything = [*outputs, *(source for sources in inputs for source in sources)]
        return self._submit("reduce_scatter", call, everything, outputs, opts, op)

    def reduce_scatter_tensor_coalesced(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> Any:
        op = _operation_of(opts)
        if self._run_fast("reduce_scatter_tensor", outputs, inputs, opts, op):
            return None
        for to, source in zip(outputs, inputs, strict=True):
            self._check_multiple("reduce_scatter_tensor", source, to)
        reals = [(as_real(to, op), as_real(source, op)) for to, source in zip(outputs, inputs, strict=True)]

        def call(engine: Any) -> None:
            for to, source in reals:
                result = operations.flat(to)
                rows = operations.matrix(source, self._size)
                reduction = reduction_of(op, to.dtype, self._size)
                operations.reduce_scatter(engine, result, rows, reduction)
                operations.copy_back(to, result)

        for to, _ in reals:
            reduction_of(op, to.dtype, self._size)  # refuses what there is not, before anything moves
        return self._submit("reduce_scatter_tensor", call, [*outputs, *inputs], outputs, opts, op)

    def alltoall_base(
        self,
        output: torch.Tensor,
        input: torch.Tensor,
        output_splits: Sequence[int],
        input_splits: Sequence[int],
        opts: Any = None,
    ) -> Any:
        if output_splits or input_splits:
            to = _split(output, output_splits, self._size)
            return self._exchange("all_to_all_single", to, _split(input, input_splits, self._size))
        if self._run_fast("all_to_all_single", [output], [input], opts):
            return None
        for tensor in (output, input):
            if tensor.numel() % self._size:
                raise ValueError(
                    f"peerway: all_to_all_single: {self._size} ranks cannot share {tensor.numel()} elements "
                    "equally; give the sizes of the splits."
                )

        def call(engine: Any) -> None:
            rows = operations.matrix(output, self._size)
            operations.all_to_all(engine, rows, operations.matrix(input, self._size))
            operations.copy_back(output, rows.view(-1))

        return self._submit("all_to_all_single", call, [output, input], [output], opts)

    def alltoall(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> Any:
        del opts
        return self._exchange("all_to_all", outputs, inputs)

    def gather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any = None) -> Any:
        root, source = _root_of(opts), inputs[0]
        if self._rank != root:
            return self._joined([self._transfer("gather", root, True, source)], [])
        works = [
            self._transfer("gather", rank, False, to) for rank, to in enumerate(outputs[0]) if rank != root
        ]
        works.append(self._copied("gather", outputs[0][root], source))
        return self._joined(works, outputs[0])

    def scatter(self, outputs: Tensors, inputs: Sequence[Tensors], opts: Any = None) -> Any:
        root, to = _root_of(opts), outputs[0]
        if self._rank != root:
            return self._joined([self._transfer("scatter", root, False, to)], outputs)
        works = [
            self._transfer("scatter", rank, True, source)
            for rank, source in enumerate(inputs[0])
            if rank != root
        ]
        works.append(self._copied("scatter", to, inputs[0][root]))
        return self._joined(works, outputs)

    def barrier(self, opts: Any = None) -> Any:
        del opts
        return self._submit("barrier", operations.barrier, [], [], None)

    # Messages.

    def send(self, tensors: Tensors, rank: int, tag: int = 0) -> Any:
        works = [self._transfer("send", rank, True, tensor, tag) for tensor in tensors]
        return self._joined(works, tensors)

    def recv(self, tensors: Tensors, rank: int, tag: int = 0) -> Any:
        works = [self._transfer("recv", rank, False, tensor, tag) for tensor in tensors]
        return self._joined(works, tensors)

    def recv_anysource(self, tensors: Tensors, tag: int = 0) -> Any:
        raise NotImplementedError(
            "peerway: recv from any rank; name the rank: torch.distributed.recv(tensor, src=...)."
        )

    def start_coalescing(self, device: Any = None) -> None:
        del device
        self._coalesced = []

    def end_coalescing(self, device: Any = None) -> Any:
        del device
        works, self._coalesced = self._coalesced or [], None
        return JoinedWork(works, [tensor for work in works for tensor in work.result()])

    # The same by their other names.

    def _allgather_base(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> Any:
        return self.allgather_into_tensor_coalesced([output], [input], opts)

    def _reduce_scatter_base(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> Any:
        return self.reduce_scatter_tensor_coalesced([output], [input], opts)

    def allgather_coalesced(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any = None) -> Any:
        return self.allgather([list(to) for to in zip(*outputs, strict=True)], inputs, opts)

    allreduce_coalesced = allreduce
    all_gather_single = _allgather_base
    all_gather_single_coalesced = allgather_into_tensor_coalesced
    reduce_scatter_single = _reduce_scatter_base
    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced
    all_to_all_single = alltoall_base
    _start_coalescing = start_coalescing
    _end_coalescing = end_coalescing

    # Inside.

    def _all_reduce(self, name: str, tensors: Tensors, opts: Any, root: int | None = None) -> Any:
        op = _operation_of(opts)
        if root is None and self._run_fast(name, tensors, tensors, opts, op):
            return None
        reals = [as_real(tensor, op) for tensor in tensors]
        groups: dict[torch.dtype, list[torch.Tensor]] = {}
        for tensor in reals:
            groups.setdefault(tensor.dtype, []).append(tensor)
        reductions = {dtype: reduction_of(op, dtype, self._size) for dtype in groups}

        def call(engine: Any) -> None:
            for dtype, group in groups.items():
                operations.all_reduce(engine, group, reductions[dtype], root)

        return self._submit(name, call, tensors, tensors, opts, op)

    def _exchange(self, name: str, outputs: Tensors, inputs: Tensors) -> Any:
        """Sends each rank its tensor, and receives from each; ranks agree in pairs about sizes."""
        works = [self._copied(name, outputs[self._rank], inputs[self._rank])]
        for step in range(1, self._size):
            to, source = (self._rank + step) % self._size, (self._rank - step) % self._size
            if inputs[to].numel():
                works.append(self._transfer(name, to, True, inputs[to]))
            if outputs[source].numel():
                works.append(self._transfer(name, source, False, outputs[source]))
        return self._joined(works, outputs)

    def _check_multiple(self, name: str, whole: torch.Tensor, part: torch.Tensor) -> None:
        if whole.numel() != part.numel() * self._size or whole.dtype != part.dtype:
            raise ValueError(
                f"peerway: {name}: {whole.numel()} elements of {whole.dtype} are not {self._size} times "
                f"{part.numel()} of {part.dtype}."
            )


def _operation_of(opts: Any) -> Any:
    """The reduce operation in options, or given in their place."""
    return ReduceOp.SUM if opts is None else getattr(opts, "reduceOp", opts)


def _root_of(opts: Any) -> int:
    return int(getattr(opts, "rootRank", 0))


def _split(tensor: torch.Tensor, splits: Sequence[int], size: int) -> list[torch.Tensor]:
    """The parts of a tensor along its first dimension."""
    count = tensor.shape[0] if tensor.dim() else 0
    sizes = list(splits) or [count // size] * size
    if len(sizes) != size or sum(sizes) != count:
        raise ValueError(
            f"peerway: all_to_all_single: the splits {sizes} of a tensor of {count} rows among {size} ranks."
        )
    return list(tensor.detach().split(sizes))
