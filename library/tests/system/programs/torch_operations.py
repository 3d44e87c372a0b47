"""Operations of torch.distributed over the backend peerway, on tensors of small whole numbers, whose sums are
exact in all types. Prints the names of the cases that are wrong, and the number of those that are right.

torch_operations.py MEETING [DEVICE]
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import reduce
from typing import Any

import torch
import torch.distributed as dist
import torch_ranks
from torch.distributed import ReduceOp
from torch.distributed import _functional_collectives as functional

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
OF_8_BITS = [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e5m2fnuz]  # collectives lack the last
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
COMBINE: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "SUM": torch.add,
    "PRODUCT": torch.mul,
    "MIN": torch.minimum,
    "MAX": torch.maximum,
    "BAND": torch.bitwise_and,
    "BOR": torch.bitwise_or,
}
Case = tuple[str, Callable[[], bool]]
ALIKE = [torch.float32, torch.bfloat16, torch.bool, torch.int64, torch.complex64, torch.uint8]


class Job:
    """This rank, and its cases."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.everybody = range(self.size)

    def values(self, rank: int, dtype: torch.dtype, *shape: int) -> torch.Tensor:
        """The tensor of a rank: numbers from 0 to 3."""
        generator = torch.Generator().manual_seed(100 + rank)
        numbers = torch.randint(0, 4, shape, generator=generator)
        return (numbers > 1 if dtype == torch.bool else numbers.to(dtype)).to(self.device)

    def mine(self, dtype: torch.dtype, *shape: int) -> torch.Tensor:
        return self.values(self.rank, dtype, *shape)

    def all_values(self, dtype: torch.dtype, *shape: int) -> list[torch.Tensor]:
        return [self.values(rank, dtype, *shape) for rank in self.everybody]

    def combined(self, op: str, dtype: torch.dtype, *shape: int) -> torch.Tensor:
        return reduce(COMBINE[op], self.all_values(dtype, *shape))

    def full(self, shape: Any, dtype: torch.dtype) -> torch.Tensor:
        return torch.full(shape, 1, dtype=dtype, device=self.device)

    def cases(self) -> Iterator[Case]:
        for name, case in (*self.reductions(), *self.gathers(), *self.exchanges()):
            yield name, case
            yield f"{name}, again", case  # with the plan that the first call made
        if self.size > 1:
            yield from self.messages()
            yield "groups", self.groups
            yield "different calls", self.different_calls
            if self.device == "cpu":
                yield "the time limit", self.time_limit
        yield from self.others()

    def reductions(self) -> Iterator[Case]:
        for dtype in [*FLOATS, *INTEGERS, torch.bool]:
            for op in COMBINE:
                if dtype in FLOATS and op in ("BAND", "BOR"):
                    continue
                if dtype == torch.bool and op in ("SUM", "PRODUCT"):
                    continue  # below, as gloo has them
                yield f"all_reduce {op} {dtype}", lambda op=op, dtype=dtype: self.all_reduce(op, dtype, 37)
        for count in (0, 1, 8, 17, 1000, 70_001, 5_000_003):
            yield f"all_reduce {count}", lambda count=count: self.all_reduce("SUM", torch.float32, count)
        yield "all_reduce of many sizes", self.all_reduce_of_many_sizes
        yield "all_reduce of truth values", self.all_reduce_of_truth_values
        yield "all_reduce with gaps", self.all_reduce_with_gaps
        yield "all_reduce of complex numbers", lambda: self.all_reduce("SUM", torch.complex64, 20)
        yield "all_reduce of a scalar", lambda: self.all_reduce("SUM", torch.float64)
        yield "all_reduce, mean", self.all_reduce_mean
        yield "all_reduce, factor", self.all_reduce_factor
        for dtype in OF_8_BITS:
            for op in ("SUM", "AVG", "PRODUCT", "MIN", "MAX"):
                yield f"all_reduce {op} {dtype}", lambda op=op, dtype=dtype: self.all_reduce_rounds(op, dtype)
            yield f"reduce_scatter {dtype}", lambda dtype=dtype: self.reduce_scatter_rounds(dtype)
        yield "all_reduce of many in flight", self.all_reduce_in_flight
        yield "all_reduce_coalesced", self.all_reduce_coalesced
        for root in self.everybody:
            yield f"reduce to {root}", lambda root=root: self.reduce(root)
        for count in (0, 5, 4000, 900_001):
            yield f"reduce_scatter_tensor {count}", lambda count=count: self.reduce_scatter_tensor(count)
        yield "reduce_scatter, unequal", self.reduce_scatter_unequal
        yield "reduce_scatter of truth values", self.reduce_scatter_of_truth_values

    def all_reduce(self, op: str, dtype: torch.dtype, *shape: int) -> bool:
        tensor = self.mine(dtype, *shape)
        dist.all_reduce(tensor, getattr(ReduceOp, op))
        return torch.equal(tensor, self.combined(op, dtype, *shape))

    def all_reduce_of_many_sizes(self) -> bool:
        """More sizes than there are plans for."""
        sizes = [round(1.03**step) for step in range(40, 430)]
        return sum(self.all_reduce("SUM", torch.float32, size) for size in sizes) == len(sizes)

    def all_reduce_of_truth_values(self) -> bool:
        ends = []
        for op, wanted in (("SUM", "BOR"), ("PRODUCT", "BAND")):
            tensor = self.mine(torch.bool, 50)
            dist.all_reduce(tensor, getattr(ReduceOp, op))
            ends.append(torch.equal(tensor, self.combined(wanted, torch.bool, 50)))
        return all(ends)

    def all_reduce_with_gaps(self) -> bool:
        whole = self.full((30, 40), torch.float32)
        part = whole[::2, 3:17].t()
        part.copy_(self.mine(torch.float32, 14, 15))
        dist.all_reduce(part)
        around = whole.sum().item() - part.sum().item()
        return torch.equal(part, self.combined("SUM", torch.float32, 14, 15)) and around == 1200 - 14 * 15

    def all_reduce_mean(self) -> bool:
        floats, integers = self.mine(torch.float64, 9), self.mine(torch.int32, 9)
        dist.all_reduce(floats, ReduceOp.AVG)
        dist.all_reduce(integers, ReduceOp.AVG)
        return torch.allclose(floats, self.combined("SUM", torch.float64, 9) / self.size) and torch.equal(
            integers, self.combined("SUM", torch.int32, 9) // self.size
        )

    def all_reduce_factor(self) -> bool:
        tensor = self.mine(torch.float32, 11)
        dist.all_reduce(tensor, dist._make_nccl_premul_sum(0.5))
        return torch.equal(tensor, self.combined("SUM", torch.float32, 11) / 2)

    def rounded(self, op: str, dtype: torch.dtype, *shape: int) -> torch.Tensor:
        """All ranks' inexact(), combined in the order of ranks in float32 and rounded once. Collectives make
        what is too large for float8_e4m3fn a NaN, which PyTorch's conversion may not.
        """
        factor = 1 / self.size if op == "AVG" else 1
        operands = [self.inexact(rank, dtype, *shape).float() * factor for rank in self.everybody]
        wide = reduce(COMBINE["SUM" if op == "AVG" else op], operands)
        if dtype == torch.float8_e4m3fn and op != "AVG":
            wide[wide.abs() > 464] = torch.nan  # half way between 448, the largest, and what would follow
        return wide.to(dtype)

    def inexact(self, rank: int, dtype: torch.dtype, *shape: int) -> torch.Tensor:
        """Numbers of a rank whose sums and products must be rounded; the largest overflow in some types."""
        generator = torch.Generator().manual_seed(200 + rank)
        numbers = torch.randn(shape, generator=generator)
        numbers.view(-1)[:2] = 400
        return numbers.to(dtype).to(self.device)

    def all_reduce_rounds(self, op: str, dtype: torch.dtype) -> bool:
        tensor = self.inexact(self.rank, dtype, 3001)
        dist.all_reduce(tensor, getattr(ReduceOp, op))
        return _same_numbers(tensor, self.rounded(op, dtype, 3001))

    def reduce_scatter_rounds(self, dtype: torch.dtype) -> bool:
        to = torch.empty(500, dtype=dtype, device=self.device)
        dist.reduce_scatter_tensor(to, self.inexact(self.rank, dtype, 500 * self.size))
        return _same_numbers(to, self.rounded("SUM", dtype, 500 * self.size)[500 * self.rank :][:500])

    def all_reduce_in_flight(self) -> bool:
        tensors = [self.mine(torch.float32, 100 * count) for count in range(1, 30)]
        works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
        for work in reversed(works):
            work.wait()
        return all(
            torch.equal(tensor, self.combined("SUM", torch.float32, 100 * count))
            for count, tensor in enumerate(tensors, 1)
        )

    def all_reduce_coalesced(self) -> bool:
        shapes = [(3,), (4, 5), (), (700_000,), (2,)]
        tensors = [self.mine(torch.float32, *shape) for shape in shapes]
        group: Any = dist.group.WORLD
        group.allreduce_coalesced(tensors, dist.AllreduceCoalescedOptions()).wait()
        with dist._coalescing_manager():
            for tensor in tensors:
                dist.all_reduce(tensor)
        return all(
            torch.equal(tensor, self.combined("SUM", torch.float32, *shape) * self.size)
            for tensor, shape in zip(tensors, shapes, strict=True)
        )

    def reduce(self, root: int) -> bool:
        tensor = self.mine(torch.bfloat16, 100)
        dist.reduce(tensor, root)
        combined = self.combined("SUM", torch.bfloat16, 100)
        wanted = combined if self.rank == root else self.mine(torch.bfloat16, 100)
        return torch.equal(tensor, wanted)

    def reduce_scatter_tensor(self, count: int) -> bool:
        source = self.mine(torch.float32, self.size, count)
        to = self.full((count,), torch.float32)
        dist.reduce_scatter_tensor(to, source)
        return torch.equal(to, self.combined("SUM", torch.float32, self.size, count)[self.rank])

    def reduce_scatter_unequal(self) -> bool:
        counts = [3 + 5 * rank for rank in self.everybody]
        whole = self.mine(torch.int32, sum(counts))
        to = self.full((counts[self.rank],), torch.int32)
        dist.reduce_scatter(to, list(whole.split(counts)), ReduceOp.MAX)
        wanted = self.combined("MAX", torch.int32, sum(counts)).split(counts)[self.rank]
        return torch.equal(to, wanted)

    def reduce_scatter_of_truth_values(self) -> bool:
        to = self.full((6,), torch.bool)
        dist.reduce_scatter_tensor(to, self.mine(torch.bool, self.size * 6), ReduceOp.MAX)
        return torch.equal(to, self.combined("BOR", torch.bool, self.size * 6).split(6)[self.rank])

    def gathers(self) -> Iterator[Case]:
        for dtype in ALIKE:
            yield f"all_gather_into_tensor {dtype}", lambda dtype=dtype: self.all_gather_into(dtype, 33)
        for count in (0, 1, 12_345, 3_000_001):
            name = f"all_gather_into_tensor {count}"
            yield name, lambda count=count: self.all_gather_into(torch.bfloat16, count)
        yield "all_gather", self.all_gather
        yield "all_gather, unequal", self.all_gather_unequal
        yield "all_gather_into_tensor, coalesced", self.all_gather_coalesced
        for root in self.everybody:
            for dtype in (torch.bool, torch.float32):
                name = f"broadcast from {root} {dtype}"
                yield name, lambda root=root, dtype=dtype: self.broadcast(root, dtype)
            yield f"gather to {root}", lambda root=root: self.gather(root)
            yield f"scatter from {root}", lambda root=root: self.scatter(root)
        yield "objects", self.objects

    def all_gather_into(self, dtype: torch.dtype, count: int) -> bool:
        to = self.full((self.size * count,), dtype)
        dist.all_gather_into_tensor(to, self.mine(dtype, count))
        return torch.equal(to, torch.cat(self.all_values(dtype, count)))

    def all_gather(self) -> bool:
        whole = self.full((self.size, 8, 6), torch.float32)
        outputs = [whole[rank].t() for rank in self.everybody]  # with gaps
        dist.all_gather(outputs, self.mine(torch.float32, 12, 8)[::2])
        wanted = [tensor[::2] for tensor in self.all_values(torch.float32, 12, 8)]
        return all(map(torch.equal, outputs, wanted))

    def all_gather_unequal(self) -> bool:
        outputs = [self.full((1 + 7 * rank, 3), torch.int16) for rank in self.everybody]
        dist.all_gather(outputs, self.mine(torch.int16, 1 + 7 * self.rank, 3))
        wanted = [self.values(rank, torch.int16, 1 + 7 * rank, 3) for rank in self.everybody]
        return all(map(torch.equal, outputs, wanted))

    def all_gather_coalesced(self) -> bool:
        dtypes = [torch.float32, torch.bool, torch.bfloat16]
        outputs = [self.full((self.size * 10,), dtype) for dtype in dtypes]
        with dist._coalescing_manager():
            for to, dtype in zip(outputs, dtypes, strict=True):
                dist.all_gather_into_tensor(to, self.mine(dtype, 10))
        return all(
            torch.equal(to, torch.cat(self.all_values(dtype, 10)))
            for to, dtype in zip(outputs, dtypes, strict=True)
        )

    def broadcast(self, root: int, dtype: torch.dtype) -> bool:
        whole = self.full((9, 700), dtype)
        part = whole[:, ::7]
        part.copy_(self.mine(dtype, 9, 100))
        dist.broadcast(part, root)
        return torch.equal(part, self.values(root, dtype, 9, 100))

    def gather(self, root: int) -> bool:
        outputs = [self.full((5000,), torch.float64) for _ in self.everybody] if self.rank == root else None
        dist.gather(self.mine(torch.float64, 5000), outputs, root)
        return outputs is None or all(map(torch.equal, outputs, self.all_values(torch.float64, 5000)))

    def scatter(self, root: int) -> bool:
        whole = self.values(root, torch.int8, self.size, 3, 5)
        to = self.full((3, 5), torch.int8)
        dist.scatter(to, list(whole) if self.rank == root else None, root)
        return torch.equal(to, whole[self.rank])

    def objects(self) -> bool:
        answers: list[Any] = [None] * self.size
        dist.all_gather_object(answers, {"rank": self.rank, "text": "x" * self.rank})
        shared = [[1, "two"]] if self.rank == 0 else [None]
        dist.broadcast_object_list(shared, 0)
        wanted = [{"rank": rank, "text": "x" * rank} for rank in self.everybody]
        return answers == wanted and shared == [[1, "two"]]

    def exchanges(self) -> Iterator[Case]:
        for count in (0, 1, 1000, 700_003):
            yield f"all_to_all_single {count}", lambda count=count: self.all_to_all_single(count)
        yield "all_to_all_single, unequal", self.all_to_all_single_unequal
        yield "all_to_all", self.all_to_all

    def all_to_all_single(self, count: int) -> bool:
        to = self.full((self.size * count,), torch.int16)
        dist.all_to_all_single(to, self.mine(torch.int16, self.size * count))
        parts = self.all_values(torch.int16, self.size * count)
        return torch.equal(to, torch.cat([part.view(self.size, count)[self.rank] for part in parts]))

    def all_to_all_single_unequal(self) -> bool:
        def rows(sender: int, receiver: int) -> int:
            return 2000 * sender + 3 * receiver

        sent = [rows(self.rank, rank) for rank in self.everybody]
        received = [rows(rank, self.rank) for rank in self.everybody]
        to = self.full((sum(received), 5), torch.float32)
        dist.all_to_all_single(to, self.mine(torch.float32, sum(sent), 5), received, sent)
        parts = []
        for rank in self.everybody:
            counts = [rows(rank, receiver) for receiver in self.everybody]
            parts.append(self.values(rank, torch.float32, sum(counts), 5).split(counts)[self.rank])
        return torch.equal(to, torch.cat(parts))

    def all_to_all(self) -> bool:
        inputs = [self.mine(torch.int64, 4, 6)[:, rank : rank + 1] for rank in self.everybody]
        outputs = [self.full((4, 1), torch.int64) for _ in self.everybody]
        dist.all_to_all(outputs, inputs)
        wanted = [part[:, self.rank : self.rank + 1] for part in self.all_values(torch.int64, 4, 6)]
        return all(map(torch.equal, outputs, wanted))

    def messages(self) -> Iterator[Case]:
        for count in (0, 3, 1020, 40_000, 3_000_001):
            yield f"send and recv {count}", lambda count=count: self.around(count)
        yield "isend before irecv", self.isend_first
        yield "batch_isend_irecv", self.batch
        if self.device == "cpu":
            yield "tags", self.tags

    def around(self, count: int) -> bool:
        """A message around the ring: rank 0 sends first."""
        to = self.full((count,), torch.float32)
        after, before = (self.rank + 1) % self.size, (self.rank - 1) % self.size
        if self.rank == 0:
            dist.send(self.mine(torch.float32, count), after)
            dist.recv(to, before)
        else:
            dist.recv(to, before)
            dist.send(to, after)
        return torch.equal(to, self.values(0, torch.float32, count))

    def isend_first(self) -> bool:
        """All ranks send 8 MB to all others before any of them receives."""
        others = [rank for rank in self.everybody if rank != self.rank]
        works = [dist.isend(self.mine(torch.float32, 2_000_000), rank) for rank in others]
        targets = {rank: self.full((2_000_000,), torch.float32) for rank in others}
        works += [dist.irecv(to, rank) for rank, to in targets.items()]
        for work in works:
            work.wait()
        return all(
            torch.equal(to, self.values(rank, torch.float32, 2_000_000)) for rank, to in targets.items()
        )

    def batch(self) -> bool:
        after, before = (self.rank + 1) % self.size, (self.rank - 1) % self.size
        to = self.full((50_000,), torch.bfloat16)
        works = dist.batch_isend_irecv(
            [
                dist.P2POp(dist.isend, self.mine(torch.bfloat16, 50_000), after),
                dist.P2POp(dist.irecv, to, before),
            ]
        )
        for work in works:
            work.wait()
        return torch.equal(to, self.values(before, torch.bfloat16, 50_000))

    def tags(self) -> bool:
        """Messages are received in another order than they are sent."""
        if self.rank == 0:
            for tag in (4, 5, 4):
                dist.send(torch.full((3000,), 1.0 * tag), 1, tag=tag)
            return True
        if self.rank > 1:
            return True
        tensors = [torch.zeros(3000) for _ in range(3)]
        for tensor, tag in zip(tensors, (5, 4, 4), strict=True):
            dist.recv(tensor, 0, tag=tag)
        return [tensor.unique().tolist() for tensor in tensors] == [[5.0], [4.0], [4.0]]

    def others(self) -> Iterator[Case]:
        yield "barrier", self.barrier
        yield "functional", self.functional
        yield "inference mode", self.in_inference_mode
        yield "a leaf that needs a gradient", self.leaf
        yield "the future of a work", self.future
        yield "what there is not", self.refused

    def barrier(self) -> bool:
        dist.barrier()
        return True

    def groups(self) -> bool:
        pair, last = [0, self.size - 1], [self.size - 1]
        groups = [dist.new_group(pair), dist.new_group(last), dist.new_group(pair[::-1])]
        right = True
        for group, ranks in zip(groups, (pair, last, pair), strict=True):
            if self.rank in ranks:
                tensor = self.mine(torch.float32, 60)
                dist.all_reduce(tensor, group=group)
                wanted = sum(self.values(rank, torch.float32, 60) for rank in ranks)
                right = right and torch.equal(tensor, wanted)
                dist.broadcast(tensor, ranks[-1], group=group)
                dist.destroy_process_group(group)
        return right

    def different_calls(self) -> bool:
        """Ranks that make plans of different sizes are told of it; the group goes on."""
        try:
            dist.all_reduce(self.mine(torch.int16, 3000 if self.rank == 0 else 5000), ReduceOp.MAX)
        except dist.DistBackendError as error:
            both = all(size in str(error) for size in ("of 3072 int16", "of 5120 int16"))
            return both and self.all_reduce("MAX", torch.int16, 37)
        return False

    def time_limit(self) -> bool:
        """Rank 0 does not take part in the second sum."""
        group = dist.new_group(timeout=timedelta(seconds=1))
        dist.all_reduce(self.mine(torch.float32, 4), group=group)
        if self.rank == 0:
            return True
        try:
            dist.all_reduce(self.mine(torch.float32, 4), group=group)
        except dist.DistBackendError as error:
            return "all_reduce (SUM) of 4 float32" in str(error) and "longer `timeout`" in str(error)
        return False

    def functional(self) -> bool:
        group: Any = dist.group.WORLD
        mine = self.mine(torch.float32, self.size * 4)
        total = functional.all_reduce(mine, "sum", group)
        part = functional.reduce_scatter_tensor(mine, "sum", 0, group)
        whole = functional.all_gather_tensor(part, 0, group)
        turned = functional.all_to_all_single(mine, [4] * self.size, [4] * self.size, group)
        wanted = [value.split(4)[self.rank] for value in self.all_values(torch.float32, self.size * 4)]
        return torch.equal(total, whole) and torch.equal(turned, torch.cat(wanted))

    def in_inference_mode(self) -> bool:
        with torch.inference_mode():
            tensor = self.mine(torch.float32, 10)
            dist.all_reduce(tensor, async_op=True).wait()
            return torch.equal(tensor, self.combined("SUM", torch.float32, 10))

    def leaf(self) -> bool:
        tensor = self.mine(torch.float32, 10).requires_grad_()
        dist.broadcast(tensor, 0)
        return torch.equal(tensor.detach(), self.values(0, torch.float32, 10))

    def future(self) -> bool:
        tensor = self.mine(torch.float32, 10)
        future = dist.all_reduce(tensor, async_op=True).get_future()
        (result,) = future.then(lambda ended: [value * 2 for value in ended.value()]).wait()
        return torch.equal(result, self.combined("SUM", torch.float32, 10) * 2)

    def refused(self) -> bool:
        """Errors say what was asked for and what to do, also where there is a plan; the group goes on."""
        self.all_gather_into(torch.float32, 64)
        few = self.full((5,), torch.float32)
        calls: list[tuple[str, Callable[[], Any]]] = [
            ("combines bits", lambda: dist.all_reduce(self.mine(torch.float32, 4), ReduceOp.BAND)),
            ("ReduceOp.BXOR of", lambda: dist.all_reduce(self.mine(torch.int32, 4), ReduceOp.BXOR)),
            ("give dense ones", lambda: dist.all_reduce(torch.eye(3, device=self.device).to_sparse())),
            ("are not", lambda: dist.all_gather_into_tensor(few, self.mine(torch.float32, 64))),
            ("name the rank", lambda: dist.recv(self.mine(torch.int32, 4))),
        ]
        for words, call in calls:
            try:
                call()
            except (ValueError, NotImplementedError) as error:
                if words in str(error):
                    continue
                print(words, "is not in", error, file=sys.stderr)
            return False
        return self.all_reduce("SUM", torch.float32, 37)


def _same_numbers(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether the elements are equal; NaN equals NaN."""
    return torch.equal(a.float().nan_to_num(1e9), b.float().nan_to_num(1e9))


def main() -> int:
    """Run the cases, and print which were wrong."""
    meeting, device, *_ = [*sys.argv[1:], "cpu"]
    torch_ranks.begin(meeting, device)
    job, wrong, right = Job(device), [], 0
    for name, is_right in job.cases():
        try:
            correct = is_right()
        except Exception:
            traceback.print_exc()
            correct = False
        if correct:
            right += 1
        else:
            wrong.append(name)
    print(json.dumps([wrong, right]), flush=True)
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
